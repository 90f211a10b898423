"""State that outlives its request: kept for others to start from, or parked to go on later."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.memory import audit
from engine.memory.disk_tier import DiskTier
from engine.memory.keeping import Keeping
from engine.memory.kept import Kept, Parked
from engine.memory.lane_state import LaneState
from engine.memory.paged_kv import PagedKV
from engine.memory.pages import PagePool
from engine.memory.parking import Parking
from engine.messages import ReuseSnapshot


class Keeper(Keeping):
    """Kept and parked states over one pool of pages and one set of lanes. The engine's thread owns it; only
    :meth:`find` may be called from others.

    A state's whole pages are shared by reference, its partly filled last page is copied, and its recurrent state, small
    and overwritten all the time, is copied to a slot of the *shelf* in host memory. When the pool is short of pages,
    kept ones move to the host tier, and from there to the disk tier or away.
    """

    def __init__(
        self,
        kv: PagedKV,
        state: LaneState,
        pages: PagePool,
        *,
        slots: int,
        lanes: int,
        host_bytes: int,
        disk: DiskTier | None = None,
    ) -> None:
        """
        Args:
            slots: states kept at once.
            lanes: slots of the shelf beside those, for parked requests only.
            host_bytes: the host tier's size; 0 is off. Then nothing is spilled: kept states are dropped at once, parked
                pages stay in the pool.
        """
        super().__init__(kv, state, pages, slots=slots, others=lanes, host_bytes=host_bytes, disk=disk)
        self._parking = Parking(
            pages, self._size, self._host, self._held, self._room, state, self._shelf, range(slots, slots + lanes)
        )
        self._hits = self._misses = self._cached_tokens = self._restores = 0

    # --- starting from what is kept ----------------------------------------------------------------------------

    def pages_for(self, kept: Kept | None, total_tokens: int) -> int:
        """Pages to take for a sequence of ``total_tokens`` that starts from ``kept``: its own, with the copy of a
        partly filled page, and those of ``kept`` that have to come back from the host tier."""
        pages = -(-total_tokens // self._size)
        if kept is None:
            return pages
        whole = kept.tokens // self._size
        return pages - whole + sum(held.page is None for held in kept.held[:whole])

    def fork(self, kept: Kept, lane: int, extra_pages: int) -> list[int]:
        """Put ``kept`` on a lane.

        Args:
            extra_pages: the sequence's own pages, with the copy of a partly filled one.

        Returns:
            The lane's pages in order, each with a reference of its own.

        Raises:
            MemoryError: fewer than :meth:`pages_for` are free (ask and reclaim first); nothing has changed then.
        """
        whole, rest = divmod(kept.tokens, self._size)
        if rest and not extra_pages:
            raise ValueError("a partly filled page needs a page for its copy")
        away = [held for held in kept.held[:whole] if held.page is None]
        fresh = self._pages.take(len(away) + extra_pages)
        self._restores += any(held.page is None for held in kept.held)
        for held, page in zip(away, fresh, strict=False):
            self._held.restore(held, page)
        shared = [held.page for held in kept.held[:whole] if held.page is not None]
        self._pages.share(shared)
        own = fresh[len(away) :]
        if rest:
            self._held.copy_into(kept.held[whole], own[0])
        self._shelf.copy_to(kept.slot, self._state, lane)
        self._store.touch(kept)
        self._hits += 1
        self._cached_tokens += kept.tokens
        return shared + own

    def count_miss(self) -> None:
        self._misses += 1

    # --- parking -----------------------------------------------------------------------------------------------

    def park(self, lane: int, pages: Sequence[int], tokens: int, rope_delta: int) -> Parked:
        """Take a sequence off its lane. Its pages stay in the pool and belong to what is returned."""
        return self._parking.park(lane, pages, tokens, rope_delta)

    def can_spill(self, pages: int) -> bool:
        """Whether the host tier can take ``pages`` pages of parked requests, when kept ones there give way."""
        return self._parking.can_spill(pages)

    def spillable(self, parked: Parked) -> int:
        """Pages that :meth:`spill_parked` would move to the host tier: those with content that no lane shares."""
        return self._parking.spillable(parked)

    def spill_parked(self, parked: Parked) -> None:
        """Free a parked request's pages: those with content go to the host tier, blank ones are given up.

        Raises:
            MemoryError: the host tier cannot take them (ask :meth:`can_spill` first); nothing has changed then.
        """
        self._parking.spill(parked)

    def pages_to_resume(self, parked: Parked) -> int:
        """Pages that have to be free before a parked request can go on."""
        return self._parking.pages_to_resume(parked)

    def resume(self, parked: Parked, lane: int) -> list[int]:
        """Put a parked sequence on a lane, as it was. Returns its pages in order.

        Raises:
            MemoryError: fewer than :meth:`pages_to_resume` are free; nothing has changed then.
        """
        return self._parking.resume(parked, lane)

    def discard(self, parked: Parked) -> None:
        """Free all that a parked request holds: it will not go on."""
        self._parking.discard(parked)

    # --- what there is -----------------------------------------------------------------------------------------

    def figures(self) -> ReuseSnapshot:
        return ReuseSnapshot(
            kept=len(self._store),
            kept_pages=self.reclaimable,
            hits=self._hits,
            misses=self._misses,
            cached_tokens=self._cached_tokens,
            evictions=self._evictions,
            spills=self._room.spills,
            restores=self._restores + self._parking.restores,
            parks=self._parking.parks,
            resumes=self._parking.resumes,
            host_total=self._host.units.total * self._host.unit_bytes,
            host_used=self._host.used_bytes,
            disk_used=self._disk.used_bytes if self._disk is not None else 0,
        )

    def owners(self) -> bytearray:
        """The page map as far as it is not the lanes': one byte a page, ``PAGE_FREE`` where nothing is kept or parked,
        ``PAGE_SHARED`` where lanes hold the page too, or a kept state what is parked."""
        return audit.owners(self._pages, self._held, self._parking)

    def check(self, lanes: Iterable[Sequence[int]] | None = None) -> None:
        """Count every reference to pages, units and slots again.

        Args:
            lanes: the pages of every running sequence; then every page's count must agree, else it may only be larger.

        Raises:
            AccountError: something leaked, or was given back twice.
        """
        audit.check(self._pages, self._host, self._held, self._store, self._parking, lanes)
