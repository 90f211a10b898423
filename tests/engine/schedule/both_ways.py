"""A scheduler that is stepped by hand, so that what happens between which tokens is the test's choice, and the same
requests run with and without lookahead."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Sequence as Many
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine import Engine
from engine.checks import check_request
from engine.config import EngineConfig
from engine.memory.stored import StoredState
from engine.messages import Event, Failed, Finished, GenerateRequest, Prompt, TokenLogprob, Tokens
from engine.sample.guide import Guide
from engine.schedule.job import Sequence
from engine.schedule.round import Column
from engine.schedule.scheduler import Scheduler
from engine.stream import Stream
from tests.engine.requests import GREEDY, generation

At = tuple[str, int, Callable[["Stepped"], object]]
"""(request, tokens told of it, what happens then), between two steps."""
PENALISED: dict[str, Any] = {
    "temperature": 1.1,
    "top_k": 20,
    "seed": 5,
    "repetition_penalty": 1.3,
    "presence_penalty": 0.7,
    "frequency_penalty": 0.2,
    "logit_bias": ((3, 4.0), (9, -3.0)),
    "ignore_eos": True,
}
"""All that the sampler counts, with a cut that bounds what is looked at."""
DIVERSE: dict[str, Any] = {**GREEDY, "repetition_penalty": 1.5}
"""The most likely token, but hardly one twice."""


def ids(length: int, start: int = 0) -> tuple[int, ...]:
    return tuple((start * 31 + n * 7 + n * n * 3) % 250 for n in range(length))


def kept(length: int, start: int = 0) -> Prompt:
    """A prompt of a conversation: the state at its end is kept, and that after the answer."""
    return Prompt(ids(length, start), marks=(length,))


@dataclass
class Told:
    """What a reader got, without times."""

    ids: list[int] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    end: object = None

    def take(self, event: Event) -> None:
        if isinstance(event, Tokens):
            self.ids += event.ids
            self.pieces.append(event.text)
            self.logprobs += event.logprobs
        elif isinstance(event, Finished):
            self.end = event.reason, event.stop, event.usage
        elif isinstance(event, Failed):
            self.end = event.error.code, event.error.message


class Stepped:
    """One engine's scheduler in the test's own thread."""

    def __init__(self, folder: Path, lookahead: bool, **config: Any) -> None:
        options = {"threads": 1, "dtype": "float32", "decode_share": 0.0, **config}
        self.engine = Engine(EngineConfig(model=folder, lookahead=lookahead, **options))
        self.engine._begin()
        self.scheduler: Scheduler = self.engine._load()
        self.streams: dict[str, Stream] = {}
        self.told: dict[str, Told] = {}
        self.flights: list[tuple[str, ...]] = []
        """Of every step: whose round it left under way."""
        self.ahead: list[tuple[str, ...]] = []
        """Of every round that was launched before its tokens were known: whose."""
        run = self.scheduler._round_buffers.run
        last = [torch.empty(0)]

        def noted(columns: Many[Column], tokens: Tensor | None = None) -> Tensor:
            if tokens is not None:
                self.ahead.append(tuple(column.sequence.id for column in columns))
            # A card's next round writes over the logits of the last.
            last[0].fill_(float("nan"))
            last[0] = run(columns, tokens)
            return last[0]

        self.scheduler._round_buffers.run = noted  # type: ignore[method-assign]

    def ask(self, *requests: GenerateRequest) -> None:
        for request in requests:
            job = check_request(request, self.engine.loaded, self.engine.config, self.scheduler.cancel)
            self.streams[request.id], self.told[request.id] = job.stream, Told()
            self.scheduler.add(job)

    def run(self, happenings: Iterable[At] = (), most: int = 2000) -> None:
        """Step until nothing is left to do."""
        left = list(happenings)
        for _ in range(most):
            if not self.scheduler.busy:
                break
            self.scheduler.step()
            flight = self.scheduler._flight
            self.flights.append(tuple(s.id for s in flight.sequences) if flight is not None else ())
            for name, stream in self.streams.items():
                for event in stream.poll():
                    self.told[name].take(event)
            for happening in [h for h in left if len(self.told[h[0]].ids) >= h[1]]:
                left.remove(happening)
                happening[2](self)
        assert not self.scheduler.busy
        assert not left, f"never came to {left}"
        for name, stream in self.streams.items():
            for event in stream.poll():
                self.told[name].take(event)
        self.scheduler.lanes.keeper.check([])

    def running(self, name: str) -> Sequence:
        return next(s for s in self.scheduler.lanes.running if s.id == name)

    def kept(self) -> dict[bytes, StoredState]:
        keeper = self.scheduler.lanes.keeper
        return {kept.key: keeper._stored(kept, kept.key) for kept in keeper._store if kept.key is not None}


def masks_are_never_late(monkeypatch: Any) -> None:
    """Else whose mask is late sits out a round, which is a matter of time."""
    ready = Guide.ready
    monkeypatch.setattr(Guide, "ready", lambda guide, timeout=0.0: ready(guide, None))


def both_ways(
    folder: Path, requests: Iterable[GenerateRequest], happenings: Iterable[At] = (), **config: Any
) -> tuple[Stepped, Stepped]:
    """(without, with lookahead) after the same requests and happenings."""
    requests, happenings = list(requests), list(happenings)
    found = []
    for lookahead in (False, True):
        world = Stepped(folder, lookahead, **config)
        world.ask(*requests)
        world.run(happenings)
        assert any(world.flights) == lookahead
        found.append(world)
    return found[0], found[1]


def ended_by_ids(
    folder: Path, prompts: list[Prompt], options: dict[str, Any], at: list[int], **config: Any
) -> list[GenerateRequest]:
    """Requests whose answers end with about their ``at``-th token, which nobody knows before."""
    dry = Stepped(folder, False, **config)
    dry.ask(*[generation(p, name=f"d{n}", max_tokens=max(at) + 30, **options) for n, p in enumerate(prompts)])
    dry.run()
    requests = []
    for number, (prompt, told) in enumerate(zip(prompts, dry.told.values(), strict=True)):
        end = next(
            token for place, token in enumerate(told.ids) if place >= at[number] and token not in told.ids[:place]
        )
        requests.append(generation(prompt, name=f"r{number}", max_tokens=60, stop_ids=(end,), **options))
    return requests


def assert_same(plain: Stepped, ahead: Stepped) -> None:
    """The same tokens, texts, probabilities and ends, and the same kept states, bit for bit."""
    assert ahead.told == plain.told
    assert_same_kept(plain, ahead)


def assert_same_kept(plain: Stepped, ahead: Stepped) -> None:
    before, after = plain.kept(), ahead.kept()
    assert before.keys() == after.keys()
    for key, state in before.items():
        assert state.tokens == after[key].tokens
        for name, tensor in state.tensors.items():
            assert torch.equal(tensor, after[key].tensors[name]), name
