"""The labels of ``written/labels`` and which of them stand on one screen.

Labels are written by subject ("Spreadsheets", "A shop: cart and checkout"), neighbours being near misses of each other.
A screen has one or two subjects and takes runs of neighbours from them, as a menu or a navigation bar does; the file
``general`` is stock for all screens. Both are weighed so that every label is drawn about equally often.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from assets.ember.recipe.written import is_unseen, sections

_SETTINGS = ("c", "f")
"""Kinds for which a screen may have one subject more: a dialog or form beside what it is about."""
GENERAL, WEB = "general", "web"
"""The file whose labels belong to no subject, and the one of web pages."""
_ALSO = {"l": "lbm"}
"""Kinds of element (letters as in the files) that carry labels of other kinds too: lists show commands as well."""
_OPENS = {"l": {"b": 0.4, "m": 0.4}, "n": {"m": 1.0}}
"""What labels of other kinds count for when a screen looks for a subject for a kind: what begins with menus is a
program with commands, what begins with links is seldom one."""
_WANTED = {"l": 18.8, "t": 7.4, "c": 3.6, "f": 3.0, "b": 2.2, "m": 1.5, "n": 0.6, "h": 0.8}
"""Labels that a drawn screen asks for, by kind; of menus without those that are usual (measured on 400)."""
_LOYAL = 0.93
"""Share of the labels that come from the same subject as the last one for such an element, if that has any left."""
_OPENED = {"l": 0.47, "h": 0.30, "b": 0.32, "f": 0.30, "t": 0.24, "c": 0.22, "n": 0.11, "m": 0.03}
"""Subjects that a drawn screen begins with for each kind (measured; headings of tables so that their subjects are as
frequent as others)."""


@dataclass(frozen=True)
class Row:
    """A line of ``written/labels``: spellings of one label, kinds of element it stands on, phrases for what it is for
    (those that begin with "=" are sentences of their own). ``keys`` are its spellings as ``sense`` gives them."""

    file: str
    spellings: tuple[str, ...]
    kinds: frozenset[str]
    phrases: tuple[str, ...]
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Stock:
    """All rows in the order of the files; ``subjects`` as (first, end) of neighbouring rows, ``general`` the same for
    the common ones; ``weights`` of rows from 0.5 to 1, higher for those that fewer elements can carry."""

    rows: tuple[Row, ...]
    subjects: tuple[tuple[int, int], ...]
    general: tuple[int, int]
    weights: tuple[float, ...]


def sense(text: str) -> str:
    """A text as it is compared with others: its letters and digits."""
    return re.sub(r"[^a-z0-9]+", " ", text.lower()).strip()


def taught(spellings: tuple[str, ...] | list[str], phrases: tuple[str, ...] | list[str], *, held: bool) -> list[str]:
    """The phrases of a row that are asked: in training all but the last, and none of an unseen row, whose labels are
    only read there; on held-out screens what is left of them."""
    if is_unseen(spellings[0]):
        return list(phrases) if held else []
    return list(phrases[-1:]) if held else list(phrases[:-1] or phrases)


@lru_cache
def _by_name() -> dict[str, tuple[int, ...]]:
    found: dict[str, list[int]] = {}
    for i in (*range(*stock().general), *range(len(stock().rows))):
        for name in stock().rows[i].spellings:
            found.setdefault(name, []).append(i)
    return {name: tuple(dict.fromkeys(rows)) for name, rows in found.items()}


def known_as(name: str) -> tuple[int, ...]:
    """Rows with exactly this spelling, common ones first."""
    return _by_name().get(name, ())


def _row(file: str, line: str) -> Row:
    spellings, kinds, phrases = line.split("|")
    texts = tuple(s.strip() for s in spellings.split(";"))
    return Row(
        file,
        texts,
        frozenset(kinds.split()),
        tuple(p.strip() for p in phrases.split(";") if p.strip()),
        tuple(dict.fromkeys(sense(text) for text in texts)),
    )


def _balanced(rows: list[Row], rounds: int = 12) -> list[float]:
    """Weights with which rows picked for the elements of ``_WANTED`` are picked about equally often."""
    weights = [1.0] * len(rows)
    for _ in range(rounds):
        reach = [0.0] * len(rows)
        for kind, wanted in _WANTED.items():
            fit = [i for i, row in enumerate(rows) if kind in row.kinds]
            total = sum(weights[i] for i in fit)
            for i in fit:
                reach[i] += wanted * weights[i] / total
        mean = sum(reach) / len(reach)
        weights = [w * (mean / r if r else 1.0) ** 0.7 for w, r in zip(weights, reach, strict=True)]
    usual = sorted(weights)[len(weights) // 2]
    return [min(1.0, max(0.5, w / usual)) for w in weights]


def load_labels() -> list[tuple[list[str], str, list[str]]]:
    """(spellings, kinds, phrases) of every row."""
    return [(list(row.spellings), " ".join(sorted(row.kinds)), list(row.phrases)) for row in stock().rows]


@lru_cache
def stock() -> Stock:
    rows: list[Row] = []
    subjects, general, weights = [], (0, 0), []
    for file, _, lines in sections("labels"):
        fresh = [_row(file, line) for line in lines]
        span = (len(rows), len(rows) + len(fresh))
        rows += fresh
        weights += _balanced(fresh)
        if file == GENERAL:
            general = (general[0] if general[1] else span[0], span[1])
        else:
            subjects.append(span)
    return Stock(tuple(rows), tuple(subjects), general, tuple(weights))


@lru_cache
def _picks(kind: str) -> tuple[list[int], list[float]]:
    """General rows for a kind and their accumulated weights."""
    known = stock()
    fit = [i for i in range(*known.general) if kind in known.rows[i].kinds]
    return fit, list(itertools.accumulate(known.weights[i] for i in fit))


def _share(first: int, end: int, kind: str) -> float:
    """How well a subject serves a kind: the share of its rows that stand on it."""
    counts = {kind: 1.0} | _OPENS.get(kind, {})
    rows = stock().rows[first:end]
    return sum(max(counts.get(letter, 0.0) for letter in row.kinds) for row in rows) / len(rows)


@lru_cache
def _worth(rounds: int = 30) -> dict[int, float]:
    """Subject's first row -> weight, such that its rows come about as often as those of others, small or large: a
    screen takes some five rows and a fifth of a subject, at most 0.7 of it (measured)."""
    subjects = stock().subjects
    wanted = {a: (b - a) / min(0.7 * (b - a), 5 + 0.2 * (b - a)) for a, b in subjects}
    shares = {kind: {a: _share(a, b, kind) for a, b in subjects} for kind in _OPENED}
    worth = dict.fromkeys(wanted, 1.0)
    for _ in range(rounds):
        opened = dict.fromkeys(wanted, 0.0)
        for kind, times in _OPENED.items():
            total = sum(shares[kind][a] * worth[a] for a in worth)
            for a in worth:
                opened[a] += times * shares[kind][a] * worth[a] / total if total else 0.0
        scale = sum(opened.values()) / sum(wanted.values())
        worth = {a: w * (wanted[a] * scale / opened[a]) ** 0.7 if opened[a] else w for a, w in worth.items()}
    return worth


@lru_cache
def _openings(kind: str) -> tuple[list[tuple[int, int]], list[float]]:
    """Subjects that a screen may begin with when it asks for a kind, and their accumulated weights."""
    fit = [(a, b) for a, b in stock().subjects if _share(a, b, kind)]
    return fit, list(itertools.accumulate(_share(a, b, kind) * _worth()[a] for a, b in fit))


class Subjects:
    """What one screen is about: one or two runs through subjects, each from a random row on and round."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.most = rng, rng.choice((1, 2, 2))
        self.runs: list[tuple[int, int, int]] = []
        """(first row of the subject, its end, row that comes next)"""
        self.used: set[int] = set()
        self._served: dict[str, int] = {}
        """Kind of element -> the run that gave its last label: a menu stays with one subject."""

    def general(self, kind: str) -> int | None:
        """A common row for a kind of element."""
        fit, weights = _picks(kind)
        return self.rng.choices(fit, cum_weights=weights)[0] if fit else None

    def candidates(self, kind: str) -> Iterator[int]:
        """Rows of the screen's subjects for a kind of element, the next of a run first. A taken one is to be said with
        ``take``."""
        order = list(range(len(self.runs)))
        self.rng.shuffle(order)
        if self.rng.random() < _LOYAL:
            order.sort(key=lambda run: run != self._served.get(kind))
        for run in order:
            yield from self._along(run, kind)
        if len(self.runs) < self.most + (kind in _SETTINGS):
            fit, weights = _openings(kind)
            if fit:
                first, end = self.rng.choices(fit, cum_weights=weights)[0]
                if all(first != run[0] for run in self.runs):
                    self.runs.append((first, end, self.rng.randrange(first, end)))
                    yield from self._along(len(self.runs) - 1, kind)

    def _along(self, run: int, kind: str) -> Iterator[int]:
        known = stock()
        first, end, at = self.runs[run]
        letters = _ALSO.get(kind, kind)
        for i in (*range(at, end), *range(first, at)):
            fit = i not in self.used and not known.rows[i].kinds.isdisjoint(letters)
            if fit and self.rng.random() < known.weights[i]:
                self._served[kind] = run
                yield i

    def take(self, row: int) -> None:
        """Say that a row is on the screen: its run goes on after it."""
        self.used.add(row)
        self.runs = [(a, b, row + 1 if row + 1 < b else a) if a <= row < b else (a, b, at) for a, b, at in self.runs]

    def missing(self) -> list[int]:
        """Rows of the screen's subjects that are not on it, those near to ones that are first."""
        rest = [i for a, b, _ in self.runs for i in range(a, b) if i not in self.used]
        return sorted(rest, key=lambda i: min((abs(i - j) for j in self.used), default=0) + 3 * self.rng.random())
