"""Which rows begin an entry: a log's event, with its stack trace and whatever else goes on below it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from engine.answers.fold.page import PAD, Page, Positions

_STAMPED = 3
"""If one in so many of a block's rows that are not indented has a time, one without goes on with the row before."""
_CLOSERS = np.frombuffer(b")]}", np.uint8)

_Trace = Literal["", "python", "go"]
_SIGNS = re.compile(
    rb"\n(?:(?P<python>Traceback \(most recent call last\):)|(?P<go>goroutine \d+ \[)"
    rb"|Caused by: |Suppressed: |\.\.\. \d+ (?:more|common frames)"
    rb"|During handling of the above exception|The above exception was the direct cause)"
)
"""Rows of traces that are not indented: of Python, of Go, and of Java and both."""


@dataclass(frozen=True)
class _Rows:
    """What is known of a block's rows, each bool [rows]; ``heads`` is what changes."""

    heads: npt.NDArray[np.bool_]
    timed: npt.NDArray[np.bool_]
    indented: npt.NDArray[np.bool_]
    blank: npt.NDArray[np.bool_]


class Entries:
    """Finds entries block by block; a trace may reach over the end of one."""

    def __init__(self) -> None:
        self._begun = False
        self._open: _Trace = ""

    def heads(
        self, page: Page, data: bytes, stamped: Positions, blank: npt.NDArray[np.bool_], further: Positions
    ) -> npt.NDArray[np.bool_]:
        """Whether each row begins an entry; all rows up to the next one belong to it.

        ``data``: the block as given; ``stamped``: rows with a time, which always begin one; ``blank``: bool [rows],
        neither a time nor a token; ``further``: rows that are windows of a line begun before.
        """
        timed = np.zeros(page.rows, np.bool_)
        timed[stamped] = True
        indented = page.indented() & ~timed
        open_ = ~blank & ~indented
        open_[further] = False
        rows = _Rows(open_ & ~np.isin(page.bytes[page.starts], _CLOSERS), timed, indented, blank)
        if int(timed.sum()) * _STAMPED >= max(1, int(open_.sum())):
            rows.heads[:] = timed
            self._open = ""
        else:
            self._join_traces(page, data, rows)
            rows.heads[timed] = True
        if not self._begun:
            rows.heads[0] = True
            self._begun = True
        return rows.heads

    def _join_traces(self, page: Page, data: bytes, rows: _Rows) -> None:
        if self._open:
            self._open = _follow(0, self._open, rows)
        chained = False
        for match in _SIGNS.finditer(b"\n" + data):
            row = int(page.row_of(np.array([PAD + match.start()]))[0])
            if match["python"]:
                rows.heads[row] &= not chained
                self._open = _follow(row + 1, "python", rows)
                chained = False
                continue
            rows.heads[row] = False
            chained = not match["go"]
            if match["go"]:
                self._open = _follow(row, "go", rows)


def _follow(start: int, kind: _Trace, rows: _Rows) -> _Trace:
    """Joins the rows of a trace from ``start`` on; its kind if it is not over at the end of the block."""
    for row in range(start, len(rows.heads)):
        if rows.timed[row] or (rows.blank[row] and kind == "go"):
            return ""
        if not rows.indented[row] and not rows.blank[row]:
            rows.heads[row] = False
            if kind == "python":  # the exception itself stands behind the frames
                return ""
    return kind
