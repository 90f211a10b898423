"""Rows as masks: what varies from event to event becomes a hole, and rows with one mask share a hash.

A *token* stands between white space, or ends with a comma, semicolon or bar; of a row with very many, the last one
is all the rest. A *hole* is a word with a digit in it, a
chain of such words (10.0.0.1:443, 2026-11-30, 0.2.11-14) or a path. Everything is done for a block at once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from engine.answers.fold.page import DIGIT, JOINER, PAD, PATH, SPACE, SPLITTER, WORD, Bytes, Page, Positions, spread
from engine.answers.fold.source import LONGEST

HOLE = 1
"""The byte of a mask that stands for a hole. Rows have no such byte: control characters are spaces."""
TOKENS = 128
"""Tokens of a row."""
_TOKEN = re.compile(rb"[^ ,;|]*[,;|]+|[^ ,;|]+")

Hashes = npt.NDArray[np.uint64]


_RANDOM = np.random.default_rng()
_LETTERS = _RANDOM.integers(0, 1 << 64, 256, np.uint64)
_PLACES = _RANDOM.integers(0, 1 << 64, 4 * LONGEST + 1, np.uint64) | np.uint64(1)
"""What a byte adds to a hash, times a factor for its place. Other ones in each process: nobody can write rows that
are taken for one another. Nothing but the hashes depends on them."""
_INDENTED = np.uint64(0x9E3779B97F4A7C15)
"""Tells apart rows that begin with white space: a stack frame is not an event."""


def hashes_of(data: Bytes, starts: Positions, ends: Positions) -> Hashes:
    """A hash of each span of ``data``, all sorted and apart: equal bytes have equal hashes wherever they stand.

    A span may have up to ``4 * LONGEST`` bytes, as a row.
    """
    hashes = np.zeros(len(starts), np.uint64)
    some = ends > starts
    lengths = (ends - starts)[some]
    if not len(lengths):
        return hashes
    edges = np.cumsum(lengths) - lengths
    places = np.arange(int(lengths.sum())) - np.repeat(edges, lengths)
    terms = _LETTERS[data[places + np.repeat(starts[some], lengths)]]
    terms *= _PLACES[places]
    hashes[some] = np.add.reduceat(terms, edges)
    return hashes


@dataclass
class Masked:
    """Masks of a block's rows. ``text``: all of them, each ended by a newline at ``ends``. ``hole_starts``: where
    holes begin in the page."""

    text: Bytes
    starts: Positions
    ends: Positions
    hashes: Hashes
    hole_starts: Positions

    def of(self, row: int) -> bytes:
        """The mask of a row."""
        return self.text[self.starts[row] : self.ends[row]].tobytes().strip()


def mask(page: Page, indented: npt.NDArray[np.bool_]) -> Masked:
    """The masks of a page whose stamps are blanked. Paths become words with digits in its classes.

    ``indented``: bool [rows], which have hashes of their own; taken before the stamps were blanked.
    """
    b, classes = page.bytes, page.classes
    _mark_paths(page)
    edges = np.flatnonzero(np.diff(classes & WORD)) + 1
    starts, ends = edges[0::2], edges[1::2]
    if len(starts):
        chained = np.zeros(len(starts), np.bool_)
        gap = starts[1:] - ends[:-1]
        chained[1:] = (gap == 1) & ((classes[ends[:-1]] & JOINER) != 0)
        chained[1:] |= (gap == 2) & (b[ends[:-1]] == 58) & (b[ends[:-1] + 1] == 58)  # fe80::1
        chains = np.cumsum(~chained, dtype=np.int32)
        holes = np.flatnonzero(np.bitwise_or.reduceat(classes, starts) & DIGIT)
        first = np.diff(chains[holes], prepend=0) != 0
        last = np.append(first[1:], True)[: len(first)]
        starts, ends = starts[holes[first]], ends[holes[last]]
    inside = np.zeros(len(b), np.int8)
    inside[starts + 1] = 1
    inside[ends] -= 1
    space = (classes & SPACE) != 0
    keep = np.cumsum(inside, dtype=np.int8) == 0
    after_space = space | (b == 10)
    keep[1:] &= ~(space[1:] & after_space[:-1])
    keep[:PAD] = False
    keep[-PAD:] = False
    marked = b.copy()
    marked[starts] = HOLE
    text = marked[keep]
    row_ends = np.flatnonzero(text == 10)
    row_starts = np.empty_like(row_ends)
    row_starts[0] = 0
    row_starts[1:] = row_ends[:-1] + 1
    hashes = hashes_of(text, row_starts, row_ends)
    hashes[indented] ^= _INDENTED
    return Masked(text, row_starts, row_ends, hashes, starts)


def _mark_paths(page: Page) -> None:
    b, classes = page.bytes, page.classes
    slashes = np.flatnonzero(b == ord("/"))
    before = slashes - 1
    begins = slashes[
        ((classes[before] & WORD) == 0)
        & ((classes[before] & PATH == 0) | (b[before] == ord("=")) | (b[before] == ord(":")))
    ]
    back = np.flatnonzero(b == ord("\\"))
    if len(back):
        drive = (
            back[(b[back - 1] == ord(":")) & ((classes[back - 2] & WORD) != 0) & ((classes[back - 3] & WORD) == 0)] - 2
        )
        begins = np.sort(np.concatenate([begins, drive]))
    if not len(begins):
        return
    stops = np.flatnonzero((classes & PATH) == 0)
    ends = stops[np.searchsorted(stops, begins)]
    apart = np.ones(len(begins), np.bool_)
    apart[1:] = begins[1:] >= np.maximum.accumulate(ends)[:-1]
    where = spread(begins[apart], ends[apart])
    classes[where] |= WORD | DIGIT


def split(row: bytes) -> list[bytes]:
    """The tokens of one row or mask, as ``tokens_of`` finds those of a block."""
    tokens: list[bytes] = _TOKEN.findall(row)
    if len(tokens) > TOKENS:
        *_, last = islice(_TOKEN.finditer(row), TOKENS)
        tokens[TOKENS - 1 :] = [row[last.start() :].rstrip(b" ")]
    return tokens


def spaced(mask: bytes) -> list[bool]:
    """Whether white space stands before each token of a mask, or nothing."""
    matches = islice(_TOKEN.finditer(mask), TOKENS)
    return [match.start() == 0 or mask[match.start() - 1] == 32 for match in matches]


@dataclass
class Tokens:
    """Tokens of a block: ``starts``, ``ends`` in the page, ``rows``, and ``places``: which of its row's tokens."""

    starts: Positions
    ends: Positions
    rows: Positions
    places: Positions
    counts: Positions
    """How many each row has."""
    with_holes: npt.NDArray[np.bool_]


def tokens_of(page: Page, hole_starts: Positions) -> Tokens:
    """The tokens of a masked page."""
    classes = page.classes
    solid = (classes & SPACE) == 0
    solid &= page.bytes != 10
    split = (classes & SPLITTER) != 0
    cut = split[:-1] & ~split[1:]
    begin = np.zeros(len(classes), np.bool_)
    begin[1:] = solid[1:] & (~solid[:-1] | cut)
    end = np.zeros(len(classes), np.bool_)
    end[:-1] = solid[:-1] & (~solid[1:] | cut)
    starts = np.flatnonzero(begin)
    firsts = np.searchsorted(starts, page.starts)
    counts = np.diff(firsts, append=len(starts))
    rows = np.repeat(np.arange(page.rows), counts)
    holed = np.zeros(len(starts), np.bool_)
    number = np.cumsum(begin, dtype=np.int32)
    holed[number[hole_starts] - 1] = True
    places = np.arange(len(starts)) - firsts[rows]
    found = Tokens(starts, np.flatnonzero(end) + 1, rows, places, counts, holed)
    return found if int(counts.max()) <= TOKENS else _cut_off(found, firsts)


def _cut_off(tokens: Tokens, firsts: Positions) -> Tokens:
    """Tokens of which the last one of a long row is all the rest; it counts as one with holes."""
    long = tokens.counts > TOKENS
    rest = firsts[long] + TOKENS - 1
    tokens.ends[rest] = tokens.ends[firsts[long] + tokens.counts[long] - 1]
    tokens.with_holes[rest] = True
    keep = tokens.places < TOKENS
    return Tokens(
        tokens.starts[keep],
        tokens.ends[keep],
        tokens.rows[keep],
        tokens.places[keep],
        np.minimum(tokens.counts, TOKENS),
        tokens.with_holes[keep],
    )
