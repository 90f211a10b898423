"""The requests of a soak: short, of both classes, streamed and whole; some clients leave, some are cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ignis_desktop.bench.client import Ask
from ignis_desktop.bench.leaving import Leave, ask_and_leave
from ignis_desktop.bench.prompts import Message
from ignis_desktop.bench.scenarios.base import Bench
from ignis_desktop.bench.watch import view
from ignis_desktop.cli.errors import CommandError

PATH = "/v1/chat/completions"
AT_ONCE_PER_LANE = 3
"""Requests under way: the queue is never empty."""
LEAVING, CANCELLED = 0.25, 0.05
"""Share of the clients that leave, and of the requests that somebody else cancels."""
SHORTS, LONGS = 48, 8
"""Prompts that are drawn from."""
SHORT, LONG = (48, 112), 400
"""Their tokens; the long ones are for clients that leave while they are read."""
ANSWER, LEFT_ANSWER = (1, 8), 64
EARLY_SECONDS = 0.4
"""Clients that leave in the queue or in prefill do so within this time, most of them sooner; so do cancellations."""
PIECES_SECONDS = 30.0
"""A client that leaves after some pieces leaves after this time if they do not come."""
TELL_SECONDS = 1.0


@dataclass
class Tally:
    """What became of the requests."""

    finished: int = 0
    left: int = 0
    cancelled: int = 0
    whole_before_leaving: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    """Why requests failed that nobody cancelled."""
    seconds: list[float] = field(default_factory=list)
    """How long whole answers took."""

    @property
    def ended(self) -> int:
        return self.finished + self.left + self.cancelled + sum(self.faults.values())


@dataclass(frozen=True)
class SoakLoad:
    """Prompts made once, and what is done with them."""

    bench: Bench
    shorts: list[list[Message]]
    longs: list[list[Message]]

    @classmethod
    async def create(cls, bench: Bench) -> SoakLoad:
        rng = bench.rng("soak")
        shorts = [await bench.maker.chat(rng, rng.randint(*SHORT)) for _ in range(SHORTS)]
        longs = [await bench.maker.chat(rng, bench.scaled(LONG)) for _ in range(LONGS)]
        return cls(bench, shorts, longs)

    async def send(self, numbers: Iterable[int], tally: Tally, total: int) -> None:
        """A request for each number, a few for each lane at any time. What a request is depends on its number only."""
        waiting = iter(numbers)
        told = time.monotonic()

        async def work() -> None:
            nonlocal told
            for number in waiting:
                rng = self.bench.rng("soak", number)
                drawn = rng.random()
                if drawn < LEAVING:
                    await self._leave(rng, number, tally)
                elif drawn < LEAVING + CANCELLED:
                    await self._cancel(rng, number, tally)
                else:
                    await self._stay(rng, number, tally)
                if time.monotonic() - told > TELL_SECONDS:
                    told = time.monotonic()
                    self.bench.say(f"{tally.ended:,} of {total:,} requests")

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE_PER_LANE * self.bench.lanes):
                group.create_task(work())

    async def _stay(self, rng: random.Random, number: int, tally: Tally) -> None:
        """A whole answer, streamed or not."""
        ask = Ask(rng.choice(self.shorts), rng.randint(*ANSWER), _class(rng), number)
        began = time.monotonic()
        error, tokens = "", 0
        if rng.random() < 0.5:
            outcome = await self.bench.client.ask(ask)
            error = "" if outcome.status == "ok" else outcome.error
            tokens = outcome.output_tokens
        else:
            try:
                answer = await self.bench.client.post(PATH, ask.body(stream=False))
                tokens = int(answer["usage"]["completion_tokens"])
            except CommandError as fault:
                error = fault.message
        if not error and tokens != ask.max_tokens:
            error = f"an answer has {tokens} tokens, not {ask.max_tokens}"
        if error:
            tally.faults[error] += 1
            return
        tally.finished += 1
        tally.seconds.append(time.monotonic() - began)

    async def _leave(self, rng: random.Random, number: int, tally: Tally) -> None:
        """A client that leaves in the queue or in prefill, or while its answer is written."""
        stream, writing = rng.random() < 0.5, rng.random() < 0.7
        reset = rng.random() < 0.5
        if stream and writing:
            leave = Leave(PIECES_SECONDS, rng.randint(1, 6), reset)
            prompts = self.shorts
        else:
            leave = Leave(EARLY_SECONDS * rng.random() ** 2, reset=reset)
            prompts = self.longs if rng.random() < 0.5 else self.shorts
        body: dict[str, Any] = Ask(rng.choice(prompts), LEFT_ANSWER, _class(rng), number).body(stream=stream)
        target = self.bench.target
        try:
            left = await ask_and_leave(target.url, target.key, PATH, body, leave)
        except OSError as fault:
            tally.faults[f"{type(fault).__name__}: {fault}"] += 1
            return
        if left.status not in (None, 200):
            tally.faults[f"HTTP {left.status}"] += 1
            return
        tally.left += 1
        tally.whole_before_leaving += left.done

    async def _cancel(self, rng: random.Random, number: int, tally: Tally) -> None:
        """A request that another client cancels, found by the first word of its prompt; it may be done by then."""
        client = self.bench.client
        mark = f"number{number}"
        *before, last = rng.choice(self.shorts)
        messages = [*before, {**last, "content": f"{mark} {last['content']}"}]
        ask = asyncio.create_task(client.ask(Ask(messages, LEFT_ANSWER, _class(rng), number)))
        try:
            known = None
            while known is None and not ask.done():
                await asyncio.sleep(EARLY_SECONDS * rng.random())
                known = (await view(client)).find(mark)
            if known is not None:
                with contextlib.suppress(CommandError):  # it has ended meanwhile
                    await client.post(f"/v1/engine/requests/{known}/cancel", {})
            outcome = await ask
        finally:
            ask.cancel()
        if outcome.status == "ok":
            tally.finished += 1
        elif known is not None and "cancelled" in outcome.error:
            tally.cancelled += 1
        else:
            tally.faults[outcome.error] += 1


def _class(rng: random.Random) -> str:
    return rng.choice(("interactive", "agent"))
