"""A log as the window shows it: any of its rows at hand, its templates, and how many tokens it has.

Nothing of the text stays in memory but the rows that were looked at last; see ``engine.answers.fold.source``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.answers.fold.fold import Fold, fold
from engine.answers.fold.records import find_records
from engine.answers.fold.render import template_text
from engine.answers.fold.source import LONGEST, Block, OnBytes, Source
from engine.answers.locate import Ranked, locate
from engine.answers.segments import is_log
from engine.messages import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.engine import Engine

Rows = npt.NDArray[np.int64]

_PARSED = 8 << 20
"""Characters of JSON that are parsed at once: every thread waits meanwhile, the window's too."""
_DECODED = 64 << 20
"""Bytes of an array that are decoded at once."""
_SOUGHT = 400
"""Characters by which a record is found in the line it stands on."""
_KEPT_ROWS = 1024
_EXAMPLE = 300
_SAMPLES, _SAMPLE_ROWS, _SAMPLE_CHARACTERS = 32, 40, 4096


@dataclass(frozen=True, slots=True)
class LogTemplate:
    """``text``: the template with its slots in angle brackets; ``count`` of its rows; ``row``: the first of them,
    whose text begins with ``example``."""

    number: int
    text: str
    count: int
    row: int
    line: int
    example: str


class LogFile:
    """Thread-safe. Close it when done."""

    def __init__(self, path: Path, on_bytes: OnBytes | None = None) -> None:
        """Opens a file, unpacks it when it is gzip or Zstandard, and finds its lines.

        Raises:
            EngineError: it cannot be opened or read, is empty, is broken, or has too many bytes.
        """
        self.path = path
        self.source = Source(path, on_bytes)
        if self.source.lines == 0:
            self.source.close()
            raise EngineError(f"{path.name} is empty; there is nothing to find in it.", code="empty_file")
        self.tokens: int | None = None
        """About how many the model would read; None until a model was there to count them."""
        self.templates: tuple[LogTemplate, ...] = ()
        self._fold: Fold | None = None
        self._is_log = True
        self.fold_ms = 0.0
        """What folding took: once, for all questions."""
        self._row = lru_cache(_KEPT_ROWS)(self.source.row)

    def close(self) -> None:
        self.source.close()

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def size(self) -> int:
        """Bytes, unpacked."""
        return self.source.size

    @property
    def lines(self) -> int:
        return self.source.lines

    @property
    def rows(self) -> int:
        """Lines, and windows of at most 4,096 characters of those that are longer."""
        return self.source.rows

    @property
    def is_folded(self) -> bool:
        return self._fold is not None

    @property
    def folded(self) -> Fold:
        """What ``fold`` found."""
        assert self._fold is not None
        return self._fold

    @property
    def subject(self) -> Fold | Source:
        """What a question is asked of: the folded log; the text itself when it is prose or records."""
        return self.folded if self._is_log else self.source

    def row(self, number: int) -> str:
        """A row's text. Raises ``EngineError`` when the file can no longer be read."""
        return self._row(number)

    def line_of(self, row: int) -> int:
        return self.source.line_of(row)

    def row_of(self, line: int) -> int:
        """The first row of a line."""
        return self.source.rows_of(line).start

    def row_with(self, line: int, text: str) -> int:
        """The row of a line in which a text that stands there begins; the line's first one if none has it."""
        rows = self.source.rows_of(line)
        wanted = text[:_SOUGHT]
        for row in rows if len(rows) > 1 else ():
            held = self.source.row(row)
            if row + 1 < rows.stop:
                held += self.source.row(row + 1)[: len(wanted) - 1]
            if wanted in held:
                return row
        return rows.start

    def begins_line(self, row: int) -> bool:
        return row == 0 or self.line_of(row) != self.line_of(row - 1)

    def blocks(self) -> Iterator[Block]:
        return self.source.blocks()

    def fold(self, on_bytes: OnBytes | None = None) -> None:
        """Finds the templates; some seconds for a hundred megabytes."""
        began = time.monotonic()
        folded = fold(self.source, on_bytes)
        self._is_log = _reads_as_log(self.source)
        listed = [template for template in folded.templates if not template.blank]
        firsts = self.source.lines_of(np.array([template.first for template in listed], np.int64)).tolist()
        self.templates = tuple(
            LogTemplate(t.number, template_text(t, 1).strip(), t.count, t.first, line, self.row(t.first)[:_EXAMPLE])
            for t, line in zip(listed, firsts, strict=True)
        )
        self.fold_ms = (time.monotonic() - began) * 1000
        self._fold = folded

    def rows_like(self, template: int) -> Rows:
        """All rows of a template; none before the log is folded."""
        return np.zeros(0, np.int64) if self._fold is None else self._fold.rows_of([template])

    def template_of(self, row: int) -> LogTemplate | None:
        """The template of a row; None for a blank one and before the log is folded."""
        if self._fold is None:
            return None
        number = int(self._fold.template_of(np.array([row], np.int64))[0])
        return next((template for template in self.templates if template.number == number), None)

    def text(self, rows: Sequence[int] | Rows) -> str:
        """Some rows as lines. Raises ``EngineError`` when the file can no longer be read."""
        return "\n".join(self.source.row(int(row)) for row in rows)

    def count_tokens(self, count: Callable[[str], int]) -> None:
        """Estimates ``tokens`` from rows spread over the log; a few at a time, as counting holds other threads up."""
        starts = np.unique(np.linspace(0, max(0, self.rows - _SAMPLE_ROWS), _SAMPLES).astype(np.int64)).tolist()
        size = tokens = 0
        for start in starts:
            text = ""
            for row in range(start, min(start + _SAMPLE_ROWS, self.rows)):
                text += self.source.row(row) + "\n"
                begin, end = self.source.row_span(row)
                size += end - begin
                if len(text) > _SAMPLE_CHARACTERS:
                    break
            tokens += count(text)
        self.tokens = max(1, round(tokens * self.size / max(size, 1)))


def _reads_as_log(source: Source) -> bool:
    """Whether a text is neither prose nor records. Of an array too large, or with elements too large, to be taken apart
    without holding the window up only the lines are asked; so of lines too long."""
    if source.row(0).lstrip("\ufeff \t").startswith("["):
        if source.size > _DECODED:
            return True
        if find_records(source, longest=_PARSED) is not None:
            return False
    in_long_lines = (source.rows - source.lines) * LONGEST
    return in_long_lines > _PARSED or (is_log(source) and find_records(source, longest=_PARSED) is None)


@dataclass(frozen=True, slots=True)
class Hit:
    """A candidate: the row where it begins, and the number of the line that this is (part of)."""

    row: int
    line: int
    text: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of a question. ``hits``: the answer, then the runners-up; ``stages``: milliseconds by name, the
    fold's those of folding the log.

    ``count``: how many lines answer, when that was asked; ``note``: what was not read or not understood, "" if nothing.
    """

    question: str
    found: bool
    hits: tuple[Hit, ...]
    stages: dict[str, float]
    count: int | None = None
    note: str = ""


def _row_of(log: LogFile, rank: Ranked) -> int:
    """Where a candidate begins. Records may all stand on one line."""
    return log.row_of(rank.line) if rank.pointer is None else log.row_with(rank.line, rank.value)


def ask(
    engine: Engine, log: LogFile, question: str, rows: Rows | None, on_progress: OnBytes, cancelled: Callable[[], bool]
) -> Asked:
    """Finds the line that answers, in the whole log or in some of its rows. The log must be folded.

    Raises:
        EngineError: nothing asked, no model with heads for lines, a file that can no longer be read, ...
    """
    found = locate(
        engine,
        log.subject if rows is None else log.folded,
        question,
        rows=rows,
        client="window",
        on_progress=on_progress,
        cancelled=cancelled,
    )
    hits = tuple(Hit(_row_of(log, rank), rank.line, rank.value, rank.confidence) for rank in found.ranking)
    stages = found.timing_ms | {"fold": log.fold_ms + found.timing_ms["fold"]}
    return Asked(question, found.found, hits, stages, found.count, found.note)
