"""The step of the engine's loop: one piece of a prompt, or one round of all running lanes.

Owned by the engine's thread. Callers outside reach it through the engine's command queue only.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from collections.abc import Sequence as Many
from functools import partial

import torch
from torch import Tensor

from engine.config import EngineConfig
from engine.memory.plan import Layout
from engine.messages import (
    DeadlineError,
    EngineError,
    Failed,
    Finished,
    FinishReason,
    GenerateRequest,
    Prefilled,
    PromptScored,
    ReadRequest,
    RetainRequest,
    Scores,
    Started,
    TokenLogprob,
    Tokens,
    Usage,
)
from engine.model.decoder import Readout, Run
from engine.model.network import Network
from engine.sample.sampler import Sampler
from engine.schedule.admission import AdmissionQueue, Waiting
from engine.schedule.counters import Counters, Rate
from engine.schedule.job import Job, Sequence
from engine.schedule.lanes import Lanes
from engine.schedule.prefill import Prefill, VisionCache
from engine.text.stream import TextStream
from engine.text.tokenizer import Tokenizer

_log = logging.getLogger(__name__)


class Scheduler:
    """Runs requests over one network."""

    def __init__(self, network: Network, tokenizer: Tokenizer, config: EngineConfig, layout: Layout) -> None:
        self.counters = Counters()
        self.decode_rate = Rate()
        self.prefill_rate = Rate()
        self.queue: AdmissionQueue[Job] = AdmissionQueue(config.lanes)
        self.lanes = Lanes(network, config, layout.pages, layout.max_context)
        self._network = network
        self._tokenizer = tokenizer
        self._prefill = Prefill(network, config.prefill_chunk, VisionCache(layout.vision_cache))
        self._sampler = Sampler(config.lanes, network.config.text.vocab_size, network.device)
        self._decode_share = config.decode_share
        self._decode_credit = 0.0

    # --- what the outside asks for -------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        return bool(len(self.queue) or self.lanes.running)

    def add(self, job: Job) -> None:
        self.queue.add(Waiting(job.request.id, job.request.request_class, job))

    def cancel(self, request_id: str) -> None:
        """End a request wherever it is; unknown ids are fine (it may just have ended)."""
        waiting = self.queue.remove(request_id)
        if waiting is not None:
            job = waiting.item
            self.counters.cancelled += 1
            usage = Usage(len(job.request.prompt), 0, 0)
            job.stream.put(Finished("cancelled", usage, queue_seconds=time.monotonic() - job.queued))
        for sequence in self.lanes.running:
            if sequence.id == request_id:
                self._finish(sequence, "cancelled")

    def cancel_all(self) -> None:
        for waiting in self.queue.all():
            self.cancel(waiting.id)
        for sequence in self.lanes.running:
            self._finish(sequence, "cancelled")

    # --- one step --------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Admit what may start, then do one piece of work.

        While prompts are being read, running lanes keep ``decode_share`` of the time: after a chunk of t seconds they
        may use t · share / (1 − share) before the next one.
        """
        self._expire()
        self._admit()
        prefilling = [s for s in self.lanes.running if not s.decoding]
        decoding = [s for s in self.lanes.running if s.decoding]
        if prefilling and (not decoding or self._decode_credit <= 0):
            # Interactive first, then by age: an agent's long prompt is interrupted between chunks.
            sequence = min(prefilling, key=lambda s: (s.request.request_class == "agent", s.started))
            start = time.monotonic()
            self._guarded([sequence], lambda: self._prefill_step(sequence))
            self._decode_credit = (time.monotonic() - start) * self._decode_share / (1 - self._decode_share)
        elif decoding:
            start = time.monotonic()
            self._guarded(decoding, lambda: self._round(decoding))
            self._decode_credit -= time.monotonic() - start

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
            if deadline is not None and now > deadline:
                self._refuse(waiting, late)
        for sequence in self.lanes.running:
            if sequence.request.deadline is not None and now > sequence.request.deadline:
                self._fail(sequence, late)

    def _admit(self) -> None:
        while (waiting := self.queue.first(self.lanes.free)) is not None:
            try:
                if not self.lanes.make_room(waiting.item):
                    return
            except EngineError as error:
                self._refuse(waiting, error)
                continue
            self.queue.remove(waiting.id)
            sequence = self.lanes.take(waiting.item)
            self._guarded([sequence], partial(self._begin, sequence))

    def _begin(self, sequence: Sequence) -> None:
        request = sequence.request
        if isinstance(request, GenerateRequest):
            sampling = request.sampling
            sequence.seed = secrets.randbits(63) if sampling.seed is None else sampling.seed
            self._sampler.begin(sequence.lane, sampling, request.prompt.ids, sequence.seed)
            sequence.text = TextStream(self._tokenizer, sampling.stop)
        sequence.emit(Started(sequence.started - sequence.job.queued))

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
            self.lanes.retain(sequence, request)
            self._finish(sequence, "stop")
        elif isinstance(request, ReadRequest):
            self._answer(sequence, request, last, readout)
        else:
            if request.sampling.prompt_logprobs is not None:
                sequence.emit(PromptScored(tuple(sequence.prompt_logprobs)))
            if sequence.job.cap == 0:
                self._finish(sequence, "length")
            else:
                self._sample([sequence], self._network.decoder.logits(last))

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
            self._give_back(sequence)
            self.counters.failed += 1

    # --- ends ------------------------------------------------------------------------------------------------

    def _refuse(self, waiting: Waiting[Job], error: EngineError) -> None:
        """End a request that has no lane yet."""
        self.queue.remove(waiting.id)
        self.counters.failed += 1
        waiting.item.stream.put(Failed(error))

    def _finish(self, sequence: Sequence, reason: FinishReason, stop: str | None = None) -> None:
        now = time.monotonic()
        begun = sequence.first_token if sequence.first_token is not None else now
        self._give_back(sequence)
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
        """End a request with a fault, unless it ended before."""
        if sequence in self.lanes:
            self._give_back(sequence)
            self.counters.failed += 1
            sequence.emit(Failed(error))

    def _give_back(self, sequence: Sequence) -> None:
        self.lanes.give_back(sequence)
        if isinstance(sequence.request, GenerateRequest):
            self._sampler.end(sequence.lane)
