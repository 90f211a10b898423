"""Which segments hold words that are near a question's, in the model's own embeddings."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from engine.answers.locate.forms import COMMON, plain_words
from engine.answers.locate.lexical import rarity
from engine.answers.locate.vectors import WordVectors

Floats = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]

SAME = 0.5
"""Cosine from which a word counts as much as the question's own."""
WITHIN = 200_000
"""Segments of a text up to which near words are searched: every word of it is looked at."""
_WORD = re.compile(rb"\n|[A-Z]?[a-z\x80-\xff]{2,}|[A-Z]{3,}(?![a-z])")
"""A word of three letters or more, also one of several that are written together, as in ``OutOfMemoryError``."""
_LONGEST = 24
"""Letters of a word; what is longer is data."""
_NEWLINE, _NOTHING, _FIRST = 0, 1, 2
_NOWHERE = np.zeros(0, np.int64)


class _Vocabulary(dict[bytes, int]):
    """Numbers of words by how they are written, from 2; ``words`` in that order, in lower case."""

    def __init__(self) -> None:
        super().__init__({b"\n": _NEWLINE})
        self.words: list[str] = []
        self._numbers: dict[str, int] = {}

    def __missing__(self, written: bytes) -> int:
        word = written.decode("utf-8", "replace").lower()
        number = _NOTHING
        if 2 < len(word) <= _LONGEST and word not in COMMON:
            number = self._numbers.setdefault(word, len(self.words) + _FIRST)
            if number == len(self.words) + _FIRST:
                self.words.append(word)
        self[written] = number
        return number


def nearness(blocks: Iterable[bytes], segments: int, question: str, vectors: WordVectors) -> Floats:
    """Scores segments, float32 [segments]: for each of the question's words the nearest word of the segment, times how
    rare both are.

    Args:
        blocks: all segments in their order, as UTF-8, each ended by a newline.
    """
    scores = np.zeros(segments, np.float32)
    asked = plain_words(question)
    vocabulary = _Vocabulary()
    numbers, places = _words_of(blocks, vocabulary)
    if not asked or not len(numbers) or not vocabulary.words:
        return scores
    first = np.flatnonzero(np.diff(places, prepend=-1))
    holders = places[first]
    counts = np.minimum(np.bincount(numbers, minlength=len(vocabulary.words)), segments)
    most = rarity(0, segments)
    rare = np.sqrt([rarity(count, segments) / most for count in counts.tolist()]).astype(np.float32)
    near = vectors.of(vocabulary.words) @ vectors.of(asked).T
    for values in np.clip(near / SAME, 0, 1).T:
        held = np.maximum.reduceat((values * rare)[numbers], first)
        scores[holders] += np.float32(rarity(float(held.sum()), segments)) * held
    return scores


def _words_of(blocks: Iterable[bytes], vocabulary: _Vocabulary) -> tuple[Numbers, Numbers]:
    """Numbers of all words in their order, and the segment of each."""
    numbers, places = [_NOWHERE], [_NOWHERE]
    segment = 0
    for block in blocks:
        found = np.fromiter(map(vocabulary.__getitem__, _WORD.findall(block)), np.int64)
        ended = np.cumsum(found == _NEWLINE)
        words = found > _NOTHING
        numbers.append(found[words] - _FIRST)
        places.append(segment + ended[words])
        segment += int(ended[-1]) if len(ended) else 0
    return np.concatenate(numbers), np.concatenate(places)
