"""Which segments hold a question's words: a cheap prior beside attention, found without taking the text apart.

Scores are those of BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009) with a word counted once
a segment. Words match at their beginning, so that "rejects" finds "rejected", and as logs write them short, so that
"command" finds "CMD"; numbers and short words match as they are. Other words for the same count less.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from engine.answers.locate.forms import LETTER, Form, terms_of

Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]

SATURATION, LENGTH_SHARE = 1.2, 0.75
"""k1 and b of BM25."""
NAME = 2.0
"""What a name counts more than another word as rare as it."""
OTHER = 0.5
"""What another word for it counts of a word."""
OTHERS_WITHIN = 200_000
"""Segments of a text up to which other words are searched: they are several times as many."""
_BATCH = 1024
_NOWHERE = np.zeros(0, np.int64)
_LETTERS = np.array([re.fullmatch(LETTER, bytes([byte])) is not None for byte in range(256)])


@dataclass(frozen=True)
class Words:
    """By segment: ``scores`` of BM25, 0 without any of the words; ``held``: the share of the words, by weight, that
    stands there, 0 to 1; ``total``: the scores with what near words add, where these are searched."""

    scores: Floats
    held: Floats
    total: Floats


def match(blocks: Iterable[bytes], segments: int, question: str) -> Words:
    """Scores segments: those of all blocks in their order, as UTF-8, each ended by a newline."""
    terms = terms_of(question)
    searched = [(term.forms, term.others if segments <= OTHERS_WITHIN else ()) for term in terms]
    hits: list[tuple[list[Numbers], list[Numbers]]] = [([], []) for _ in terms]
    lengths = np.zeros(segments, np.uint16)
    first = 0
    for block in blocks:
        data = lowered(block)
        view = np.frombuffer(data, np.uint8)
        ends = np.flatnonzero(view == 10)
        lengths[first : first + len(ends)] = np.minimum(np.diff(ends, prepend=-1), 65535)
        for groups, founds in zip(searched, hits, strict=True):
            for forms, found in zip(groups, founds, strict=True):
                places = np.concatenate([_NOWHERE, *(_places(data, view, form) for form in forms)])
                if len(places):
                    found.append(np.unique(np.searchsorted(ends, places)) + first)
        first += len(ends)
    return _scored(hits, lengths, [NAME if term.name else 1.0 for term in terms])


def run_of(row: bytes, question: str) -> tuple[int, int, int]:
    """The shortest piece of a row that holds all of a question's words that the row has: where it begins and ends,
    and how many words that are."""
    data = lowered(row) + b"\n"
    view = np.frombuffer(data, np.uint8)
    places = sorted(
        (int(at), int(at) + len(form.stem), number)
        for number, term in enumerate(terms_of(question))
        for form in term.forms
        for at in _places(data, view, form).tolist()
    )
    wanted = len({number for *_, number in places})
    best = (0, len(data))
    latest: dict[int, tuple[int, int]] = {}  # by word, where it stood last
    for at, end, number in places:
        latest[number] = (at, end)
        if len(latest) == wanted:
            run = (min(start for start, _ in latest.values()), max(stop for _, stop in latest.values()))
            best = min(best, run, key=lambda span: span[1] - span[0])
    return *(best if wanted else (0, 0)), wanted


def blocks_of(texts: Iterable[str]) -> Iterator[bytes]:
    """Texts as :func:`match` takes them."""
    rest = iter(texts)
    while batch := list(islice(rest, _BATCH)):
        yield "".join(" ".join(text.split("\n")) + "\n" for text in batch).encode("utf-8", "replace")


def lowered(text: bytes) -> bytes:
    return text.lower() if text.isascii() else text.decode("utf-8", "replace").lower().encode()


def _places(data: bytes, view: Bytes, form: Form) -> Numbers:
    """Where a form stands at a word's beginning."""
    at = np.array([found.start() for found in form.pattern.finditer(data)], np.int64)
    return at[(at == 0) | ~_LETTERS[view[at - 1]]] if len(at) else at


def _scored(
    hits: list[tuple[list[Numbers], list[Numbers]]], lengths: npt.NDArray[np.uint16], factors: list[float]
) -> Words:
    scores, held = np.zeros((2, len(lengths)), np.float32)
    average = max(1.0, float(lengths.mean())) if len(lengths) else 1.0
    total = 0.0
    for founds, factor in zip(hits, factors, strict=True):
        own, others = (np.concatenate([_NOWHERE, *found]) for found in founds)
        others = np.setdiff1d(others, own)
        weights = [factor * rarity(len(own), len(lengths)), OTHER * rarity(len(own) + len(others), len(lengths))]
        total += weights[0]
        for rows, weight in zip((own, others), weights, strict=True):
            spread = 1 - LENGTH_SHARE + LENGTH_SHARE * lengths[rows] / average
            scores[rows] += (weight * (SATURATION + 1) / (1 + SATURATION * spread)).astype(np.float32)
            held[rows] += np.float32(weight)
    return Words(scores, held / np.float32(total) if total else held, scores)


def rarity(count: float, segments: int) -> float:
    """How much it says of a segment that it is one of ``count``."""
    return math.log1p((segments - count + 0.5) / (count + 0.5))
