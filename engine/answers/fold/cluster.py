"""Masks to templates, after Drain (He, Zhu, Zheng, Lyu: Drain, ICWS 2017).

A mask joins the template of its token count and label that has most words in common with it at the same places, if
those are at least half of the tokens behind the label; tokens in which they differ become slots. Only distinct masks
are looked at, a few thousand in a log of millions of rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from engine.answers.fold.masks import HOLE, Hashes, spaced, split

AGREEMENT = 0.5
CROWDED, CROWDED_AGREEMENT = 24, 0.25
"""Where so many templates have the same token count, label and first word, their other words are rather values."""
TEMPLATE_TOKENS = 200_000
"""Tokens of all templates, from which on a new mask joins any template of its token count: what has so many kinds of
rows is no log, and the memory for them must end somewhere."""
REMEMBERED = 200_000
"""Masks whose template is looked up, not searched."""
VALUES = 32
"""Distinct values that are kept of a slot."""

_SLOT, _UNKNOWN = 0, -1
_WORD = re.compile(rb"[A-Za-z\x80-\xff]")
_LABEL = re.compile(rb"[A-Za-z_][\w./-]*(?:[\[(][\x01\w./-]*[\])])?:")
_LEVELS = (
    rb"(?:TRACE|DEBUG\d?|INFO|NOTICE|LOG|WARN|WARNING|ERROR|ERR|SEVERE|CRIT|CRITICAL|ALERT|EMERG|FATAL|PANIC"
    rb"|DETAIL|HINT|STATEMENT|CONTEXT)"
)
_LEVEL = re.compile(_LEVELS + rb"|(?i:[\[<(]" + _LEVELS + rb"[\])>]:?|(?:level=|lvl=|severity=)?" + _LEVELS + rb":)")
"""Levels in capitals, in brackets or with a colon; ``error`` alone is a word like others."""
_LABELS = 1000
"""Distinct labels; where there are more they are values, not labels."""


@dataclass
class Template:
    """``tokens``: masks of the tokens, ``None`` for a slot in which masks differ. ``spaced``: whether white space
    stands before each. ``values``: by place, distinct raw tokens in order, up to ``VALUES``; ``more``: places that
    have others too."""

    number: int
    tokens: list[bytes | None]
    spaced: list[bool]
    first: int
    """The first of its rows."""
    label: bytes
    indented: bool
    count: int = 0
    values: dict[int, dict[bytes, None]] = field(default_factory=dict)
    more: set[int] = field(default_factory=set)

    @property
    def blank(self) -> bool:
        return not self.tokens

    def add_value(self, place: int, token: bytes) -> None:
        values = self.values.setdefault(place, {})
        if len(values) < VALUES:
            values[token] = None
        elif token not in values:
            self.more.add(place)


class _Group:
    """Templates of one token count and label: their tokens as numbers [templates, tokens].

    Positive numbers are words, negative ones what has no letter outside its holes; 0 is a slot.
    """

    def __init__(self, length: int, start: int) -> None:
        self.rows = np.empty((4, length), np.int32)
        self.templates: list[int] = []
        self._start = start
        """Tokens up to the label's end."""

    def add(self, row: npt.NDArray[np.int32], template: int) -> None:
        if len(self.templates) == len(self.rows):
            self.rows = np.concatenate([self.rows, np.empty_like(self.rows)])
        self.rows[len(self.templates)] = row
        self.templates.append(template)

    def nearest(self, row: npt.NDArray[np.int32]) -> int | None:
        """Place in the group of the template that a row joins; ``None``: it is like none of them."""
        rows = self.rows[: len(self.templates)]
        same = rows == row
        whole = np.flatnonzero(same.all(axis=1))
        if len(whole):
            return int(whole[0])
        same = same[:, self._start :] & (row[self._start :] > _SLOT)
        words = np.count_nonzero(same, axis=1)
        size = row.size - self._start
        best = int(words.argmax())
        if words[best] and words[best] >= AGREEMENT * size:
            return best
        crowd = np.flatnonzero(same[:, 0]) if size else whole
        if len(crowd) < CROWDED:
            return None
        best = int(crowd[words[crowd].argmax()])
        return best if words[best] >= CROWDED_AGREEMENT * size else None


class Clusters:
    """The templates found so far. ``templates[0]`` is that of blank rows."""

    def __init__(self) -> None:
        self.templates: list[Template] = []
        self._groups: dict[tuple[int, bytes, bool], _Group] = {}
        self._known: dict[int, int] = {}
        self._numbers: dict[bytes, int] = {}
        self._labels: set[bytes] = set()
        self._tokens = 0
        self._place(b"", 0, indented=False)

    def assign(
        self, hashes: Hashes, mask_of: Callable[[int], bytes], indented: npt.NDArray[np.bool_], first_row: int
    ) -> npt.NDArray[np.int32]:
        """The template of each row of a block, whose first one is ``first_row``; ``hashes`` tell masks apart."""
        distinct, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        numbers = np.empty(len(distinct), np.int32)
        keys = distinct.tolist()
        firsts = first.tolist()
        for i in np.argsort(first).tolist():
            number = self._known.get(keys[i])
            if number is None:
                row = firsts[i]
                number = self._place(mask_of(row), first_row + row, indented=bool(indented[row]))
                if len(self._known) >= REMEMBERED:
                    self._known.clear()
                self._known[keys[i]] = number
            numbers[i] = number
        rows = numbers[inverse]
        for number, count in enumerate(np.bincount(rows, minlength=1).tolist()):
            if count:
                self.templates[number].count += count
        return rows

    def _place(self, mask: bytes, row: int, *, indented: bool) -> int:
        tokens = split(mask)
        if not tokens and self.templates:
            return 0
        loose = self._tokens >= TEMPLATE_TOKENS
        at = None if loose else self._label(tokens)
        label = b"" if at is None else tokens[at]
        key = (len(tokens), label, loose or indented)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(len(tokens), 0 if at is None else at + 1)
        numbers = np.array([self._numbers.get(token, _UNKNOWN) for token in tokens], np.int32)
        if group.templates:
            place = group.nearest(numbers)
            if place is None and loose:
                place = 0
            if place is not None:
                self._merge(group, place, tokens, numbers)
                return group.templates[place]
        template = Template(len(self.templates), list(tokens), spaced(mask), row, label, indented)
        self.templates.append(template)
        self._tokens += len(tokens)
        group.add(np.array([self._number(token) for token in tokens], np.int32), template.number)
        return template.number

    def _number(self, token: bytes) -> int:
        count = len(self._numbers) + 2
        return self._numbers.setdefault(token, count if _WORD.search(token) else -count)

    def _merge(self, group: _Group, place: int, tokens: Sequence[bytes], numbers: npt.NDArray[np.int32]) -> None:
        template = self.templates[group.templates[place]]
        row = group.rows[place]
        for i in np.flatnonzero(row != numbers).tolist():
            old = template.tokens[i]
            if old is not None:
                row[i] = _SLOT
                template.tokens[i] = None
                if HOLE not in old:
                    template.add_value(i, old)
            if HOLE not in tokens[i]:
                template.add_value(i, tokens[i])

    def _label(self, tokens: Sequence[bytes]) -> int | None:
        """Which token says what a row is from: a program, a unit, a level."""
        for i, token in enumerate(tokens[:4]):
            if _LEVEL.fullmatch(token) or (i < 3 and _LABEL.fullmatch(token) and (i == 0 or token[-2:-1] in b"])")):
                if token in self._labels or len(self._labels) < _LABELS:
                    self._labels.add(token)
                    return i
                return None
        return None
