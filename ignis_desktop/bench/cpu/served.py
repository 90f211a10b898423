"""Rows about the program as a server: start, memory, its own work per token, growth."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ignis_desktop.bench.client import Ask, LoadClient
from ignis_desktop.bench.cpu.rows import Row
from ignis_desktop.bench.process import Target, serving
from ignis_desktop.bench.prompts import PromptMaker
from ignis_desktop.bench.scenarios import soak
from ignis_desktop.bench.scenarios.base import Bench, Options
from ignis_desktop.bench.stats import median
from ignis_desktop.bench.watch import wait_idle, wait_ready
from ignis_desktop.cli.errors import CommandError
from ignis_desktop.cli.options import EngineOptions

STARTS = 3
STREAMS, PROMPT, WRITTEN = 8, 64, 64
SOAK_REQUESTS = 300
SOAK_CONTEXT = 1024
"""A KV pool so small that it can be written once in whole before memory is watched."""
START_SECONDS, RESIDENT, TOKEN_MS = 5.0, 900e6, 0.5


def served_rows(options: EngineOptions, repeats: int, say: Callable[[str], None]) -> list[Row]:
    """Start a server a few times, then load the last one. Raises ``CommandError``."""
    starts, resident = [], 0
    for turn in range(1, STARTS + 1):
        say(f"starting, {turn} of {STARTS}")
        began = time.monotonic()
        with serving(options) as target:
            asyncio.run(_until_ready(target))
            starts.append(time.monotonic() - began)
            resident = _usage(target)["resident_bytes"]
    small = replace(options, max_context=min(options.max_context or SOAK_CONTEXT, SOAK_CONTEXT))
    with serving(small) as target:
        per_token, growth = asyncio.run(_loaded(target, repeats, say))
    start, cost = median(starts), median(per_token)
    return [
        Row(
            "start",
            "start to ready, without a window",
            f"{start:.2f} s",
            f"≤ {START_SECONDS:g} s",
            start <= START_SECONDS,
            samples=starts,
        ),
        Row(
            "resident",
            "resident memory when ready",
            f"{resident / 1e6:,.0f} MB",
            f"≤ {RESIDENT / 1e6:.0f} MB",
            resident <= RESIDENT,
        ),
        Row(
            "server_token",
            f"server's processor time per streamed token, {STREAMS} streams",
            f"{cost:.3f} ms",
            f"≤ {TOKEN_MS:g} ms",
            cost <= TOKEN_MS,
            samples=per_token,
        ),
        growth,
    ]


async def _until_ready(target: Target) -> None:
    async with LoadClient(target.url, target.key) as client:
        await wait_ready(client)


async def _loaded(target: Target, repeats: int, say: Callable[[str], None]) -> tuple[list[float], Row]:
    """(milliseconds of the server's threads per token, memory growth over a small soak)."""
    async with LoadClient(target.url, target.key) as client:
        now = await wait_ready(client)
        maker = await PromptMaker.create(client)
        options = Options(requests=SOAK_REQUESTS)
        context, lanes = int(now.raw["context_length"]), len(now.lanes)
        bench = Bench(client, target, maker, options, context, lanes, lambda text: say(f"memory growth: {text}"))
        per_token = []
        rng = bench.rng("server")
        for turn in range(repeats + 1):  # the first one warms up
            say(f"{STREAMS} streams, {turn} of {repeats}")
            asks = [Ask(await maker.chat(rng, PROMPT), WRITTEN, seed=number) for number in range(STREAMS)]
            before = _server_seconds(target)
            outcomes = await asyncio.gather(*map(client.ask, asks))
            await wait_idle(client)
            spent = _server_seconds(target) - before
            faults = [outcome.error for outcome in outcomes if outcome.status != "ok"]
            if faults:
                raise CommandError(f"A stream was not answered: {faults[0]}")
            if turn:
                per_token.append(1e3 * spent / sum(outcome.output_tokens for outcome in outcomes))
        report = await soak.run(bench)
    verdict = report.verdicts[-1]
    return per_token, Row("growth", verdict.name, verdict.measured, verdict.target, verdict.passed, note=verdict.note)


def _server_seconds(target: Target) -> float:
    spent = target.server_seconds()
    assert spent is not None, "the server was started here"
    return spent


def _usage(target: Target) -> dict[str, Any]:
    usage = target.usage()
    assert usage is not None, "the server was started here"
    return usage
