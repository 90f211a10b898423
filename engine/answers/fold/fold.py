"""A text folded into templates: block by block, so that memory does not grow with what is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.answers.fold.clock import Clock, Kinds
from engine.answers.fold.cluster import Clusters, Template
from engine.answers.fold.dates import NONE
from engine.answers.fold.entries import Entries
from engine.answers.fold.masks import mask, split, tokens_of
from engine.answers.fold.page import PLAIN, Page
from engine.answers.fold.slots import Slots
from engine.answers.fold.source import Block, OnBytes, Source
from engine.answers.fold.stamps import find_stamps

SAMPLE = 2000
"""Rows that tell a log from prose."""

Rows = npt.NDArray[np.int64]
_Column = npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | npt.NDArray[np.uint32]


@dataclass(frozen=True)
class _Folded:
    """Columns of a block's rows, as narrow as they can be; one value where all rows have the same."""

    first: int
    count: int
    first_entry: int
    templates: _Column
    heads: npt.NDArray[np.bool_]
    times: npt.NDArray[np.int64] | None
    stamp_starts: _Column
    stamp_lengths: _Column


class Fold:
    """What is known of a text's rows: ``templates[0]`` is that of blank ones. See ``fold``."""

    def __init__(self, source: Source, templates: list[Template], blocks: list[_Folded], kinds: Kinds) -> None:
        self.source = source
        self.templates = templates
        self.kinds = kinds
        self._blocks = blocks
        self._firsts = np.array([block.first for block in blocks], np.int64)
        last = blocks[-1] if blocks else None
        self.rows = last.first + last.count if last else 0
        self.entries = last.first_entry + _true(last.heads, last.count) if last else 0

    @property
    def time_range(self) -> tuple[int, int]:
        """The earliest and the latest time of a row; ``stamps.NONE`` both if there is none."""
        known = [times[times != NONE] for block in self._blocks if (times := block.times) is not None]
        lows, highs = ([int(f(times)) for times in known if len(times)] for f in (np.min, np.max))
        return (min(lows), max(highs)) if lows else (NONE, NONE)

    def template_of(self, rows: Rows) -> npt.NDArray[np.int64]:
        return self._gather(rows, lambda block, at: _at(block.templates, at))

    def times_of(self, rows: Rows) -> npt.NDArray[np.int64]:
        """Microseconds since 1970, as written; ``stamps.NONE`` where the log says no time."""
        return self._gather(rows, lambda block, at: np.full(len(at), NONE) if block.times is None else block.times[at])

    def entry_of(self, rows: Rows) -> npt.NDArray[np.int64]:
        """The number, from 0, of the entry that each row belongs to."""

        def entries(block: _Folded, at: Rows) -> npt.NDArray[np.int64]:
            heads = np.broadcast_to(block.heads, block.count)
            return block.first_entry - 1 + np.cumsum(heads)[at]

        return self._gather(rows, entries)

    def entry_rows(self, entry: int) -> range:
        """The rows of an entry."""
        if not 0 <= entry < self.entries:
            raise IndexError(f"entry {entry} of {self.entries}")
        return range(self._head(entry), self._head(entry + 1) if entry + 1 < self.entries else self.rows)

    def heads(self) -> Rows:
        """The rows that begin entries."""
        parts = [np.flatnonzero(np.broadcast_to(block.heads, block.count)) + block.first for block in self._blocks]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def rows_of(self, templates: Iterable[int]) -> Rows:
        """All rows of some templates, in order."""
        wanted = np.zeros(len(self.templates), np.bool_)
        wanted[list(templates)] = True
        parts = [np.flatnonzero(np.broadcast_to(wanted[b.templates], b.count)) + b.first for b in self._blocks]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def lines_of(self, rows: Rows) -> npt.NDArray[np.int64]:
        """The numbers, from 1, of the lines that rows stand on."""
        return self.source.lines_of(rows)

    def tokens(self, row: int) -> list[bytes]:
        """A row's tokens without its time, as many as its template has."""
        raw = self.source.row_bytes(row)
        block = self._blocks[int(np.searchsorted(self._firsts, row, "right")) - 1]
        at = np.array([row - block.first])
        start, length = int(_at(block.stamp_starts, at)[0]), int(_at(block.stamp_lengths, at)[0])
        return split(raw[:start].translate(PLAIN) + b" " * length + raw[start + length :].translate(PLAIN))

    def _gather(
        self, rows: Rows, of: Callable[[_Folded, Rows], npt.NDArray[np.int64] | _Column]
    ) -> npt.NDArray[np.int64]:
        out = np.empty(len(rows), np.int64)
        which = np.searchsorted(self._firsts, rows, "right") - 1
        for number in np.unique(which).tolist():
            mine = which == number
            block = self._blocks[number]
            out[mine] = of(block, rows[mine] - block.first)
        return out

    def _head(self, entry: int) -> int:
        firsts = [block.first_entry for block in self._blocks]
        number = int(np.searchsorted(np.array(firsts), entry, "right")) - 1
        block = self._blocks[number]
        return block.first + int(np.flatnonzero(np.broadcast_to(block.heads, block.count))[entry - block.first_entry])


def fold(source: Source, on_bytes: OnBytes | None = None) -> Fold:
    """Folds a whole text.

    Raises:
        EngineError: the file can no longer be read; and whatever ``on_bytes`` raises.
    """
    folder = _Folder()
    for block in source.blocks():
        folder.add(block)
        if on_bytes is not None:
            on_bytes(block.done, source.size)
    return folder.finish(source)


def share_folded(source: Source) -> float:
    """The share of a text's first rows that have a template of two rows or more: at least half in a log."""
    folder = _Folder()
    for block in source.blocks():
        rows = min(block.count, SAMPLE)
        data = b"".join(block.data.splitlines(keepends=True)[:rows]) if rows < block.count else block.data
        folder.add(Block(block.first, rows, data, block.further[block.further < rows], block.done))
        break
    templates = folder.clusters.templates[1:]
    rows = sum(template.count for template in templates)
    return sum(template.count for template in templates if template.count > 1) / rows if rows else 0.0


class _Folder:
    """Folds block by block."""

    def __init__(self) -> None:
        self.clusters = Clusters()
        self._slots = Slots()
        self._entries = Entries()
        self._clock = Clock()
        self._blocks: list[_Folded] = []
        self._first_entry = 0

    def add(self, block: Block) -> None:
        page = Page(block.data)
        stamps = find_stamps(page)
        indented = page.indented()
        starts, lengths = np.zeros((2, page.rows), np.int64)
        starts[stamps.rows] = stamps.starts - page.starts[stamps.rows]
        lengths[stamps.rows] = stamps.ends - stamps.starts
        page.blank(stamps.starts, stamps.ends)
        masked = mask(page, indented)
        tokens = tokens_of(page, masked.hole_starts)
        templates = self.clusters.assign(masked.hashes, masked.of, indented, block.first)
        self._slots.collect(page, tokens, templates, self.clusters.templates)
        blank = tokens.counts == 0
        blank[stamps.rows] = False
        heads = self._entries.heads(page, block.data, stamps.rows, blank, block.further)
        times = self._clock.times(stamps, page.rows)
        self._blocks.append(
            _Folded(
                first=block.first,
                count=page.rows,
                first_entry=self._first_entry,
                templates=_narrow(templates),
                heads=heads[:1] if heads.all() or not heads.any() else heads,
                times=times,
                stamp_starts=_narrow(starts),
                stamp_lengths=_narrow(lengths),
            )
        )
        self._first_entry += int(np.count_nonzero(heads))

    def finish(self, source: Source) -> Fold:
        return Fold(source, self.clusters.templates, self._blocks, self._clock.kinds)


def _narrow(values: npt.NDArray[np.int64] | npt.NDArray[np.int32]) -> _Column:
    highest = int(values.max())
    if int(values.min()) == highest:
        values = values[:1]
    if highest < 1 << 8:
        return values.astype(np.uint8)
    return values.astype(np.uint16) if highest < 1 << 16 else values.astype(np.uint32)


def _at(column: _Column, at: Rows) -> _Column:
    return column[at] if len(column) > 1 else column[np.zeros_like(at)]


def _true(heads: npt.NDArray[np.bool_], count: int) -> int:
    return int(np.count_nonzero(np.broadcast_to(heads, count)))
