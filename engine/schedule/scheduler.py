"""The step of the engine's loop: one piece of a prompt, or one round of all running lanes.

Owned by the engine's thread. Callers outside reach it through the engine's command queue only.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections import deque
from collections.abc import Callable
from collections.abc import Sequence as Many
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.config import EngineConfig
from engine.memory.pages import PagePool
from engine.memory.retained import Retained, RetainedStore
from engine.messages import (
    DeadlineError,
    EngineError,
    Failed,
    Finished,
    FinishReason,
    GenerateRequest,
    LaneSnapshot,
    Prefilled,
    PrefixGoneError,
    PromptScored,
    ReadRequest,
    RetainRequest,
    Scores,
    Started,
    TokenLogprob,
    Tokens,
)
from engine.model.decoder import Readout, Run
from engine.model.network import Network
from engine.sample.sampler import Sampler
from engine.schedule.admission import AdmissionQueue, Waiting
from engine.schedule.job import Job, Sequence
from engine.schedule.prefill import Prefill, VisionCache
from engine.text.stream import TextStream
from engine.text.tokenizer import Tokenizer

_log = logging.getLogger(__name__)
_RATE_WINDOW = 2.0
"""Seconds over which tokens per second are averaged."""


@dataclass
class Counters:
    """Totals since the model was loaded."""

    rounds: int = 0
    tokens_generated: int = 0
    tokens_prefilled: int = 0
    finished: int = 0
    failed: int = 0
    cancelled: int = 0


class Rate:
    """Tokens per second over the last moments."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()

    def add(self, now: float, tokens: int) -> None:
        self._samples.append((now, tokens))

    def value(self, now: float) -> float:
        while self._samples and self._samples[0][0] < now - _RATE_WINDOW:
            self._samples.popleft()
        if not self._samples:
            return 0.0
        return sum(tokens for _, tokens in self._samples) / _RATE_WINDOW


class Scheduler:
    """Lanes, queue and retained prefixes over one network."""

    def __init__(self, network: Network, tokenizer: Tokenizer, config: EngineConfig, *, pages: int, cache: int) -> None:
        self.counters = Counters()
        self.decode_rate = Rate()
        self.prefill_rate = Rate()
        self.pages = PagePool(pages)
        self.retained = RetainedStore(range(config.lanes, config.lanes + config.retained_limit))
        self.queue: AdmissionQueue[Job] = AdmissionQueue(config.queue_limit, config.lanes)
        self._network = network
        self._tokenizer = tokenizer
        self._config = config
        self._lanes: list[Sequence | None] = [None] * config.lanes
        self._prefill = Prefill(network, config.prefill_chunk, VisionCache(cache))
        self._sampler = Sampler(config.lanes, network.config.text.vocab_size, network.device)
        self._decode_credit = 0.0

    # --- what the outside asks for -------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        return bool(len(self.queue)) or any(self._lanes)

    @property
    def max_context(self) -> int:
        own = self._network.config.text.max_context
        return min(own, self._config.max_context or own)

    @property
    def generation_cap(self) -> int:
        return self._config.generation_cap

    def fits(self, job: Job) -> bool:
        """Whether the request could run with the whole pool to itself."""
        return self._pages_needed(job) <= self.pages.total

    def add(self, job: Job) -> None:
        self.queue.add(Waiting(job.request.id, job.request.request_class, self._pages_needed(job), job))

    def cancel(self, request_id: str) -> None:
        """End a request wherever it is; unknown ids are fine (it may just have ended)."""
        waiting = self.queue.remove(request_id)
        if waiting is not None:
            self.counters.cancelled += 1
            waiting.item.stream.put(Finished("cancelled", Sequence(waiting.item, -1, []).usage()))
        for sequence in self._running():
            if sequence.id == request_id:
                self._finish(sequence, "cancelled")

    def cancel_all(self) -> None:
        for waiting in self.queue.all():
            self.cancel(waiting.id)
        for sequence in self._running():
            self._finish(sequence, "cancelled")

    def release(self, prefix: str) -> None:
        self._drop(self.retained.drop(prefix))

    def lanes(self, now: float) -> tuple[LaneSnapshot, ...]:
        return tuple(s.snapshot(now) if s else LaneSnapshot(i) for i, s in enumerate(self._lanes))

    # --- one step --------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Admit what may start, then do one piece of work.

        While prompts are being read, running lanes keep ``decode_share`` of the time: after a chunk of t seconds they
        may use t · share / (1 − share) before the next one.
        """
        self._expire()
        self._admit()
        prefilling = [s for s in self._running() if not s.decoding]
        decoding = [s for s in self._running() if s.decoding]
        if prefilling and (not decoding or self._decode_credit <= 0):
            # Interactive first, then by age: an agent's long prompt is interrupted between chunks.
            sequence = min(prefilling, key=lambda s: (s.request.request_class == "agent", s.started))
            start = time.monotonic()
            self._guarded([sequence], lambda: self._prefill_step(sequence))
            share = self._config.decode_share
            self._decode_credit = (time.monotonic() - start) * share / (1 - share)
        elif decoding:
            start = time.monotonic()
            self._guarded(decoding, lambda: self._round(decoding))
            self._decode_credit -= time.monotonic() - start

    def _running(self) -> list[Sequence]:
        return [sequence for sequence in self._lanes if sequence is not None]

    def _guarded(self, sequences: Many[Sequence], work: Callable[[], None]) -> None:
        """Run a pass; a fault in it ends the requests that were in it and nothing else."""
        try:
            with torch.inference_mode():
                work()
        except EngineError as error:
            for sequence in sequences:
                self._fail(sequence, error)
        except Exception as error:
            _log.exception("a pass failed")
            for sequence in sequences:
                self._fail(sequence, EngineError(f"The pass this request was in failed: {error}", code="pass_failed"))

    def _expire(self) -> None:
        now = time.monotonic()
        late = DeadlineError("The request's time was up before it was done; allow more time or ask for less.")
        for waiting in self.queue.all():
            deadline = waiting.item.request.deadline
            if deadline is not None and now > deadline and self.queue.remove(waiting.id):
                self.counters.failed += 1
                waiting.item.stream.put(Failed(late))
        for sequence in self._running():
            if sequence.request.deadline is not None and now > sequence.request.deadline:
                self._fail(sequence, late)

    # --- lanes and pages -------------------------------------------------------------------------------------

    def _pages_for(self, tokens: int) -> int:
        return -(-tokens // self._config.page_size)

    def _pages_needed(self, job: Job) -> int:
        pages = self._pages_for(len(job.request.prompt) + job.cap)
        forks = isinstance(job.request, ReadRequest) and job.request.prefix is not None
        return pages + 1 if forks else pages  # the prefix's last page may be partly filled and is copied

    def _admit(self) -> None:
        while self.queue.all():
            free_lanes = self._lanes.count(None)
            waiting = self.queue.next(free_lanes, self.pages.free)
            if waiting is not None:
                self._start(waiting)
            elif not free_lanes or not self._evict_for(self.queue.all()[0]):
                return

    def _evict_for(self, waiting: Waiting[Job]) -> bool:
        """Live work goes before retained state: drop the least recently used prefix when pages are what is missing."""
        if self.pages.free >= waiting.pages:
            return False
        request = waiting.item.request
        if isinstance(request, ReadRequest) and request.prefix is not None:
            self.retained.use(request.prefix)
            if len(self.retained) == 1:
                return False
        dropped = self.retained.evict()
        self._drop(dropped)
        return dropped is not None

    def _drop(self, retained: Retained | None) -> None:
        if retained is not None:
            self.pages.release(retained.pages)

    def _start(self, waiting: Waiting[Job]) -> None:
        job = waiting.item
        request = job.request
        lane = self._lanes.index(None)
        prefix = request.prefix if isinstance(request, ReadRequest) else None
        if prefix is None:
            self._network.state.clear(lane)
            sequence = Sequence(job, lane, self.pages.take(waiting.pages))
        else:
            retained = self.retained.use(prefix)
            try:
                self._check_fork(job, retained)
            except EngineError as error:
                self.counters.failed += 1
                job.stream.put(Failed(error))
                return
            assert retained is not None
            sequence = self._fork(job, lane, retained)
        self._lanes[lane] = sequence
        if isinstance(request, GenerateRequest):
            sampling = request.sampling
            sequence.seed = secrets.randbits(63) if sampling.seed is None else sampling.seed
            self._sampler.begin(lane, sampling, request.prompt.ids, sequence.seed)
            sequence.text = TextStream(self._tokenizer, sampling.stop)
        sequence.emit(Started(sequence.started - job.queued))

    def _check_fork(self, job: Job, retained: Retained | None) -> None:
        request = job.request
        assert isinstance(request, ReadRequest)
        assert request.prefix is not None
        if retained is None:
            raise PrefixGoneError(request.prefix)
        if retained.layers is not None and (job.layers is None or job.layers > retained.layers):
            raise EngineError(f"The prefix {request.prefix!r} was retained for {retained.layers} layers only.")
        if self._pages_for(retained.tokens + len(request.prompt)) > self._pages_for(self.max_context):
            raise EngineError(f"Prefix and prompt are longer than the context of {self.max_context} tokens.")

    def _fork(self, job: Job, lane: int, retained: Retained) -> Sequence:
        """Whole pages of the prefix are shared; its partly filled last page and its recurrent state are copied."""
        whole, rest = divmod(retained.tokens, self._config.page_size)
        own = self.pages.take(self._pages_for(rest + len(job.request.prompt)))
        shared = list(retained.pages[:whole])
        self.pages.share(shared)
        if rest:
            self._network.kv.copy_page(retained.pages[whole], own[0])
        self._network.state.copy(retained.slot, lane)
        return Sequence(job, lane, shared + own, past=retained.tokens, rope_delta=retained.rope_delta)

    # --- prompts ---------------------------------------------------------------------------------------------

    def _prefill_step(self, sequence: Sequence) -> None:
        tokens, last, readout = self._prefill.step(sequence)
        if tokens:
            self.counters.tokens_prefilled += tokens
            self.prefill_rate.add(time.monotonic(), tokens)
            sequence.emit(Prefilled(sequence.read, len(sequence.prompt)))
        if last is None:
            return
        request = sequence.request
        if isinstance(request, RetainRequest):
            self._retain(sequence)
        elif isinstance(request, ReadRequest):
            self._answer(sequence, request, last, readout)
        else:
            if request.sampling.prompt_logprobs is not None:
                sequence.emit(PromptScored(tuple(sequence.prompt_logprobs)))
            if sequence.job.cap == 0:
                self._finish(sequence, "length")
            else:
                self._sample([sequence], self._network.decoder.logits(last))

    def _retain(self, sequence: Sequence) -> None:
        """Hand pages and state over to the store; the lane is free afterwards."""
        if not self.retained.free_slots:
            self._drop(self.retained.evict())
        request = sequence.request
        self.release(request.id)
        slot = self.retained.take_slot()
        self._network.state.copy(sequence.lane, slot)
        pages = tuple(sequence.pages)
        sequence.pages = []
        self.retained.add(Retained(request.id, pages, slot, sequence.context, sequence.rope_delta, sequence.job.layers))
        self._finish(sequence, "stop")

    def _answer(self, sequence: Sequence, request: ReadRequest, last: Tensor, readout: Readout | None) -> None:
        labels = None
        if request.labels:
            chosen = self._network.decoder.logits(last)[0].log_softmax(-1)[list(request.labels)]
            labels = chosen.cpu().numpy()
        heads = readout.scores.numpy() if readout is not None else None
        sequence.emit(Scores(heads, labels))
        self._finish(sequence, "stop")

    # --- rounds ----------------------------------------------------------------------------------------------

    def _round(self, sequences: list[Sequence]) -> None:
        device = self._network.device
        ids = torch.tensor([s.last_token for s in sequences], device=device)
        positions = torch.tensor([s.context + s.rope_delta for s in sequences], device=device).expand(3, -1)
        runs = [Run(s.lane, column, 1, s.context, s.pages) for column, s in enumerate(sequences)]
        hidden = self._network.decoder.forward(self._network.decoder.embed(ids), positions, runs)
        for sequence in sequences:
            sequence.context += 1
        self.counters.rounds += 1
        self._sample(sequences, self._network.decoder.logits(hidden))

    def _sample(self, sequences: list[Sequence], logits: Tensor) -> None:
        sampled = self._sampler.sample(logits, [s.lane for s in sequences])
        now = time.monotonic()
        self.counters.tokens_generated += len(sequences)
        self.decode_rate.add(now, len(sequences))
        for row, (sequence, token, logprob) in enumerate(zip(sequences, sampled.ids, sampled.logprobs, strict=True)):
            if row in sampled.faults:
                self._fail(sequence, sampled.faults[row])
                continue
            if sequence.first_token is None:
                sequence.first_token = now
            self._advance(sequence, token, logprob)

    def _advance(self, sequence: Sequence, token: int, logprob: TokenLogprob | None) -> None:
        """Book one new token: text, end tokens, stop strings, length."""
        request = sequence.request
        assert isinstance(request, GenerateRequest)
        assert sequence.text is not None
        sequence.last_token = token
        sequence.generated += 1
        if token in sequence.job.end_ids:
            rest = sequence.text.flush()
            if rest:
                sequence.emit(Tokens((), rest))
            self._finish(sequence, "stop")
            return
        text = sequence.text.push(token)
        stopped = sequence.text.stopped
        last = stopped is None and sequence.generated >= sequence.job.cap
        if last:
            text += sequence.text.flush()
        alive = sequence.emit(Tokens((token,), text, () if logprob is None else (logprob,)))
        if stopped is not None:
            self._finish(sequence, "stop", stopped)
        elif last:
            self._finish(sequence, "length")
        elif not alive:
            self._free(sequence)
            self.counters.failed += 1

    # --- ends ------------------------------------------------------------------------------------------------

    def _finish(self, sequence: Sequence, reason: FinishReason, stop: str | None = None) -> None:
        now = time.monotonic()
        begun = sequence.first_token if sequence.first_token is not None else now
        self._free(sequence)
        if reason == "cancelled":
            self.counters.cancelled += 1
        else:
            self.counters.finished += 1
        sequence.emit(
            Finished(
                reason=reason,
                usage=sequence.usage(),
                seed=sequence.seed,
                stop=stop,
                prefill_seconds=begun - sequence.started,
                decode_seconds=now - begun,
                queue_seconds=sequence.started - sequence.job.queued,
            )
        )

    def _fail(self, sequence: Sequence, error: EngineError) -> None:
        if self._lanes[sequence.lane] is not sequence:
            return
        self._free(sequence)
        self.counters.failed += 1
        sequence.emit(Failed(error))

    def _free(self, sequence: Sequence) -> None:
        self._lanes[sequence.lane] = None
        self.pages.release(sequence.pages)
        sequence.pages = []
        if isinstance(sequence.request, GenerateRequest):
            self._sampler.end(sequence.lane)
