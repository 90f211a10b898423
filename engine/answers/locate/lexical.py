"""Which segments hold a question's words: a cheap prior beside attention, found without taking the text apart.

Scores are those of BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009) with a word counted once
a segment. Words match at their beginning, so that "rejects" finds "rejected"; numbers and short words match as they
are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]

SATURATION, LENGTH_SHARE = 1.2, 0.75
"""k1 and b of BM25."""
TAIL = 3
"""Letters that may follow a word's stem."""
MOST = 24
"""Words of a question that are looked for: the longest."""
_BATCH = 1024

_WORD = re.compile(r"[^\W_]+")
_SUFFIX = re.compile(r"(?:ations?|ions?|ings?|ies|ied|ed|es|ly|s|e|y)$")
_COMMON = """
    a about after all an and any are as at be because been before being both but by can could did do does during
    each every few for from get gets got had happen happened happens has have having he her here him his how i if
    in into is it its itself just line lines me more most my no nor not of off on once one only or other our out
    over own please say says said see she should show shows so some someone somebody something such tell than that
    the their them then there these they thing this those through to too under until up us very was we were what
    when where which while who whom whose why will with would you your
"""
_STOP = frozenset(_COMMON.split())
_LETTER = np.array([byte >= 128 or chr(byte).isalnum() for byte in range(256)])


@dataclass(frozen=True)
class Term:
    """``stem``: what is searched, in lower case; ``whole``: nothing may follow it."""

    stem: bytes
    whole: bool


@dataclass(frozen=True)
class Words:
    """By segment: ``scores`` of BM25, 0 without any of the words; ``held``: the share of the words, by weight, that
    stands there, 0 to 1."""

    scores: Floats
    held: Floats


def terms_of(question: str) -> list[Term]:
    """The words of a question that say what is looked for; if it has no others, all of them."""
    written = _WORD.findall(question)
    found = dict.fromkeys(word.lower() for word in written)
    shouted = {word.lower() for word in written if word.isupper() and len(word) > 1}  # GET is no common word
    chosen = [word for word in found if word not in _STOP or word in shouted] or list(found)
    return list(dict.fromkeys(_term(word) for word in sorted(chosen, key=len, reverse=True)[:MOST]))


def match(blocks: Iterable[bytes], segments: int, question: str) -> Words:
    """Scores segments: those of all blocks in their order, as UTF-8, each ended by a newline."""
    terms = terms_of(question)
    hits: list[list[Numbers]] = [[] for _ in terms]
    lengths = np.zeros(segments, np.uint16)
    first = 0
    for block in blocks:
        data = block.lower() if block.isascii() else block.decode("utf-8", "replace").lower().encode()
        view = np.frombuffer(data, np.uint8)
        ends = np.flatnonzero(view == 10)
        lengths[first : first + len(ends)] = np.minimum(np.diff(ends, prepend=-1), 65535)
        for term, found in zip(terms, hits, strict=True):
            places = _places(data, view, term)
            if len(places):
                found.append(np.unique(np.searchsorted(ends, places)) + first)
        first += len(ends)
    return _scored(hits, lengths)


def blocks_of(texts: Iterable[str]) -> Iterator[bytes]:
    """Texts as :func:`match` takes them."""
    rest = iter(texts)
    while batch := list(islice(rest, _BATCH)):
        yield "".join(" ".join(text.split("\n")) + "\n" for text in batch).encode("utf-8", "replace")


def _term(word: str) -> Term:
    if len(word) <= 3 or not word.isalpha():
        return Term(word.encode("utf-8", "replace"), whole=True)
    stem = _SUFFIX.sub("", word)
    return Term((stem if len(stem) >= 3 else word).encode("utf-8", "replace"), whole=False)


def _places(data: bytes, view: Bytes, term: Term) -> Numbers:
    """Where a term stands at a word's beginning."""
    at = np.array([found.start() for found in re.finditer(re.escape(term.stem), data)], np.int64)
    if not len(at):
        return at
    at = at[(at == 0) | ~_LETTER[view[at - 1]]]
    ends = at + len(term.stem)
    over = np.zeros(len(at), np.bool_)
    for letters in range(1 + (0 if term.whole else TAIL)):
        over |= ~_LETTER[view[np.minimum(ends + letters, len(view) - 1)]]
    found: Numbers = at[over]
    return found


def _scored(hits: list[list[Numbers]], lengths: npt.NDArray[np.uint16]) -> Words:
    scores, held = np.zeros((2, len(lengths)), np.float32)
    average = max(1.0, float(lengths.mean())) if len(lengths) else 1.0
    total = 0.0
    for found in hits:
        count = sum(map(len, found))
        weight = float(np.log1p((len(lengths) - count + 0.5) / (count + 0.5)))
        total += weight
        for rows in found:
            spread = 1 - LENGTH_SHARE + LENGTH_SHARE * lengths[rows] / average
            scores[rows] += (weight * (SATURATION + 1) / (1 + SATURATION * spread)).astype(np.float32)
            held[rows] += np.float32(weight)
    return Words(scores, held / np.float32(total) if total else held)
