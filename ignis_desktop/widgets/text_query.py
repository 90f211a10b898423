"""What is searched for in a text: plain words or a regular expression.

Qt's expressions, not Python's: they bound how long a hopeless pattern may try, and other threads run meanwhile.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QRegularExpression

Rows = npt.NDArray[np.int64]


class TextQuery:
    """Thread-safe. Without ``case``, capitals and small letters are the same."""

    def __init__(self, pattern: str, *, regex: bool = False, case: bool = False) -> None:
        self.pattern, self.regex, self.case = pattern, regex, case
        option = QRegularExpression.PatternOption
        options = option.MultilineOption | option.UseUnicodePropertiesOption
        if not case:
            options |= option.CaseInsensitiveOption
        self._expression = QRegularExpression(pattern if regex else QRegularExpression.escape(pattern), options)

    @cached_property
    def fault(self) -> str:
        """Why the expression is none, with the place; "" when it is one."""
        if self._expression.isValid():
            return ""
        return f"{self._expression.errorString()} ({self._expression.patternErrorOffset() + 1})"

    def spans(self, text: str) -> list[tuple[int, int]]:
        """(start, end) of every place in a line, in characters."""
        found = self._expression.globalMatch(text)
        spans = []
        while found.hasNext():
            match = found.next()
            if match.capturedLength():
                spans.append((match.capturedStart(), match.capturedEnd()))
        if not text.isascii() and spans:
            units = np.array([1 + (ord(character) > 0xFFFF) for character in text])
            starts = np.concatenate([[0], np.cumsum(units)])
            return [tuple(np.searchsorted(starts, span).tolist()) for span in spans]
        return spans

    def rows(self, text: str, most: int) -> Rows:
        """Which lines of ``text``, counted from 0, hold it: at most ``most``. Empty places do not count."""
        found = self._expression.globalMatch(text)
        places: list[int] = []
        while len(places) < most and found.hasNext():
            match = found.next()
            if match.capturedLength():
                places.append(match.capturedStart())
        if not places:
            return np.zeros(0, np.int64)
        # Qt counts in UTF-16.
        units = (
            np.frombuffer(text.encode(), np.uint8)
            if text.isascii()
            else np.frombuffer(text.encode("utf-16-le", "surrogatepass"), np.uint16)
        )
        return np.unique(np.searchsorted(np.flatnonzero(units == 10), np.array(places), "left"))
