"""Who holds what: lanes with their pages and state, and the prefixes that outlive their requests."""

from __future__ import annotations

from engine.config import EngineConfig
from engine.memory.pages import PagePool
from engine.memory.retained import Retained, RetainedStore
from engine.messages import LaneSnapshot, PrefixGoneError, ReadRequest, RequestError, RetainRequest
from engine.model.network import Network
from engine.schedule.job import Job, Sequence


class Lanes:
    """Gives lanes, pages and state slots to requests and takes them back."""

    def __init__(self, network: Network, config: EngineConfig, pages: int, max_context: int) -> None:
        self.pages = PagePool(pages)
        self.retained = RetainedStore(range(config.lanes, config.lanes + config.retained_limit))
        self._network = network
        self._page_size = config.page_size
        self._max_context = max_context
        self._lanes: list[Sequence | None] = [None] * config.lanes

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

    def make_room(self, job: Job) -> bool:
        """Whether the pages that ``job`` needs are there; retained prefixes go first to make them so.

        Raises:
            PrefixGoneError: the prefix it continues was dropped.
            RequestError: it does not fit its prefix, the context or the pool.
        """
        prefix = self._prefix(job)
        needed = self._own_pages(job, prefix)
        kept = len(prefix.pages) if prefix is not None else 0
        if kept + needed > self.pages.total:
            raise RequestError(
                f"The request needs {needed} pages of {self._page_size} tokens beside its prefix's {kept}; the pool "
                f"has {self.pages.total}. Ask for less, or load with more kv_tokens.",
                code="context_length_exceeded",
            )
        if self.pages.free + self.retained.pages - kept < needed:
            return False  # only the end of a running request helps; prefixes are not dropped in vain
        # The job's own prefix is the most recently used one: it is evicted last, and must not be.
        while self.pages.free < needed and len(self.retained) > (prefix is not None):
            self._drop(self.retained.evict())
        return self.pages.free >= needed

    def take(self, job: Job) -> Sequence:
        """A lane for ``job``, after :meth:`make_room` said that there is room and while a lane is free.

        Whole pages of a prefix are shared; its partly filled last page and its recurrent state are copied.
        """
        lane = self._lanes.index(None)
        prefix = self._prefix(job)
        own = self.pages.take(self._own_pages(job, prefix))
        if prefix is None:
            self._network.state.clear(lane)
            sequence = Sequence(job, lane, own)
        else:
            whole, rest = divmod(prefix.tokens, self._page_size)
            shared = list(prefix.pages[:whole])
            self.pages.share(shared)
            if rest:
                self._network.kv.copy_page(prefix.pages[whole], own[0])
            self._network.state.copy(prefix.slot, lane)
            sequence = Sequence(job, lane, shared + own, past=prefix.tokens, rope_delta=prefix.rope_delta)
        self._lanes[lane] = sequence
        return sequence

    def give_back(self, sequence: Sequence) -> None:
        self._lanes[sequence.lane] = None
        self.pages.release(sequence.pages)
        sequence.pages = []

    def retain(self, sequence: Sequence, request: RetainRequest) -> None:
        """Hand a sequence's pages and a copy of its state over to the store, under the request's id."""
        self.release(request.id)
        if not self.retained.free_slots:
            self._drop(self.retained.evict())
        slot = self.retained.take_slot()
        self._network.state.copy(sequence.lane, slot)
        pages = tuple(sequence.pages)
        sequence.pages = []
        self.retained.add(Retained(request.id, pages, slot, sequence.context, sequence.rope_delta, request.layers))

    def release(self, prefix: str) -> None:
        """Drop a retained prefix, if it is still there."""
        self._drop(self.retained.drop(prefix))

    def _drop(self, retained: Retained | None) -> None:
        if retained is not None:
            self.pages.release(retained.pages)

    def _own_pages(self, job: Job, prefix: Retained | None) -> int:
        """Pages to reserve: the prompt and the longest answer it may get, with the copy of a prefix's last page."""
        carried = prefix.tokens % self._page_size if prefix is not None else 0
        return -(-(carried + len(job.request.prompt) + job.cap) // self._page_size)

    def _prefix(self, job: Job) -> Retained | None:
        """The prefix that ``job`` continues, now the most recently used; None when it starts from nothing."""
        request = job.request
        if not isinstance(request, ReadRequest) or request.prefix is None:
            return None
        prefix = self.retained.use(request.prefix)
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
