"""Who holds what: lanes with their pages and state, parked requests, and kept state that requests start from."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from engine.config import EngineConfig
from engine.memory.disk_tier import DiskTier
from engine.memory.keeper import Keeper
from engine.memory.kept import Kept, Parked
from engine.memory.pages import PagePool
from engine.memory.plan import Layout
from engine.memory.prefix_hash import prefix_chain, tail_hash
from engine.memory.stored import StoredState
from engine.messages import (
    PAGE_FREE,
    PAGE_SHARED,
    EngineError,
    LaneSnapshot,
    PrefixGoneError,
    ReadRequest,
    RequestError,
    RetainRequest,
)
from engine.model.network import Network
from engine.schedule.job import Job, Sequence
from engine.schedule.policy import Room


class Lanes:
    """Gives lanes, pages and state to requests and takes them back.

    What is asked for on every step (pages that are private, can be had, or belong to whom) is worked out once between
    two changes.
    """

    def __init__(self, network: Network, config: EngineConfig, layout: Layout, disk: DiskTier | None = None) -> None:
        self.pages = PagePool(layout.pages)
        self.pages_each = -(-layout.max_context // config.page_size)
        """Pages of one full context."""
        self.keeper = Keeper(
            network.kv,
            network.state,
            self.pages,
            slots=config.retained_limit,
            lanes=config.lanes,
            host_bytes=layout.host_tier,
            disk=disk,
        )
        self._network = network
        self._page_size = config.page_size
        self._max_context = layout.max_context
        self._lanes: list[Sequence | None] = [None] * config.lanes
        self._parked: dict[str, tuple[Sequence, Parked]] = {}
        self._room: Room | None = None
        self._map: bytes | None = None
        self._private: dict[str, int] = {}
        self._needed: dict[str, int] = {}

    # --- what is there ---------------------------------------------------------------------------------------

    @property
    def running(self) -> list[Sequence]:
        return [sequence for sequence in self._lanes if sequence is not None]

    @property
    def free(self) -> int:
        return self._lanes.count(None)

    def __contains__(self, sequence: Sequence) -> bool:
        return self._lanes[sequence.lane] is sequence

    def snapshots(self, now: float) -> tuple[LaneSnapshot, ...]:
        return tuple(s.snapshot(now) if s else LaneSnapshot(i) for i, s in enumerate(self._lanes))

    def parked(self, now: float) -> tuple[LaneSnapshot, ...]:
        return tuple(sequence.snapshot(now, parked=True) for sequence, _ in self._parked.values())

    def room(self) -> Room:
        """Lanes and pages that a request could have now, dropping and spilling what may be."""
        if self._room is None:
            pages = self.pages.free + self.keeper.reclaimable + self._parked_pages()
            self._room = Room(self.free, pages, min(self.pages_each, self.pages.total))
        return self._room

    def private_pages(self, sequence: Sequence) -> int:
        """Pages that nobody else holds."""
        if sequence.id not in self._private:
            references = self.pages.references()
            self._private[sequence.id] = sum(references[page] == 1 for page in sequence.pages)
        return self._private[sequence.id]

    def can_park(self, pages: int) -> bool:
        """Whether the host tier has a place for so many pages beside all that parked requests hold in the pool."""
        in_pool = sum(self.keeper.spillable(parked) + len(parked.blank) for _, parked in self._parked.values())
        return self.keeper.can_spill(pages + in_pool)

    def page_map(self) -> bytes:
        """``EngineSnapshot.page_map``."""
        if self._map is None:
            cells = np.frombuffer(self.keeper.owners(), dtype=np.uint8)
            for sequence in self.running:
                own = np.asarray(sequence.pages)
                cells[own] = np.where(cells[own] == PAGE_FREE, sequence.lane + 1, PAGE_SHARED)
            self._map = cells.tobytes()
        return self._map

    # --- requests --------------------------------------------------------------------------------------------

    def pages_needed(self, item: Job | Sequence) -> int:
        """Pages that a waiting or parked request takes from the pool beyond those it shares.

        0 for one that can only fail: :meth:`make_room` says why.
        """
        if isinstance(item, Sequence):
            return self.keeper.pages_to_resume(self._parked[item.id][1])
        needed = self._needed.get(item.request.id)
        if needed is None:
            try:
                kept, total = self._start(item)
            except EngineError:
                needed = 0
            else:
                needed = self.keeper.pages_for(kept, total) + self._withheld(kept)
            self._needed[item.request.id] = needed
        return needed

    def make_room(self, job: Job) -> bool:
        """Free the pages that ``job`` needs, as far as kept and parked state can give them up.

        Raises:
            PrefixGoneError: the prefix it continues was dropped.
            RequestError: it does not fit its prefix, the context or the pool.
        """
        kept, total = self._start(job)
        return self._free_pages(self.keeper.pages_for(kept, total), spare=kept)

    def take(self, job: Job) -> tuple[Sequence, Tensor | None]:
        """A lane for ``job``, after :meth:`make_room` said that there is room and while a lane is free.

        Returns:
            (the sequence, the last column's residual when all of its prompt stood in kept state).
        """
        lane = self._lanes.index(None)
        kept, total = self._start(job)
        if kept is None:
            pages = self.pages.take(-(-total // self._page_size))
            self._network.state.clear(lane)
            sequence = Sequence(job, lane, pages)
            if job.chain:
                self.keeper.count_miss()
        else:
            own = -(-total // self._page_size) - kept.tokens // self._page_size
            pages = self.keeper.fork(kept, lane, own)
            if self._prefix_of(job) is not None:
                sequence = Sequence(job, lane, pages, base=kept.tokens, rope_delta=kept.rope_delta)
            else:
                sequence = Sequence(job, lane, pages, cached=kept.tokens)
        self._lanes[lane] = sequence
        self._changed()
        if kept is None or kept.last is None:
            return sequence, None
        return sequence, kept.last.to(self._network.device, non_blocking=True)  # kept in host memory

    def give_back(self, sequence: Sequence) -> None:
        """Free what a request holds, on its lane or parked."""
        parked = self._parked.pop(sequence.id, None)
        if parked is not None:
            self.keeper.discard(parked[1])
        elif sequence in self:
            self._lanes[sequence.lane] = None
            self.pages.release(sequence.pages)
        sequence.pages = []
        self._changed()

    def park(self, sequence: Sequence) -> None:
        """Take a request off its lane. Its pages stay in the pool until somebody needs them."""
        parked = self.keeper.park(sequence.lane, sequence.pages, sequence.context, sequence.rope_delta)
        self._parked[sequence.id] = sequence, parked
        self._lanes[sequence.lane] = None
        self._changed()

    def resume(self, sequence: Sequence) -> bool:
        """Put a parked request on a free lane, exactly as it was. False when its pages are not to be had."""
        parked = self._parked[sequence.id][1]
        if not self._free_pages(self.keeper.pages_to_resume(parked), but=sequence):
            return False
        lane = self._lanes.index(None)
        sequence.pages = self.keeper.resume(parked, lane)
        sequence.lane = lane
        del self._parked[sequence.id]
        self._lanes[lane] = sequence
        self._changed()
        return True

    # --- state that outlives its request ---------------------------------------------------------------------

    def keep_mark(self, sequence: Sequence, tokens: int, last: Tensor) -> None:
        """Keep the state at a mark of the prompt, ``tokens`` tokens in, if there is room for it."""
        job = sequence.job
        if job.chain:
            key = tail_hash(job.chain, job.request.prompt.ids, tokens, self._page_size, job.picture_keys)
            self._keep(sequence, key, last)

    def keep_end(self, sequence: Sequence) -> None:
        """Keep the state after an answer: the next turn of a conversation continues it."""
        job = sequence.job
        answered = sequence.context - len(sequence.prompt)
        if not job.keeps_end or answered <= 0:
            return
        ids = (*sequence.prompt, *sequence.generated[:answered])
        chain = prefix_chain(ids, self._page_size, job.picture_keys)
        self._keep(sequence, tail_hash(chain, ids, len(ids), self._page_size, job.picture_keys), None, ending=True)

    def _keep(self, sequence: Sequence, key: bytes, last: Tensor | None, *, ending: bool = False) -> None:
        self.keeper.keep(
            sequence.lane,
            sequence.pages,
            sequence.context,
            key=key,
            id=f"{sequence.id}@{sequence.context}",
            rope_delta=0,
            request_class=sequence.request.request_class,
            last=last,
            ending=ending,
        )
        self._changed()

    def retain(self, sequence: Sequence, request: RetainRequest) -> None:
        """Keep a sequence's state under the request's id until it is released."""
        self.keeper.keep(
            sequence.lane,
            sequence.pages,
            sequence.context,
            key=None,
            id=request.id,
            rope_delta=sequence.rope_delta,
            layers=request.layers,
            request_class=request.request_class,
            explicit=True,
            ending=True,
        )
        self._changed()

    def release(self, prefix: str) -> None:
        """Drop a retained prefix, if it is still there."""
        self.keeper.drop(prefix)
        self._changed()

    def adopt(self, found: StoredState) -> None:
        """Take over kept state that came from the disk tier."""
        self.keeper.adopt(found)
        self._changed()

    # --- helpers ---------------------------------------------------------------------------------------------

    def _changed(self) -> None:
        """Pages or kept state moved: what was worked out from them is void."""
        self._room = None
        self._map = None
        self._private.clear()
        self._needed.clear()

    def _parked_pages(self) -> int:
        """Pages that spilling all that is parked would free, as far as the host tier has room for it."""
        most = 0
        filled = 0
        for _, parked in self._parked.values():
            filled += self.keeper.spillable(parked)
            if self.keeper.can_spill(filled):
                most += self.keeper.spillable(parked) + len(parked.blank)
        return most

    def _withheld(self, kept: Kept | None) -> int:
        """Pages that :meth:`room` counts as to be had, but not for who starts from ``kept``: its own."""
        return 0 if kept is None else self.keeper.idle_pages(kept)

    def _free_pages(self, needed: int, *, spare: Kept | None = None, but: Sequence | None = None) -> bool:
        """Kept state gives way first, then parked requests."""
        enough = self.keeper.reclaim(needed, spare=spare)
        for sequence, parked in list(self._parked.values()):
            if enough:
                break
            if sequence is not but and self.keeper.can_spill(self.keeper.spillable(parked)):
                self.keeper.spill_parked(parked)
                enough = self.keeper.reclaim(needed, spare=spare)
        self._changed()
        return enough

    def _start(self, job: Job) -> tuple[Kept | None, int]:
        """(The kept state that ``job`` starts from, if any; tokens to reserve in all).

        Raises as :meth:`make_room`.
        """
        request = job.request
        prefix = self._prefix_of(job)
        if prefix is not None:
            total = prefix.tokens + len(request.prompt)
            if not self._fits_beside(prefix, total):
                own = -(-total // self._page_size) - prefix.tokens // self._page_size
                raise RequestError(
                    f"The request needs {own} pages of {self._page_size} tokens beside its prefix's "
                    f"{len(prefix.held)}; the pool has {self.pages.total}. Ask for less, or load with more kv_tokens.",
                    code="context_length_exceeded",
                )
            return prefix, total
        total = len(request.prompt) + job.cap
        limit = job.most_reused
        while job.chain:
            kept = self.keeper.find(request.prompt.ids, job.chain, job.picture_keys, limit=limit)
            if kept is None or self._fits_beside(kept, total):
                return kept, total
            limit = kept.tokens - 1
        return None, total

    def _fits_beside(self, kept: Kept, total: int) -> bool:
        """Whether an empty pool could hold ``kept`` and what starts from it at once."""
        return len(kept.held) + -(-total // self._page_size) - kept.tokens // self._page_size <= self.pages.total

    def _prefix_of(self, job: Job) -> Kept | None:
        """The retained prefix that ``job`` names; None when it names none."""
        request = job.request
        if not isinstance(request, ReadRequest) or request.prefix is None:
            return None
        prefix = self.keeper.get(request.prefix)
        if prefix is None:
            raise PrefixGoneError(request.prefix)
        if prefix.layers is not None and (job.layers is None or job.layers > prefix.layers):
            raise RequestError(f"The prefix {prefix.id!r} was retained for its first {prefix.layers} layers only.")
        total = prefix.tokens + len(request.prompt)
        if total > self._max_context:
            raise RequestError(
                f"Prefix and prompt have {total:,} tokens; the context holds {self._max_context:,}. Shorten one.",
                code="context_length_exceeded",
            )
        span = request.heads
        if span is not None and (span.end > total or any(position >= total for position in span.extra)):
            raise RequestError("A head span needs positions inside prefix and prompt.")
        return prefix
