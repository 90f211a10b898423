"""A text as what can be an answer (rows of a log, sentences, records), and as the lines that a model reads first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from engine.answers.fold.fold import Fold
from engine.answers.fold.records import Records
from engine.answers.fold.render import Count, fitted, render_rows
from engine.answers.fold.table import Table
from engine.answers.locate.answer import Ranked
from engine.answers.locate.lexical import Words, blocks_of
from engine.answers.segments import Kind, Segment

Units = npt.NDArray[np.int64]

CHARACTERS = 1 << 16
"""Characters of an answer's value; of a longer line the part that answers is given."""
SHOWN = 1200
"""Characters that are read of a candidate at the end."""
TRACE, CAUSE = 200, 240
"""Rows of a trace that are looked through for its cause, and characters that are read of it."""
_HEADLINE = re.compile(r"Traceback \(|During handling of|The above exception|goroutine \d|[)\]}]")
"""Rows of traces that are not indented and name no cause."""


@dataclass(frozen=True)
class Overview:
    """``lines``: what is read first, each standing for the units of ``members`` at its place; ``header``: what is read
    before them. ``left_out``: lines for which there was no room."""

    lines: list[str]
    members: list[Units]
    header: tuple[str, ...] = ()
    left_out: int = 0


class Corpus(Protocol):
    """``units``: how many candidates there are; they are numbered from 0."""

    kind: Kind
    units: int

    def blocks(self) -> Iterator[bytes]:
        """All units in order, as UTF-8, each ended by a newline."""

    def overview(self, room: int, count: Count, words: Words) -> Overview:
        """Lines of at most ``room`` tokens for the whole text."""

    def shown(self, unit: int) -> str:
        """A candidate as it is read at the end, on one line."""

    def alike(self, units: Units) -> list[tuple[str, Units]]:
        """Units of one overview line as what tells them apart, those that read the same together."""

    def ranked(self, unit: int, confidence: float) -> Ranked: ...


class LogCorpus:
    """Rows of a log; the model first reads their templates."""

    kind: Kind = "log"

    def __init__(self, fold: Fold) -> None:
        self.fold = fold
        self.units = fold.rows
        self._source = fold.source
        self._blank = fold.source.lines_of(fold.rows_of([0])) if fold.rows else np.zeros(0, np.int64)

    def blocks(self) -> Iterator[bytes]:
        for block in self._source.blocks():
            yield block.data

    def overview(self, room: int, count: Count, words: Words) -> Overview:
        """The same for every question, so that the next one finds it read: where there are too many templates, those
        of the fewest rows, which say what is special."""
        lines, tokens = fitted(self.fold, room, count)
        kept = lines
        if tokens > room:
            sizes = count([line.text + "\n" for line in lines])
            order = sorted(range(len(lines)), key=lambda i: (lines[i].count, i))
            inside = np.cumsum([sizes[i] for i in order]) <= room
            chosen = sorted(i for i, fits in zip(order, inside, strict=True) if fits)
            kept = [lines[i] for i in chosen]
        members = [self.fold.rows_of([line.template]) for line in kept]
        return Overview([line.text for line in kept], members, left_out=len(lines) - len(kept))

    def shown(self, unit: int) -> str:
        """A row; of a trace's first one also what the trace names as its cause."""
        text = self._source.row(unit)
        place = int(np.searchsorted(self._heads, unit))
        if self._heads[place] == unit and len(text) < CAUSE:
            below = range(unit + 1, min(int(self._heads[place + 1]), unit + 1 + TRACE))
            text = " ".join([text, *self._causes(below)])
        return text[:SHOWN]

    @cached_property
    def _heads(self) -> Units:
        """Rows that begin entries, and behind them the number of rows."""
        return np.append(self.fold.heads(), self.units)

    def _causes(self, rows: range) -> list[str]:
        """Of a trace's rows those that are no frame: the first and the last."""
        plain = [text for row in rows if (text := self._source.row(row))[:1].strip() and not _HEADLINE.match(text)]
        return [text[:CAUSE] for text in dict.fromkeys([*plain[:1], *plain[-1:]])]

    def alike(self, units: Units) -> list[tuple[str, Units]]:
        return [(line.text, line.rows) for line in render_rows(self.fold, units)]

    def ranked(self, unit: int, confidence: float) -> Ranked:
        line = self._source.line_of(unit)
        long = len(self._source.rows_of(line)) * 4096 > CHARACTERS
        value = self._source.row(unit) if long else self._source.line(line)
        return Ranked(line - 1 - int(np.searchsorted(self._blank, line)), line, value, confidence)


class ProseCorpus:
    """Sentences, read as they are."""

    kind: Kind = "prose"

    def __init__(self, sentences: Sequence[Segment]) -> None:
        self._sentences = sentences
        self.units = len(sentences)

    def blocks(self) -> Iterator[bytes]:
        return blocks_of(sentence.value for sentence in self._sentences)

    def overview(self, room: int, count: Count, words: Words) -> Overview:
        """Where there are too many sentences, those with most of the question's words, and then the first."""
        order = np.argsort(-words.total, kind="stable")
        chosen: list[int] = []
        for at in range(0, len(order), 256):
            batch = order[at : at + 256].tolist()
            sizes = count([self._sentences[i].value + "\n" for i in batch])
            fits = [i for i, total in zip(batch, np.cumsum(sizes).tolist(), strict=True) if total <= room]
            chosen += fits
            room -= sum(sizes[: len(fits)])
            if len(fits) < len(batch):
                break
        chosen = sorted(chosen) or order[:1].tolist()
        lines = [self._sentences[i].value for i in chosen]
        return Overview(lines, [np.array([i]) for i in chosen], left_out=self.units - len(chosen))

    def shown(self, unit: int) -> str:
        return self._sentences[unit].value[:SHOWN]

    def alike(self, units: Units) -> list[tuple[str, Units]]:
        return [(self.shown(unit), np.array([unit])) for unit in units.tolist()]

    def ranked(self, unit: int, confidence: float) -> Ranked:
        sentence = self._sentences[unit]
        return Ranked(unit, sentence.line, sentence.value, confidence)


class RecordCorpus:
    """Records; the model first reads a table of them, or of groups of them if they are many."""

    kind: Kind = "records"

    def __init__(self, records: Records) -> None:
        self._records = records
        self._table = Table(records)
        self.units = len(records)

    def blocks(self) -> Iterator[bytes]:
        return blocks_of(map(self._records.text, range(self.units)))

    def overview(self, room: int, count: Count, words: Words) -> Overview:
        lines, tokens = self._table.fitted(room, count)
        head = tuple(self._table.head())
        if tokens <= room:
            return Overview([line.text for line in lines], [line.records for line in lines], head)
        return Overview([], [], left_out=self.units)

    def shown(self, unit: int) -> str:
        return self._records.text(unit)[:SHOWN]

    def alike(self, units: Units) -> list[tuple[str, Units]]:
        return [(line.text, line.records) for line in self._table.rows(units.tolist())]

    def ranked(self, unit: int, confidence: float) -> Ranked:
        records = self._records
        return Ranked(unit, records.line(unit), records.text(unit), confidence, records.pointer(unit))
