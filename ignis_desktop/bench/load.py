"""Sending requests by the clock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from ignis_desktop.bench.client import Ask, LoadClient, Outcome
from ignis_desktop.bench.stats import overlap_rate


@dataclass(frozen=True)
class Arrival:
    """A request that is due ``at`` seconds after the start."""

    at: float
    ask: Ask


async def open_loop(client: LoadClient, arrivals: Sequence[Arrival], start: float | None = None) -> list[Outcome]:
    """Send each request when it is due, whatever became of those before it; returns when all have ended.

    ``start`` is on ``time.monotonic``'s clock. Outcomes come in the order of ``arrivals``.
    """
    start = time.monotonic() if start is None else start
    tasks: list[asyncio.Task[Outcome]] = []
    try:
        for arrival in arrivals:
            due = start + arrival.at
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            tasks.append(asyncio.create_task(client.ask(arrival.ask, due)))
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def one_after_another(client: LoadClient, asks: Sequence[Ask]) -> list[Outcome]:
    """Each request when the one before it has ended: latencies of a server that has nothing else to do."""
    return [await client.ask(ask) for ask in asks]


def lateness(outcomes: Sequence[Outcome]) -> list[float]:
    """Seconds between when requests were due and when they were sent: the generator's own fault."""
    return [outcome.sent - outcome.scheduled for outcome in outcomes]


def decode_rate(outcomes: Sequence[Outcome]) -> float:
    """Tokens a second of all answers together while every one of them was being written.

    A piece of text may hold several tokens or part of one: each counts for its answer's tokens per piece.
    """
    weights = [(outcome.output_tokens - 1) / max(len(outcome.pieces) - 1, 1) for outcome in outcomes]
    return overlap_rate([outcome.pieces for outcome in outcomes], weights)
