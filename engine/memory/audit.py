"""The books of pages and slots, read off again from what holds them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from engine.memory.held import HeldPages
from engine.memory.host_tier import HostTier
from engine.memory.kept import KeptStore
from engine.memory.pages import PagePool
from engine.memory.parking import Parking
from engine.messages import PAGE_KEPT, PAGE_PARKED, PAGE_SHARED


class AccountError(RuntimeError):
    """A page or slot is held by nobody, or by more or fewer than its count says: a fault of the program."""


def owners(pages: PagePool, held: HeldPages, parking: Parking) -> bytearray:
    """See :meth:`engine.memory.keeper.Keeper.owners`."""
    found = bytearray(pages.total)
    for page, entry in held.in_pool():
        shared = (entry.kept and entry.parked) or not held.idle(entry)
        found[page] = PAGE_SHARED if shared else PAGE_PARKED if entry.parked else PAGE_KEPT
    for parked in parking.parked:
        for page in parked.blank:
            found[page] = PAGE_PARKED
    return found


def check(
    pages: PagePool,
    host: HostTier,
    held: HeldPages,
    store: KeptStore,
    parking: Parking,
    lanes: Iterable[Sequence[int]] | None,
) -> None:
    """See :meth:`engine.memory.keeper.Keeper.check`."""
    kept = Counter(entry for state in store for entry in state.held)
    parked = Counter(entry for state in parking.parked for entry in state.held)
    everything = list(kept | parked)
    for entry in everything:
        if (entry.kept, entry.parked) != (kept[entry], parked[entry]):
            raise AccountError(f"{entry} is held by {kept[entry]} kept and {parked[entry]} parked states")
        if (entry.page is None) == (entry.unit is None):
            raise AccountError(f"{entry} must lie in one place")
    in_pool = {entry.page: entry for entry in everything if entry.page is not None}
    if in_pool != dict(held.in_pool()):
        raise AccountError(f"pages {sorted(in_pool)} are held, {sorted(dict(held.in_pool()))} are on the books")
    _check_pages(pages, in_pool, [page for state in parking.parked for page in state.blank], lanes)
    units = Counter(entry.unit for entry in everything if entry.unit is not None)
    if [units[unit] for unit in range(host.units.total)] != list(host.units.references()):
        raise AccountError(f"units {sorted(units.elements())} are held, the pool says {host.units.references()}")
    free, taken = list(store.free_slots), [state.slot for state in store]
    if sorted(free + taken) != list(range(store.slots)):
        raise AccountError(f"slots for kept states: {free} free, {taken} taken, of {store.slots}")
    free, taken = list(parking.free_slots), [state.slot for state in parking.parked]
    if sorted(free + taken) != list(parking.slots):
        raise AccountError(f"slots for parked requests: {free} free, {taken} taken, of {parking.slots}")


def _check_pages(
    pages: PagePool, held: Iterable[int], blank: Iterable[int], lanes: Iterable[Sequence[int]] | None
) -> None:
    counted = Counter(list(held))
    counted.update(blank)
    for lane in lanes or ():
        counted.update(lane)
    booked = pages.references()
    wrong = [
        (page, counted[page], booked[page])
        for page in range(pages.total)
        if counted[page] > booked[page] or (lanes is not None and counted[page] < booked[page])
    ]
    if wrong:
        raise AccountError(f"pages as (page, held, on the books): {wrong}")
    if pages.free != booked.count(0):
        raise AccountError(f"{booked.count(0)} pages are free, the pool says {pages.free}")
