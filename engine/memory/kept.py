"""States that outlive their requests: kept ones, which others fork from, and parked ones, which go on later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from engine.memory.held import HeldPage
from engine.memory.prefix_hash import Pictures, longest_match
from engine.messages import RequestClass


@dataclass(eq=False)
class Kept:
    """The state after exactly ``tokens`` tokens of a prompt."""

    id: str
    """The name it is asked for by when it is explicit; else for people."""
    tokens: int
    rope_delta: int
    layers: int | None
    """Layers that were run; None is all."""
    request_class: RequestClass
    explicit: bool
    """Asked for by a RetainRequest; the others are snapshots that the engine took on its own."""
    last: Tensor | None
    """[1, hidden] in host memory: the residual of the last token's column, when it was at hand."""
    key: bytes | None
    """Name of the prefix (``engine.memory.prefix_hash``); None where nobody but the holder of the id may find it."""
    slot: int
    """Where its recurrent state stands on the shelf."""
    held: list[HeldPage]
    """Its pages in order; the last may be filled in part."""
    used: int = 0
    """When it was used last, on the store's clock."""


@dataclass(eq=False)
class Parked:
    """A request that gave up its lane: all its state, to go on bit for bit. Never dropped to make room."""

    tokens: int
    rope_delta: int
    slot: int
    held: list[HeldPage]
    """Pages with content, in order."""
    blank: list[int]
    """Pages reserved behind them that hold nothing yet."""
    owed: int = 0
    """Pages like these that were given up and have to be taken anew."""


_COMMON = 4
"""One slot in so many is common ground, see :meth:`KeptStore.in_order`."""


class KeptStore:
    """Which states are kept, under which names, on which slots 0 … slots − 1 of the shelf. Bookkeeping only."""

    def __init__(self, slots: int, block: int) -> None:
        self.slots = slots
        self.free_slots = list(range(slots - 1, -1, -1))
        self._block = block
        self._all: list[Kept] = []
        self._clock = 0
        self._findable: tuple[Kept, ...] = ()

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Kept]:
        return iter(self._all)

    def take_slot(self) -> int:
        """A slot for a state about to be kept. Raises ``IndexError`` when all are taken (evict first)."""
        return self.free_slots.pop()

    def add(self, kept: Kept) -> None:
        self._all.append(kept)
        self.touch(kept)
        self._publish()

    def remove(self, kept: Kept) -> None:
        """Forget a state; its slot is free, its pages are the caller's to release."""
        self._all.remove(kept)
        self.free_slots.append(kept.slot)
        self._publish()

    def touch(self, kept: Kept) -> None:
        """Mark a state as used now."""
        self._clock += 1
        kept.used = self._clock

    def by_id(self, name: str) -> Kept | None:
        """The explicit one of that name."""
        return next((kept for kept in self._all if kept.explicit and kept.id == name), None)

    def by_key(self, key: bytes) -> Kept | None:
        return next((kept for kept in self._all if kept.key == key), None)

    def in_order(self, until: Kept | None = None) -> list[Kept]:
        """All, the first to go first: agents' before interactive ones, automatic ones before explicit ones, then the
        least recently used. ``until`` (kept or about to be) cuts the order short before that state.

        A share of the slots is common ground: so many of the agents' newest states count as interactive ones. Else,
        once interactive states fill the shelf, every new state of an agent would be the first to go, and agents with a
        common beginning would each read it again.
        """
        ranked = self._all if until is None or until in self._all else [*self._all, until]
        agents = sorted((kept for kept in ranked if kept.request_class == "agent"), key=lambda kept: -kept.used)
        common = set(agents[: self.slots // _COMMON])
        order = sorted(
            ranked,
            key=lambda kept: (kept.request_class == "interactive" or kept in common, kept.explicit, kept.used),
        )
        return order if until is None else order[: order.index(until)]

    def find(self, ids: Sequence[int], chain: Sequence[bytes], pictures: Pictures, limit: int) -> Kept | None:
        """See :meth:`engine.memory.keeper.Keeper.find`."""
        candidates = ((k.tokens, k.key or b"", k.last is not None, k) for k in self._findable)
        return longest_match(candidates, ids, chain, self._block, pictures, limit)

    def _publish(self) -> None:
        # Replaced as a whole: other threads may be looking through the last one.
        findable = [kept for kept in self._all if kept.key is not None]
        self._findable = tuple(sorted(findable, key=lambda kept: -kept.tokens))
