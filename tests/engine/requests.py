"""Asking an engine in tests: requests in one line, answers in one object, and a hand on its passes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from engine import Engine
from engine.engine import new_id
from engine.messages import (
    EngineSnapshot,
    Event,
    Failed,
    Finished,
    GenerateRequest,
    Prompt,
    PromptScored,
    ReadRequest,
    RetainRequest,
    SamplingParams,
    Scores,
    TokenLogprob,
    Tokens,
)
from engine.model.decoder import Decoder, Run
from engine.stream import Stream

OWN = ("guidance", "request_class", "client", "label", "deadline")
"""Fields of a request that are no sampling parameters."""
GREEDY: dict[str, Any] = {"temperature": 0.0, "ignore_eos": True}


@dataclass
class Answer:
    """All events of one request, and what they add up to."""

    events: list[Event]
    text: str = ""
    ids: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    scores: Scores | None = None
    prompt: tuple[TokenLogprob | None, ...] = ()

    def __post_init__(self) -> None:
        for event in self.events:
            if isinstance(event, Tokens):
                self.text += event.text
                self.ids += event.ids
                self.logprobs += event.logprobs
            elif isinstance(event, Scores):
                self.scores = event
            elif isinstance(event, PromptScored):
                self.prompt = event.logprobs

    @property
    def end(self) -> Finished:
        assert isinstance(self.events[-1], Finished), self.events[-1]
        return self.events[-1]

    @property
    def error(self) -> Exception:
        assert isinstance(self.events[-1], Failed), self.events[-1]
        return self.events[-1].error


def collect(stream: Stream, timeout: float = 60.0) -> Answer:
    """Read a stream to its end."""
    events: list[Event] = []
    until = time.monotonic() + timeout
    while not events or not isinstance(events[-1], Finished | Failed):
        event = stream.get(until - time.monotonic())
        assert event is not None, f"no end within {timeout} s, after {events[-3:]}"
        events.append(event)
    return Answer(events)


def text_ids(engine: Engine, length: int, start: int = 0) -> tuple[int, ...]:
    """So many tokens of plain text, others for another ``start``."""
    size = len(engine.tokenizer) - len(engine.tokenizer.added_tokens)
    return tuple((start * 31 + number * 7 + number * number * 3) % size for number in range(length))


def generation(prompt: Prompt | Iterable[int], *, name: str = "", **options: Any) -> GenerateRequest:
    """``options``: fields of the request, the rest are sampling parameters."""
    own = {key: options.pop(key) for key in OWN if key in options}
    prompt = prompt if isinstance(prompt, Prompt) else Prompt(tuple(prompt))
    return GenerateRequest(name or new_id("test"), prompt, SamplingParams(**options), **own)


def generate(engine: Engine, prompt: Prompt | Iterable[int], **options: Any) -> Answer:
    return collect(engine.submit(generation(prompt, **options)))


def read(engine: Engine, prompt: Prompt | Iterable[int], **fields: Any) -> Answer:
    prompt = prompt if isinstance(prompt, Prompt) else Prompt(tuple(prompt))
    return collect(engine.submit(ReadRequest(new_id("read"), prompt, **fields)))


def retain(engine: Engine, name: str, prompt: Prompt | Iterable[int], **fields: Any) -> Answer:
    prompt = prompt if isinstance(prompt, Prompt) else Prompt(tuple(prompt))
    return collect(engine.submit(RetainRequest(name, prompt, **fields)))


def wait_until(condition: Callable[[], object], limit: float = 10.0) -> None:
    until = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < until, f"not within {limit} s"
        time.sleep(0.002)


def settled(engine: Engine) -> EngineSnapshot:
    """The first snapshot of an engine that has nothing to do. Pages that no kept state holds are all free."""
    asked = time.monotonic()
    engine.cancel("nobody")  # an idle engine that is asked for anything publishes

    def idle() -> bool:
        now = engine.snapshot()
        resting = all(lane.state == "idle" for lane in now.lanes) and not now.parked
        return now.time > asked and not queued(engine) and resting

    wait_until(idle)
    now = engine.snapshot()
    assert now.pages_free + now.reuse.kept_pages == now.pages_total
    return now


def queued(engine: Engine) -> int:
    return engine.snapshot().queued_interactive + engine.snapshot().queued_agent


class Passes:
    """Every pass over the layers: recorded, and on demand let through one by one or replaced by a fault."""

    def __init__(self) -> None:
        self.runs: list[tuple[Run, ...]] = []
        self.fault: Callable[[tuple[Run, ...]], Exception | None] = lambda runs: None
        self._forward = Decoder.forward
        self._permits: threading.Semaphore | None = None
        self._waiting = threading.Event()

    def forward(self, decoder: Decoder, x: Any, positions: Any, runs: Iterable[Run], **options: Any) -> Any:
        if self._permits is not None:
            self._waiting.set()
            self._permits.acquire()
            self._waiting.clear()
        runs = tuple(runs)
        self.runs.append(runs)
        error = self.fault(runs)
        if error is not None:
            raise error
        return self._forward(decoder, x, positions, runs, **options)

    @property
    def lanes(self) -> list[tuple[int, ...]]:
        """Which lanes each pass advanced."""
        return [tuple(run.slot for run in runs) for runs in self.runs]

    def hold(self) -> None:
        """From now on every pass waits for :meth:`step`."""
        self._permits = threading.Semaphore(0)

    def held(self) -> None:
        """Waits until a pass waits."""
        assert self._waiting.wait(10.0), "no pass came"

    def step(self) -> None:
        """Lets the pass that waits through, and waits for the next one."""
        assert self._permits is not None
        self.held()
        self._waiting.clear()
        self._permits.release()
        self.held()

    def step_until(self, condition: Callable[[], object], most: int = 20) -> None:
        """Steps, so far apart that a snapshot is published after each, until something shows."""
        for _ in range(most):
            if condition():
                return
            time.sleep(0.04)
            self.step()
        raise AssertionError(f"not within {most} passes")

    def free(self) -> None:
        """Passes wait no longer."""
        permits, self._permits = self._permits, None
        if permits is not None:
            permits.release(1_000)
