"""Which rows of a log answer as well as one that does, for questions about the first, the last or how many."""

from __future__ import annotations

import re

import numpy as np

from engine.answers.fold.fold import Fold, Rows
from engine.answers.locate.lexical import Words, lowered, run_of

_NUMBER = re.compile(rb"\d+")


def rows_like(fold: Fold, question: str, words: Words, row: int) -> Rows:
    """The rows, in order, that hold as many of the question's words as ``row`` and say the same: those of its
    template, and of templates that have these words in the same run (or a lone word behind the same beginning)."""
    rows = np.flatnonzero(words.held >= words.held[row] - 1e-6)
    templates = fold.template_of(rows)
    own = int(fold.template_of(np.array([row]))[0])
    text = _plain(fold, row)
    start, end, count = run_of(text, question)
    said = text[0 if count < 2 else start : end]
    fits = np.zeros(len(fold.templates), np.bool_)
    fits[own] = True
    if count:
        numbers, firsts = np.unique(templates, return_index=True)
        for number, first in zip(numbers.tolist(), firsts.tolist(), strict=True):
            other = _plain(fold, int(rows[first]))
            fits[number] |= other.startswith(said) if count < 2 else said in other
    found: Rows = rows[fits[templates]]
    return found


def _plain(fold: Fold, row: int) -> bytes:
    """A row without its time, its numbers alike, in lower case."""
    return _NUMBER.sub(b"0", lowered(b" ".join(fold.tokens(row))))
