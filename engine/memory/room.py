"""Making room: which kept state is spilled or dropped when pages or units of the host tier are short."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from engine.memory.held import HeldPage, HeldPages
from engine.memory.host_tier import HostTier
from engine.memory.kept import Kept, KeptStore
from engine.memory.pages import PagePool


class Room:
    """Takes from kept states in the order of eviction, and only when that is enough: nothing is given up in vain.

    A page that several states hold stays until the last of them in the order has its turn.
    """

    def __init__(
        self, pages: PagePool, host: HostTier, held: HeldPages, store: KeptStore, evict: Callable[[Kept], None]
    ) -> None:
        self._pages = pages
        self._host = host
        self._held = held
        self._store = store
        self._evict = evict
        self.spills = 0

    def pages(self, count: int, *, spare: Kept | None = None, explicit: bool = True) -> bool:
        """Whether ``count`` pages of the pool are free, after spilling or dropping what had to be.

        Args:
            spare: a state that is left alone.
            explicit: whether explicit states may give way too.
        """
        while self._pages.free < count:
            short = count - self._pages.free
            states = self._states(spare, explicit, None)
            idle = {held: kept for held, kept in _last_holders(states).items() if self._held.idle(held)}
            if len(idle) < short:
                return False
            holders = set(idle.values())
            first = next(kept for kept in states if kept in holders)
            # From the end: beginnings are what other prompts are likely to share.
            going = [held for held in reversed(first.held) if idle.get(held) is first][:short]
            if self.units(len(going), below=first, spare=spare, explicit=explicit):
                self.spill(going)
            else:
                self._evict(first)
        return True

    def units(self, count: int, *, below: Kept | None = None, spare: Kept | None = None, explicit: bool = True) -> bool:
        """Whether ``count`` units of the host tier are free, after dropping what had to be: states that come before
        ``below`` in the order (None: any)."""
        while self._host.units.free < count:
            states = self._states(spare, explicit, below)
            spilled = {held: kept for held, kept in _last_holders(states).items() if held.unit is not None}
            if self._host.units.free + len(spilled) < count:
                return False
            holders = set(spilled.values())
            self._evict(next(kept for kept in states if kept in holders))
        return True

    def slot(self, *, explicit: bool) -> bool:
        """Whether a slot of the shelf is free, after dropping the first state in the order if it had to be. An
        automatic snapshot never takes an explicit state's place."""
        if self._store.free_slots:
            return True
        states = self._states(None, explicit, None)
        if states:
            self._evict(states[0])
        return bool(states)

    def spill(self, going: Sequence[HeldPage]) -> None:
        """Move idle pages to units that are free."""
        self._held.spill(going)
        self.spills += bool(going)

    def _states(self, spare: Kept | None, explicit: bool, below: Kept | None) -> list[Kept]:
        return [kept for kept in self._store.in_order(below) if kept is not spare and (explicit or not kept.explicit)]


def _last_holders(states: Sequence[Kept]) -> dict[HeldPage, Kept]:
    """Pages that nothing but these states hold (and lanes, perhaps), each with the last of the states that holds it."""
    holders = Counter(held for kept in states for held in kept.held)
    last = {held: kept for kept in states for held in kept.held}
    return {held: kept for held, kept in last.items() if holders[held] == held.kept and not held.parked}
