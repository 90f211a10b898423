"""Retained prefixes: state that outlives its request, so that questions can fork from it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass


@dataclass(frozen=True)
class Retained:
    """The state after ``tokens`` tokens: pages held by reference, recurrent state copied to ``slot``."""

    id: str
    pages: tuple[int, ...]
    slot: int
    tokens: int
    rope_delta: int
    layers: int | None
    """Layers that were run; None is all."""


class RetainedStore:
    """At most ``len(slots)`` prefixes, least recently used first out. Bookkeeping only; the caller frees the pages."""

    def __init__(self, slots: range) -> None:
        self._free = list(slots)
        self._entries: OrderedDict[str, Retained] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def free_slots(self) -> int:
        return len(self._free)

    @property
    def pages(self) -> int:
        """Pages that all prefixes hold together."""
        return sum(len(entry.pages) for entry in self._entries.values())

    def take_slot(self) -> int:
        """A slot for a new prefix. Raises ``IndexError`` when all are taken (evict first)."""
        return self._free.pop()

    def add(self, retained: Retained) -> None:
        self._entries[retained.id] = retained

    def use(self, prefix: str) -> Retained | None:
        """The prefix, now the most recently used."""
        entry = self._entries.get(prefix)
        if entry is not None:
            self._entries.move_to_end(prefix)
        return entry

    def drop(self, prefix: str) -> Retained | None:
        """Forget a prefix; its slot is free, its pages are the caller's to release."""
        entry = self._entries.pop(prefix, None)
        if entry is not None:
            self._free.append(entry.slot)
        return entry

    def evict(self) -> Retained | None:
        """Forget the least recently used prefix."""
        return self.drop(next(iter(self._entries))) if self._entries else None
