"""Pages that outlive the lane that filled them: who holds their content, and where it lies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torch import Tensor

from engine.memory.host_tier import HostTier
from engine.memory.paged_kv import PagedKV
from engine.memory.pages import PagePool


@dataclass(eq=False, slots=True)
class HeldPage:
    """One page's content, in the pool (``page``) or spilled to the host tier (``unit``); exactly one is not None.

    However many hold it, it has one reference in the pool. Lanes that share the page have one each beside that.
    """

    page: int | None
    unit: int | None
    kept: int = 0
    """Kept states that hold it."""
    parked: int = 0
    """Parked requests that hold it."""


class HeldPages:
    """All held pages: sharing, spilling and freeing them."""

    def __init__(self, kv: PagedKV, pages: PagePool, host: HostTier) -> None:
        self._kv = kv
        self._pages = pages
        self._host = host
        self._by_page: dict[int, HeldPage] = {}

    # --- coming and going --------------------------------------------------------------------------------------

    def keep(self, page: int) -> HeldPage:
        """Hold a lane's page for one more kept state. The lane keeps its own reference and writes there no more."""
        held = self._by_page.get(page)
        if held is None:
            self._pages.share([page])
            held = self._new(page)
        held.kept += 1
        return held

    def adopt(self, page: int) -> HeldPage:
        """Hold a page taken from the pool, with its reference, for a kept state."""
        held = self._new(page)
        held.kept = 1
        return held

    def adopt_unit(self, unit: int) -> HeldPage:
        """Hold a taken unit of the host tier for a kept state."""
        return HeldPage(None, unit, kept=1)

    def park(self, page: int) -> HeldPage:
        """Hold a lane's page for its parked request; the lane's reference is given up."""
        held = self._by_page.get(page)
        if held is None:
            held = self._new(page)
        else:
            self._pages.release([page])
        held.parked += 1
        return held

    def unpark(self, held: HeldPage) -> int:
        """Give a page in the pool back to the lane that parked it, with a reference. Returns the page."""
        assert held.page is not None, "restore it first"
        held.parked -= 1
        if held.kept or held.parked:
            self._pages.share([held.page])
        else:
            del self._by_page[held.page]
        return held.page

    def release(self, held: HeldPage, *, parked: bool = False) -> None:
        """One kept state (or parked request) holds it no more; freed after the last."""
        if parked:
            held.parked -= 1
        else:
            held.kept -= 1
        if held.kept or held.parked:
            return
        if held.page is not None:
            del self._by_page[held.page]
            self._pages.release([held.page])
        if held.unit is not None:
            self._host.free(held.unit)

    # --- between the pool and the host tier --------------------------------------------------------------------

    def idle(self, held: HeldPage) -> bool:
        """Whether it is in the pool and no lane shares it: spilling it frees a page."""
        return held.page is not None and self._pages.count(held.page) == 1

    def spill(self, going: Sequence[HeldPage]) -> None:
        """Move idle pages to the host tier. Raises ``MemoryError`` when too few units are free (ask first)."""
        for held, unit in zip(going, self._host.units.take(len(going)), strict=True):
            assert held.page is not None
            self._host.store(held.page, unit)
            del self._by_page[held.page]
            self._pages.release([held.page])
            held.page, held.unit = None, unit

    def restore(self, held: HeldPage, page: int) -> None:
        """Move a spilled page into ``page``, taken from the pool for it."""
        assert held.unit is not None
        self._host.load(held.unit, page)
        self._host.free(held.unit)
        held.page, held.unit = page, None
        self._by_page[page] = held

    def copy_into(self, held: HeldPage, page: int) -> None:
        """Copy the content, wherever it lies, into a lane's own page."""
        if held.page is not None:
            self._kv.copy_page(held.page, page)
        elif held.unit is not None:
            self._host.load(held.unit, page)

    def fill(self, held: HeldPage, page: int) -> None:
        """Copy a lane's page, which the lane goes on writing to, into a held one, wherever it lies."""
        if held.page is not None:
            self._kv.copy_page(page, held.page)
        elif held.unit is not None:
            self._host.store(page, held.unit)

    def read(self, held: HeldPage, target: Tensor) -> None:
        """Copy the first tokens, wherever they lie, to host memory (shaped as for :meth:`PagedKV.copy_out`)."""
        if held.page is not None:
            self._kv.copy_out(held.page, target)
        elif held.unit is not None:
            target.copy_(self._host.unit(held.unit)[:, :, : target.shape[2]])

    def write(self, held: HeldPage, source: Tensor) -> None:
        """Copy tokens from host memory in, from the start."""
        if held.page is not None:
            self._kv.copy_in(source, held.page)
        elif held.unit is not None:
            self._host.unit(held.unit)[:, :, : source.shape[2]].copy_(source)

    # --- what there is -----------------------------------------------------------------------------------------

    def in_pool(self) -> Iterable[tuple[int, HeldPage]]:
        """(page, what holds it) of all that lie in the pool."""
        return self._by_page.items()

    def only_kept(self) -> int:
        """Pages in the pool that nothing but kept states hold."""
        count = self._pages.count
        return sum(count(page) == 1 and not held.parked for page, held in self._by_page.items())

    def _new(self, page: int) -> HeldPage:
        held = HeldPage(page, None)
        self._by_page[page] = held
        return held
