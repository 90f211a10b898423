"""Distinct values of templates' slots, kept while a text is folded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from engine.answers.fold.cluster import Template
from engine.answers.fold.masks import Tokens, hashes_of
from engine.answers.fold.page import Page

VALUES_KEPT = 200_000
"""Values of all slots; from here on a slot keeps no more than its first, so that the memory for them ends."""
_MIX = np.uint64(0xD6E8FEB86659FD93)


class Slots:
    """Notes the first values of every token with a hole. A slot that has more of them than are kept is left alone."""

    def __init__(self) -> None:
        self._bases = np.zeros(0, np.int64)
        """Number of each template's first slot; it has one for every token."""
        self._full = np.zeros(0, np.bool_)
        self._kept = 0

    def collect(self, page: Page, tokens: Tokens, rows: npt.NDArray[np.int32], templates: Sequence[Template]) -> None:
        """``rows``: the template of each row of the page."""
        self._grow(templates)
        which = np.flatnonzero(tokens.with_holes)
        slots = self._bases[rows[tokens.rows[which]]] + tokens.places[which]
        open_ = ~self._full[slots]
        which, slots = which[open_], slots[open_]
        starts, ends = tokens.starts[which], tokens.ends[which]
        hashes = hashes_of(page.bytes, starts, ends) ^ (slots.astype(np.uint64) * _MIX)
        firsts = np.sort(np.unique(hashes, return_index=True)[1])
        numbers = np.searchsorted(self._bases, slots[firsts], "right") - 1
        places = slots[firsts] - self._bases[numbers]
        for i, number, place in zip(firsts.tolist(), numbers.tolist(), places.tolist(), strict=True):
            template = templates[number]
            if place not in template.more:
                self._note(template, place, page.bytes[starts[i] : ends[i]].tobytes())
                self._full[slots[i]] = place in template.more

    def _note(self, template: Template, place: int, token: bytes) -> None:
        known = len(template.values.get(place, ()))
        if self._kept < VALUES_KEPT or known == 0:
            template.add_value(place, token)
            self._kept += len(template.values[place]) - known
        elif token not in template.values[place]:
            template.more.add(place)

    def _grow(self, templates: Sequence[Template]) -> None:
        fresh = templates[len(self._bases) :]
        sizes = np.array([len(template.tokens) for template in fresh], np.int64)
        self._bases = np.concatenate([self._bases, len(self._full) + np.cumsum(sizes) - sizes])
        self._full = np.concatenate([self._full, np.zeros(int(sizes.sum()), np.bool_)])
