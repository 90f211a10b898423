"""Records with their schema folded: what all have in common once, what differs as a table, or as groups if that is
too long for a window.

    All records: currency=EUR
    Columns: id | name | url https://shop.example/ | stock
    17 | kettle | p/17 | 4
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from engine.answers.fold.records import Number, Records, spelled
from engine.answers.fold.render import Count, common_start

FEW = 255
"""Distinct values of a column that records can be grouped by."""
SHOWN = 3
"""Values that a group shows of any other column."""

_BARE = re.compile(r"(?!-?\d|true$|false$|null$)[^\s|\"\x00-\x1f\x7f](?:[^|\x00-\x1f\x7f]*[^\s|\x00-\x1f\x7f])?")
"""A text that needs no quotes to be told from numbers, words of JSON and the table's own bars."""

Keys = tuple[str, ...]
RowNumbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RecordLine:
    """A line of the table; ``records``: the numbers of those that it stands for."""

    text: str
    records: RowNumbers


@dataclass
class Column:
    """Values of one path. ``codes``: of each record up to the last that has it, 0 is absent; ``None`` if there are
    more than ``FEW`` values."""

    path: Keys
    present: int = 0
    values: dict[str, int] = field(default_factory=dict)
    codes: bytearray | None = field(default_factory=bytearray)
    edges: tuple[str, str, str, str] | None = None
    """The least and greatest value, read forwards and backwards: what they begin with, all do."""
    before: str = ""
    after: str = ""

    @property
    def name(self) -> str:
        return _name(self.path)

    @property
    def title(self) -> str:
        """The name, and what all values begin and end with."""
        shared = f"{self.before}…{self.after}" if self.after else self.before
        return f"{self.name} {shared}" if shared else self.name

    def add(self, number: int, cell: str) -> None:
        self.present += 1
        back = cell[::-1]
        if self.edges is None:
            self.edges = (cell, cell, back, back)
        else:
            low, high, back_low, back_high = self.edges
            self.edges = (min(low, cell), max(high, cell), min(back_low, back), max(back_high, back))
        if self.codes is None:
            return
        code = self.values.setdefault(cell, len(self.values) + 1)
        if code > FEW:
            self.codes = None
            self.values = {}
        else:
            self.codes.extend(bytes(number - len(self.codes)))
            self.codes.append(code)

    def finish(self) -> None:
        """Finds what all values begin and end with, up to a word's edge."""
        assert self.edges is not None
        low, high, back_low, back_high = self.edges
        if low == high:
            return
        self.before = re.sub(r"\w+$", "", common_start([low, high]))
        self.after = re.sub(r"^\w+", "", common_start([back_low, back_high])[::-1])
        if any(len(value) < len(self.before) + len(self.after) for value in (low, high)):
            self.after = ""

    def cut(self, cell: str) -> str:
        inner = cell[len(self.before) :]
        return inner[: len(inner) - len(self.after)] if self.after and len(inner) >= len(self.after) else inner


class Table:
    """The schema of all records, found in one pass; their rows are read again when they are rendered."""

    def __init__(self, records: Records, on_records: Callable[[int, int], None] | None = None) -> None:
        """``on_records`` is called with (records done, in all); what it raises ends the work."""
        self.records = records
        self._columns: dict[Keys, Column] = {}
        for number, value in enumerate(records.values()):
            for path, cell in cells(value):
                self._columns.setdefault(path, Column(path)).add(number, cell)
            if on_records is not None:
                on_records(number + 1, len(records))
        for column in self._columns.values():
            column.finish()
        whole = [column for column in self._columns.values() if column.present == len(records)]
        self.constant = [column for column in whole if len(column.values) == 1]
        varying = [column for column in self._columns.values() if column not in self.constant]
        self.columns = [column for column in varying if 2 * column.present >= len(records)]
        self.sparse = {column.path for column in varying if 2 * column.present < len(records)}
        self._constant = {column.path for column in self.constant}

    def head(self) -> list[str]:
        """What stands above the rows."""
        lines = []
        if self.constant:
            lines.append("All records: " + ", ".join(f"{c.name}={next(iter(c.values))}" for c in self.constant))
        if self.columns:
            lines.append("Columns: " + " | ".join(column.title.rstrip() for column in self.columns))
        return lines

    def rows(self, numbers: Iterable[int] | None = None) -> list[RecordLine]:
        """A line for each record, in order; records that read the same share one."""
        wanted = None if numbers is None else set(numbers)
        found: dict[str, list[int]] = {}
        for number, value in enumerate(self.records.values()):
            if wanted is None or number in wanted:
                found.setdefault(self._row(value), []).append(number)
        return [RecordLine(text, np.array(mine, np.int64)) for text, mine in found.items()]

    def _row(self, value: object) -> str:
        mine = dict(cells(value))
        parts = [column.cut(mine[column.path]) if column.path in mine else "" for column in self.columns]
        parts += [f"{_name(path)}={cell}" for path, cell in mine.items() if path in self.sparse]
        return " | ".join(parts)

    def fitted(self, room: int, count: Count) -> tuple[list[RecordLine], int]:
        """The rows if they and the head take no more than ``room`` tokens, else as many groups as do; and the tokens.
        If not even one group does, it is that."""
        head = sum(count([line + "\n" for line in self.head()]))
        if 2 * len(self.records) <= room:  # no row has less than a token and its newline
            lines = self.rows()
            tokens = head + sum(count([line.text + "\n" for line in lines]))
            if tokens <= room:
                return lines, tokens
        groupings = groupings_of(self.columns, len(self.records), most=max(1, room // 4))
        groups = self._groups(groupings[-1])
        while True:
            ids = groupings.pop()
            lines = self._lines(groups, ids)
            tokens = head + sum(count([line.text + "\n" for line in lines]))
            if tokens <= room or not groupings:
                return lines, tokens
            groups = _merged(groups, ids, groupings[-1])

    def _groups(self, ids: RowNumbers) -> list[_Group]:
        """What the records of each group hold."""
        groups = [_Group({}) for _ in range(int(ids.max()) + 1)]
        for value, group in zip(self.records.values(), ids.tolist(), strict=True):
            for path, cell in cells(value):
                groups[group].few.setdefault(path, _Few()).add(cell)
        return groups

    def _lines(self, groups: Sequence[_Group], ids: RowNumbers) -> list[RecordLine]:
        order = np.argsort(ids, kind="stable")
        members = np.split(order, np.flatnonzero(np.diff(ids[order])) + 1)
        lines = []
        for group, mine in zip(groups, members, strict=True):
            parts = [self._summary(path, few) for path, few in group.few.items() if path not in self._constant]
            lines.append(RecordLine(" | ".join(parts) + (f" (×{len(mine)})" if len(mine) > 1 else ""), mine))
        return lines

    def _summary(self, path: Keys, few: _Few) -> str:
        column = self._columns[path]
        shown = "|".join(map(column.cut, few.first))
        if few.last not in few.first:
            shown += "…" + column.cut(few.last)
        return f"{column.name}={shown}"


@dataclass
class _Few:
    """The first distinct values of a column in a group, and the last one seen."""

    first: list[str] = field(default_factory=list)
    last: str = ""

    def add(self, cell: str) -> None:
        if len(self.first) < SHOWN and cell not in self.first:
            self.first.append(cell)
        self.last = cell

    def follow(self, other: _Few) -> None:
        for cell in other.first:
            self.add(cell)
        self.last = other.last


@dataclass
class _Group:
    few: dict[Keys, _Few]


def groupings_of(columns: Sequence[Column], count: int, most: int) -> list[RowNumbers]:
    """Ways to group ``count`` records, each finer than the one before, the first with one group and none with more
    than ``most``: by columns of few values, fewest first, and then by cutting the groups into runs."""
    ids = np.zeros(count, np.int64)
    out = [ids]
    usable = [column for column in columns if column.codes is not None]
    for column in sorted(usable, key=lambda column: len(column.values)):
        assert column.codes is not None
        codes = np.zeros(count, np.int64)
        codes[: len(column.codes)] = np.frombuffer(column.codes, np.uint8)
        finer = _numbered(ids * (FEW + 1) + codes)
        if int(finer.max()) + 1 > most:
            continue
        if int(finer.max()) > int(ids.max()):
            out.append(finer)
        ids = finer
    order = np.argsort(ids, kind="stable")
    sizes = np.bincount(ids)
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    parts = 2
    while True:
        finer = _numbered(ids * parts + rank * parts // sizes[ids])
        if int(finer.max()) + 1 > most or int(finer.max()) <= int(out[-1].max()):
            return out
        out.append(finer)
        parts *= 2


def _numbered(keys: RowNumbers) -> RowNumbers:
    """Group numbers from 0 for equal keys, in the order of the keys."""
    return np.unique(keys, return_inverse=True)[1].astype(np.int64)


def _merged(groups: Sequence[_Group], ids: RowNumbers, coarser: RowNumbers) -> list[_Group]:
    parents = np.zeros(len(groups), np.int64)
    parents[ids] = coarser
    out = [_Group({}) for _ in range(int(coarser.max()) + 1)]
    for group, parent in zip(groups, parents.tolist(), strict=True):
        for path, few in group.few.items():
            out[parent].few.setdefault(path, _Few()).follow(few)
    return out


def cells(value: object, path: Keys = ()) -> list[tuple[Keys, str]]:
    """Paths and texts of a record's values. Objects are gone into; an array is one value."""
    if isinstance(value, dict) and value:
        return [cell for key, inner in value.items() for cell in cells(inner, (*path, key))]
    return [(path, _cell(value))]


def _name(path: Keys) -> str:
    """Keys with dots between them."""
    return ".".join(key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False) for key in path) or "value"


def _cell(value: object) -> str:
    if isinstance(value, str) and not isinstance(value, Number):
        return value if _BARE.fullmatch(value) else json.dumps(value, ensure_ascii=False)
    return spelled(value)
