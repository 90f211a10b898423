"""The step of the engine's loop: one chunk of prompts, or one round of all running lanes.

Owned by the engine's thread. Callers outside reach it through the engine's command queue only. Who gets a lane is
``policy``'s decision, what a lane holds is ``lanes``' business; here both are carried out.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from collections.abc import Sequence as Many
from dataclasses import replace
from functools import partial
from itertools import islice

import torch
from torch import Tensor

from engine.config import EngineConfig
from engine.memory.disk_tier import DiskTier
from engine.memory.plan import Layout
from engine.memory.reserve import reserve
from engine.memory.stored import StoredState
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
    WaitingSnapshot,
)
from engine.model.decoder import Readout
from engine.model.network import Network
from engine.sample.lane import SavedLane
from engine.sample.sampler import Sampler
from engine.schedule.answer import Taken, take
from engine.schedule.counters import Counters, Pace, Rate
from engine.schedule.flight import Attempt, Flight
from engine.schedule.job import Job, Sequence
from engine.schedule.lanes import Lanes
from engine.schedule.lookahead import columns_ahead
from engine.schedule.policy import Need, Park, Policy, Running, Start, Waiting
from engine.schedule.prefill import Part, Prefill, VisionCache
from engine.schedule.round import Column, Round, columns_of
from engine.text.stream import TextStream
from engine.text.tokenizer import Tokenizer

_log = logging.getLogger(__name__)
_PATIENCE = 0.05
"""Of a round: how long it waits for the mask of a constrained answer before it goes on without that lane."""
_LATE_WAIT = 0.01
"""Seconds to wait for a mask when there is nothing else to do; cancels are looked at in between."""


class Scheduler:
    """Runs requests over one network."""

    def __init__(
        self, network: Network, tokenizer: Tokenizer, config: EngineConfig, layout: Layout, disk: DiskTier | None = None
    ) -> None:
        self.counters = Counters()
        self.decode_rate = Rate()
        self.prefill_rate = Rate()
        self.policy: Policy[Job | Sequence] = Policy(config.queue_limit, self._need)
        self.lanes = Lanes(network, config, layout, disk)
        self._network = network
        self._tokenizer = tokenizer
        self._prefill = Prefill(network, config.prefill_chunk, VisionCache(layout.vision_cache))
        self._round_buffers = Round(network, config.lanes, self.lanes.pages_each)
        self._sampler = Sampler(config.lanes, network.config.text.vocab_size, network.device)
        self._plan = layout.plan
        # Where tokens are told is where they are computed on the CPU: to launch first would only delay them.
        self._lookahead = network.device.type == "cuda" if config.lookahead is None else config.lookahead
        self._flight: Flight | None = None
        self._chunk = config.prefill_chunk
        self._decode_share = config.decode_share
        self._decode_credit = 0.0
        self._chunk_pace = Pace()
        self._round_pace = Pace()

    def prepare(self) -> None:
        """Before the first request: whatever a card compiles, captures or reserves once, so that none waits for it."""
        if self._network.device.type == "cuda":
            with torch.inference_mode():
                self._prefill.warm()
                self._round_buffers.capture()
                self._sampler.warm()
                self._rehearse()
            reserve(self._plan, self._network.device)

    def _rehearse(self) -> None:
        """See that a round can be launched before its tokens are known. Where it cannot, rounds wait for their tokens,
        and the log says so."""
        if not self._lookahead or not self._round_buffers.feeds_itself:
            return
        try:
            self._round_buffers.rehearse()
            if self._network.device.type == "cuda":
                torch.cuda.synchronize()
        except RuntimeError as fault:
            self._lookahead = False
            _log.warning("Rounds are launched when the last one's tokens were told, which is slower: %s", fault)

    # --- what the outside asks for -------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        return bool(len(self.policy) or self.lanes.running)

    def add(self, job: Job, found: StoredState | None = None) -> None:
        """Queue a request; ``found`` is kept state of its prompt that the disk tier had."""
        if found is not None:
            self.lanes.adopt(found)
        self.policy.add(Waiting(job.request.id, job.request.request_class, job, job.queued))

    def cancel(self, request_id: str) -> None:
        """End a request wherever it is; unknown ids are fine (it may just have ended)."""
        waiting = self.policy.remove(request_id)
        if waiting is not None:
            self._cancel_item(waiting.item)
        for sequence in self.lanes.running:
            if sequence.id == request_id:
                self._finish(sequence, "cancelled")

    def park(self, request_id: str) -> None:
        """Move an agent's request out of its lane, for whoever waits; it goes on by itself. One that could not be
        moved out for an interactive request stays."""
        for sequence in self.lanes.running:
            if sequence.id == request_id and sequence.parkable:
                self._guarded([sequence], partial(self._park, sequence))

    def cancel_all(self) -> None:
        self._flight = None
        for waiting in [*self.policy.waiting(), *self.policy.parked()]:
            self.cancel(waiting.id)
        for sequence in self.lanes.running:
            self._finish(sequence, "cancelled")

    def waiting(self, now: float, most: int) -> tuple[WaitingSnapshot, ...]:
        """The first requests that wait for a lane, in the order of their classes."""
        protected = self.policy.protected
        return tuple(
            replace(w.item.label, seconds=now - w.since, protected=w.id in protected)
            for w in islice(self.policy.waiting(), most)
            if isinstance(w.item, Job)
        )

    def retry_after(self, now: float) -> float:
        """Seconds after which a refused request may find room."""
        return self.policy.retry_after(self._running(now), now)

    # --- one step --------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Admit what may start, then do one piece of work: choose the tokens of the round that is under way, or else
        read a chunk or run a round.

        While prompts are being read, running lanes keep ``decode_share`` of the time: after a chunk of t seconds they
        may use t · share / (1 − share) before the next one. The first chunk of an interactive request does not wait for
        that.
        """
        self._expire()
        self._admit()
        self._sample_late()
        # Interactive first, then by age: an agent's long prompt is interrupted between chunks.
        reading = sorted(
            (s for s in self.lanes.running if not s.decoding and s.logits is None),
            key=lambda s: (s.request.request_class == "agent", s.started),
        )
        decoding = [s for s in self.lanes.running if s.decoding and s.logits is None]
        flight, self._flight = self._flight and self._flight.among(self.lanes), None
        if flight is None and reading and (not decoding or self._decode_credit <= 0 or self._urgent(reading[0])):
            seconds = self._timed(lambda: self._read(reading))
            self._decode_credit = seconds * self._decode_share / (1 - self._decode_share)
        elif decoding:
            alone = not reading and len(decoding) == len(self.lanes.running)
            seconds = self._timed(lambda: self._guarded(decoding, lambda: self._round(decoding, flight, alone)))
            self._round_pace.add(0 if self._lookahead and flight is None else 1, seconds)
            self._decode_credit -= seconds
        else:
            self._sample_late(wait=_LATE_WAIT)

    def _urgent(self, sequence: Sequence) -> bool:
        first_chunk = sequence.context - sequence.base - sequence.cached < self._chunk
        return sequence.request.request_class == "interactive" and first_chunk and sequence.encoding is None

    def _timed(self, work: Callable[[], None]) -> float:
        start = time.monotonic()
        work()
        return time.monotonic() - start

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
        if len(self.policy):
            for waiting in [*self.policy.waiting(), *self.policy.parked()]:
                deadline = waiting.item.request.deadline
                if deadline is not None and now > deadline:
                    self.policy.remove(waiting.id)
                    self._fail_item(waiting.item, late)
        for sequence in self.lanes.running:
            if sequence.request.deadline is not None and now > sequence.request.deadline:
                self._fail(sequence, late)

    # --- who runs --------------------------------------------------------------------------------------------

    def _admit(self) -> None:
        now = time.monotonic()
        while len(self.policy):
            action = self.policy.next(self._running(now), self.lanes.room(), now)
            if action is None:
                return
            if isinstance(action, Park):
                sequence = next(s for s in self.lanes.running if s.id == action.id)
                self._guarded([sequence], partial(self._park, sequence))
            elif isinstance(action, Start):
                if not self._start(action.id):
                    return
            elif not self._resume(action.id):
                return

    def _start(self, request_id: str) -> bool:
        """Give a waiting request its lane. False when its pages are not to be had after all."""
        job = next(w.item for w in self.policy.waiting() if w.id == request_id)
        assert isinstance(job, Job)
        parkable = job.request.request_class == "agent" and self._parkable(job)
        try:
            if not self.lanes.make_room(job):
                return False
        except EngineError as error:
            self.policy.remove(request_id)
            self._fail_item(job, error)
            return True
        self.policy.remove(request_id)
        with torch.inference_mode():
            sequence, last = self.lanes.take(job)
        sequence.parkable = parkable
        self._guarded([sequence], lambda: self._begin(sequence, last))
        return True

    def _begin(self, sequence: Sequence, last: Tensor | None) -> None:
        """``last`` is the residual of the prompt's last column, when all of the prompt was kept."""
        request = sequence.request
        self._round_buffers.assign(sequence.lane, sequence.pages, sequence.job.end_ids)
        if isinstance(request, GenerateRequest):
            sampling = request.sampling
            sequence.seed = secrets.randbits(63) if sampling.seed is None else sampling.seed
            self._sampler.begin(sequence.lane, sampling, request.prompt.ids, sequence.seed)
            if sequence.job.guide is not None:
                self._sampler.guide(sequence.lane, sequence.job.guide)
            sequence.text = TextStream(self._tokenizer, sampling.stop)
        sequence.emit(Started(sequence.started - sequence.job.queued))
        if sequence.read == len(sequence.prompt):
            assert last is not None, "a prompt is taken over whole only with its last residual"
            sequence.emit(Prefilled(sequence.read, len(sequence.prompt)))
            self._prompt_done(sequence, last, None)

    def _park(self, sequence: Sequence) -> None:
        self._flight = self._flight and self._flight.without(sequence)
        if isinstance(sequence.request, GenerateRequest):
            sequence.sampling = self._sampler.take_out(sequence.lane)
        self.lanes.park(sequence)
        request = sequence.request
        self.policy.park(Waiting(request.id, request.request_class, sequence, sequence.job.queued))

    def _resume(self, request_id: str) -> bool:
        sequence = next(w.item for w in self.policy.parked() if w.id == request_id)
        assert isinstance(sequence, Sequence)
        with torch.inference_mode():
            if not self.lanes.resume(sequence):
                return False
        self.policy.remove(request_id)
        self._round_buffers.assign(sequence.lane, sequence.pages, sequence.job.end_ids)
        if isinstance(sequence.sampling, SavedLane):
            self._sampler.put_back(sequence.lane, sequence.sampling)
            sequence.sampling = None
        return True

    def _need(self, item: Job | Sequence) -> Need:
        """What the policy has to know of a request that waits or is parked."""
        job = item if isinstance(item, Job) else item.job
        read, generated = (item.read, len(item.generated)) if isinstance(item, Sequence) else (0, 0)
        seconds = self._seconds(len(job.request.prompt) - read, job.cap - generated)
        parkable = item.parkable if isinstance(item, Sequence) else self._parkable(item)
        return Need(self.lanes.pages_needed(item), seconds, parkable)

    def _parkable(self, job: Job) -> bool:
        """Whether the host tier has a place for all that ``job`` will hold, beside every agent that has one. The place
        is its own from its start to its end, so that what interactive requests reach never shrinks."""
        placed = (s for s in self.lanes.running if s.parkable)
        return self.lanes.can_park(self.lanes.pages_needed(job) + sum(map(self.lanes.private_pages, placed)))

    def _seconds(self, tokens: int, rounds: int) -> float:
        """How long it takes at most to read so many tokens and to generate so many."""
        return self._chunk_pace.seconds(tokens) + self._round_pace.seconds(rounds)

    def _running(self, now: float) -> list[Running]:
        return [
            Running(
                s.id,
                s.request.request_class,
                self.lanes.private_pages(s),
                now + self._seconds(len(s.prompt) - s.read, s.job.cap - len(s.generated)),
                s.active,
                s.parkable,
                s.job.queued,
            )
            for s in self.lanes.running
        ]

    # --- prompts ---------------------------------------------------------------------------------------------

    def _read(self, reading: list[Sequence]) -> None:
        """One chunk, or one piece of a picture, of the first sequence; short prompts of its class share the chunk."""
        first = reading[0]
        encoded = False

        def encode() -> None:
            nonlocal encoded
            encoded = self._prefill.encode(first)
            first.active = time.monotonic()

        self._guarded([first], encode)
        if encoded or first not in self.lanes:
            return
        alike = [s for s in reading if s.request.request_class == first.request.request_class]
        pieces = self._prefill.pack(alike)
        start = time.monotonic()
        self._guarded([piece.sequence for piece in pieces], lambda: self._read_parts(self._prefill.run(pieces)))
        self._chunk_pace.add(sum(p.stop - p.start for p in pieces), time.monotonic() - start)

    def _read_parts(self, parts: Many[Part]) -> None:
        now = time.monotonic()
        tokens = sum(part.piece.stop - part.piece.start for part in parts)
        self.counters.tokens_prefilled += tokens
        self.prefill_rate.add(now, tokens)
        done: list[Part] = []
        for part in parts:
            sequence, stop = part.piece.sequence, part.piece.stop
            sequence.active = now
            sequence.emit(Prefilled(sequence.read, len(sequence.prompt)))
            if stop in sequence.job.marks:
                self.lanes.keep_mark(sequence, stop, part.last)
            if part.piece.last:
                done.append(part)
        first_tokens = [part for part in done if self._generates(part.piece.sequence)]
        for part in done:
            if part not in first_tokens:
                self._prompt_done(part.piece.sequence, part.last, part.readout)
        if first_tokens:
            sequences = [part.piece.sequence for part in first_tokens]
            for sequence in sequences:
                self._tell_scores(sequence)
            self._sample(sequences, self._network.decoder.logits(torch.cat([part.last for part in first_tokens])))

    def _generates(self, sequence: Sequence) -> bool:
        return isinstance(sequence.request, GenerateRequest) and sequence.job.cap > 0

    def _prompt_done(self, sequence: Sequence, last: Tensor, readout: Readout | None) -> None:
        request = sequence.request
        if isinstance(request, RetainRequest):
            self.lanes.retain(sequence, request)
            self._finish(sequence, "stop")
        elif isinstance(request, ReadRequest):
            self._answer(sequence, request, last, readout)
        else:
            self._tell_scores(sequence)
            if sequence.job.cap == 0:
                self._finish(sequence, "length")
            else:
                self._sample([sequence], self._network.decoder.logits(last))

    def _tell_scores(self, sequence: Sequence) -> None:
        request = sequence.request
        if isinstance(request, GenerateRequest) and request.sampling.prompt_logprobs is not None:
            sequence.emit(PromptScored(tuple(sequence.prompt_logprobs)))

    def _answer(self, sequence: Sequence, request: ReadRequest, last: Tensor, readout: Readout | None) -> None:
        labels = None
        if request.labels:
            chosen = self._network.decoder.logits(last)[0].log_softmax(-1)[list(request.labels)]
            labels = chosen.cpu().numpy()
        heads, peaks = readout.found() if readout is not None else (None, None)
        sequence.emit(Scores(heads, labels, peaks))
        self._finish(sequence, "stop")

    # --- rounds ----------------------------------------------------------------------------------------------

    def _round(self, decoding: list[Sequence], flight: Flight | None, alone: bool) -> None:
        """One token for each of the round that is under way, or else of all that decode. ``alone``: nothing but these
        will want the next step, so that the next round may be launched before anybody is told of the tokens."""
        if flight is None:
            flight = self._launch(columns_of(decoding))
            _count(decoding)
            if self._lookahead:
                self._flight = flight
                return
        self._sample(flight.sequences, flight.logits, go_on=alone and len(flight.sequences) == len(decoding))

    def _launch(self, columns: Many[Column], tokens: Tensor | None = None) -> Flight:
        """The next round; ``tokens`` as of ``Round.run``."""
        flight = Flight([column.sequence for column in columns], self._round_buffers.run(columns, tokens))
        self.counters.rounds += 1
        return flight

    def _sample(self, sequences: Many[Sequence], logits: Tensor, *, go_on: bool = False) -> None:
        """Choose a token for each row and tell it. Those whose masks are late keep their logits, and the others go on.

        With ``go_on`` and lookahead the next round is launched meanwhile: before the tokens are known where
        ``engine.schedule.lookahead`` allows it, else before they are told. So what it costs to tell them, to publish
        and to admit others passes while the device works.
        """
        sequences, logits, late = self._put_late_aside(sequences, logits)
        if not sequences:
            return
        go_on = go_on and self._lookahead and not late
        draw = self._sampler.start(logits, [s.lane for s in sequences])
        ahead = go_on and self._round_buffers.feeds_itself
        columns = columns_ahead(sequences, self._sampler.certain) if ahead else None
        launched = Attempt()
        if columns:
            launched.make(lambda: self._launch(columns, draw.tokens))
        sampled = self._sampler.finish(draw)
        now = time.monotonic()
        self.counters.tokens_generated += len(sequences)
        self.decode_rate.add(now, len(sequences))
        taken = [
            sampled.faults[row] if row in sampled.faults else take(sequence, sampled.ids[row])
            for row, sequence in enumerate(sequences)
        ]
        staying = [s for s, new in zip(sequences, taken, strict=True) if isinstance(new, Taken) and new.reason is None]
        if go_on and columns is None and staying:
            launched.make(lambda: self._launch(columns_of(staying)))
        if go_on:
            self._flight = launched.flight
            _count(staying)
        for sequence, new, logprob in zip(sequences, taken, sampled.logprobs, strict=True):
            if isinstance(new, EngineError):
                self._fail(sequence, new)
                continue
            if sequence.first_token is None:
                sequence.first_token = now
            sequence.active = now
            self._tell(sequence, new, logprob)
        launched.check()

    def _put_late_aside(self, sequences: Many[Sequence], logits: Tensor) -> tuple[Many[Sequence], Tensor, bool]:
        """(those whose tokens can be chosen now, their logits, whether there are others)."""
        until = time.monotonic() + _PATIENCE * self._round_pace.seconds(1)
        ready = [
            row
            for row, sequence in enumerate(sequences)
            if self._sampler.ready(sequence.lane, max(0.0, until - time.monotonic()))
        ]
        if len(ready) == len(sequences):
            return sequences, logits, False
        for row, sequence in enumerate(sequences):
            if row not in ready:
                sequence.logits = logits[row : row + 1].clone()
        return [sequences[row] for row in ready], logits[ready], True

    def _sample_late(self, wait: float = 0.0) -> None:
        """Choose the tokens of sequences whose masks have come since; ``wait`` seconds at most for the first."""
        late = [s for s in self.lanes.running if s.logits is not None]
        ready = [s for place, s in enumerate(late) if self._sampler.ready(s.lane, 0.0 if place else wait)]
        if not ready:
            return
        logits = torch.cat([s.logits for s in ready if s.logits is not None])
        for sequence in ready:
            sequence.logits = None
        self._guarded(ready, lambda: self._sample(ready, logits))

    def _tell(self, sequence: Sequence, new: Taken, logprob: TokenLogprob | None) -> None:
        """Tell the reader of one token, and end the request where it ends the answer."""
        alive = True
        if new.shown or new.text:
            logprobs = (logprob,) if new.shown and logprob is not None else ()
            alive = sequence.emit(Tokens(new.shown, new.text, logprobs))
        if new.reason is not None:
            self._finish(sequence, new.reason, new.stop)
        elif not alive:
            self._give_back(sequence)
            self.counters.failed += 1

    # --- ends ------------------------------------------------------------------------------------------------

    def _cancel_item(self, item: Job | Sequence) -> None:
        """End a request that holds no lane because it was cancelled."""
        if isinstance(item, Sequence):
            self._finish(item, "cancelled")
            return
        self.counters.cancelled += 1
        usage = Usage(len(item.request.prompt), 0, 0)
        item.stream.put(Finished("cancelled", usage, queue_seconds=time.monotonic() - item.queued))

    def _fail_item(self, item: Job | Sequence, error: EngineError) -> None:
        """End a request that holds no lane with a fault."""
        self.counters.failed += 1
        if isinstance(item, Sequence):
            self._give_back(item)
            item.emit(Failed(error))
        else:
            item.stream.put(Failed(error))

    def _finish(self, sequence: Sequence, reason: FinishReason, stop: str | None = None) -> None:
        now = time.monotonic()
        begun = sequence.first_token if sequence.first_token is not None else now
        if reason == "cancelled":
            self.counters.cancelled += 1
        else:
            self.counters.finished += 1
            if sequence.job.marks:
                self.lanes.keep_end(sequence)
        self._give_back(sequence)
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
        """End a request on a lane with a fault, unless it ended before."""
        if sequence in self.lanes:
            self._give_back(sequence)
            self.counters.failed += 1
            sequence.emit(Failed(error))

    def _give_back(self, sequence: Sequence) -> None:
        """Free what a request holds, on its lane or parked."""
        if sequence in self.lanes and isinstance(sequence.request, GenerateRequest):
            self._sampler.end(sequence.lane)
        self.lanes.give_back(sequence)


def _count(sequences: Many[Sequence]) -> None:
    """These are in a round that was launched."""
    for sequence in sequences:
        sequence.context += 1
