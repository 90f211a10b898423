"""Parked requests: all the state of a sequence that gave up its lane, to go on bit for bit."""

from __future__ import annotations

from collections.abc import Sequence

from engine.memory.held import HeldPages
from engine.memory.host_tier import HostTier
from engine.memory.kept import Parked
from engine.memory.lane_state import LaneState
from engine.memory.pages import PagePool
from engine.memory.room import Room


class Parking:
    """Takes sequences off their lanes and puts them back. See the methods of the same names in ``Keeper``."""

    def __init__(
        self,
        pages: PagePool,
        page_size: int,
        host: HostTier,
        held: HeldPages,
        room: Room,
        state: LaneState,
        shelf: LaneState,
        slots: range,
    ) -> None:
        self.parked: list[Parked] = []
        self.slots = slots
        self.free_slots = list(reversed(slots))
        self.parks = self.resumes = self.restores = 0
        self._pages = pages
        self._size = page_size
        self._host = host
        self._held = held
        self._room = room
        self._state = state
        self._shelf = shelf

    def park(self, lane: int, pages: Sequence[int], tokens: int, rope_delta: int) -> Parked:
        filled = -(-tokens // self._size)
        slot = self.free_slots.pop()
        self._state.copy_to(lane, self._shelf, slot)
        held = [self._held.park(page) for page in pages[:filled]]
        parked = Parked(tokens, rope_delta, slot, held, list(pages[filled:]))
        self.parked.append(parked)
        self.parks += 1
        return parked

    def can_spill(self, pages: int) -> bool:
        units = self._host.units
        fixed = sum(held.unit is not None for held in {held for parked in self.parked for held in parked.held})
        return units.total > 0 and units.total - fixed >= pages

    def spillable(self, parked: Parked) -> int:
        return sum(self._held.idle(held) for held in parked.held)

    def spill(self, parked: Parked) -> None:
        going = [held for held in parked.held if self._held.idle(held)]
        if not self._room.units(len(going)):
            raise MemoryError(f"{len(going)} units of the host tier wanted, {self._host.units.free} free")
        self._room.spill(going)
        self._pages.release(parked.blank)
        parked.owed += len(parked.blank)
        parked.blank = []

    def pages_to_resume(self, parked: Parked) -> int:
        return parked.owed + sum(held.page is None for held in parked.held)

    def resume(self, parked: Parked, lane: int) -> list[int]:
        away = [held for held in parked.held if held.page is None]
        fresh = self._pages.take(len(away) + parked.owed)
        for held, page in zip(away, fresh, strict=False):
            self._held.restore(held, page)
        self.restores += bool(away)
        pages = [self._held.unpark(held) for held in parked.held]
        self._shelf.copy_to(parked.slot, self._state, lane)
        self._leave(parked)
        self.resumes += 1
        return pages + parked.blank + fresh[len(away) :]

    def discard(self, parked: Parked) -> None:
        for held in parked.held:
            self._held.release(held, parked=True)
        self._pages.release(parked.blank)
        self._leave(parked)

    def _leave(self, parked: Parked) -> None:
        self.parked.remove(parked)
        self.free_slots.append(parked.slot)
