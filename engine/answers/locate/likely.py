"""Which rows of a log are asked about: events rather than the frames of their traces, what went wrong rather than what
went as ever."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt

from engine.answers.fold.fold import Fold
from engine.answers.fold.levels import Level, rows_of_level

Floats = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]

FIRST = 0.8
"""What an entry's first row has of the words of the row below it that has most of them."""
FRAME = 0.6
"""What an indented row below it keeps of its own."""
GRAVE = 0.2
"""What a row gains for saying itself that something went wrong, of the most that any row has."""
LEVELS: tuple[Level, ...] = ("warning", "error", "critical")


class Text(Protocol):
    """A log as its rows; see ``LogCorpus``."""

    fold: Fold

    def blocks(self) -> Iterator[bytes]: ...


def likely(log: Text, scores: Floats) -> Floats:
    """What words say of rows, float32 [rows], weighed with what the rows are."""
    if not len(scores):
        return scores
    heads = log.fold.heads()
    out = scores.copy()
    out[heads] = np.maximum(scores[heads], FIRST * np.maximum.reduceat(scores, heads))
    frames = _indented(log.blocks())
    frames[heads] = False
    out[frames] *= FRAME
    out[rows_of_level(log.blocks(), *LEVELS)] += GRAVE * out.max()
    return out


def _indented(blocks: Iterator[bytes]) -> Mask:
    """Whether rows begin with a space or tab, of all blocks in their order."""
    parts = []
    for block in blocks:
        view = np.frombuffer(block, np.uint8)
        starts = np.concatenate([[0], np.flatnonzero(view == 10)[:-1] + 1])
        parts.append((view[starts] == 32) | (view[starts] == 9))
    return np.concatenate(parts)
