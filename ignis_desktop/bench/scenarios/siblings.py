"""Sub-agents with one system block: its pages are held once, however many there are."""

from __future__ import annotations

import asyncio
import time

from engine.config import EngineConfig
from ignis_desktop.bench.client import Ask, Outcome
from ignis_desktop.bench.prompts import Message
from ignis_desktop.bench.report import ScenarioReport, Verdict, milliseconds
from ignis_desktop.bench.scenarios.base import Bench, Stopwatch
from ignis_desktop.bench.watch import EngineView, view, wait_idle
from ignis_desktop.cli.errors import CommandError

SIBLINGS = 4
SYSTEM, TASK, ANSWER = 1500, 100, 96
LOOK_SECONDS = 0.02


async def run(bench: Bench) -> ScenarioReport:
    """The first one is under way when the others come, as sub-agents follow the one that calls them."""
    watch = Stopwatch()
    rng = bench.rng("siblings")
    block = bench.scaled(SYSTEM)
    system: Message = {"role": "system", "content": await bench.maker.text(rng, block)}
    prompts: list[list[Message]] = [
        [system, {"role": "user", "content": await bench.maker.text(rng, bench.scaled(TASK))}] for _ in range(SIBLINGS)
    ]
    shared = await bench.maker.shared(prompts[0], prompts[1])
    await wait_idle(bench.client)
    asks = [Ask(prompt, ANSWER, "agent", seed=number) for number, prompt in enumerate(prompts)]
    outcomes = [Outcome("agent", 0.0, 0.0) for _ in asks]
    tasks: list[asyncio.Task[Outcome]] = []
    best: EngineView | None = None
    try:
        for number, (ask, outcome) in enumerate(zip(asks, outcomes, strict=True)):
            outcome.scheduled = outcome.sent = time.monotonic()
            tasks.append(asyncio.create_task(bench.client.read(ask, outcome)))
            if number == 0:
                await _begun(tasks[0], outcome)
        while not all(task.done() for task in tasks):
            now = await view(bench.client)
            if best is None or _decoding(now) > _decoding(best):
                best = now
            await asyncio.sleep(LOOK_SECONDS)
    finally:
        for task in tasks:
            task.cancel()
    for outcome in outcomes:
        if outcome.status != "ok":
            raise CommandError(f"A sibling was not answered: {outcome.error}")
    assert best is not None
    title = f"{SIBLINGS} agents with a common system block of {block:,} tokens"
    report = ScenarioReport("siblings", title, watch.seconds)
    report.tables.append(
        (
            ("sibling", "prompt", "cached", "ttft ms"),
            [
                [str(i), f"{o.prompt_tokens:,}", f"{o.cached_tokens:,}", milliseconds(o.first_seconds)]
                for i, o in enumerate(outcomes, 1)
            ],
        )
    )
    report.verdicts.append(_verdict(best, block, report))
    report.facts |= {
        "system_tokens": block,
        "shared_tokens": shared,
        "prompt_tokens": [outcome.prompt_tokens for outcome in outcomes],
        "cached_tokens": [outcome.cached_tokens for outcome in outcomes],
        "ttft_ms": [round((outcome.first_seconds or 0) * 1e3, 2) for outcome in outcomes],
    }
    return report


def _verdict(best: EngineView, block: int, report: ScenarioReport) -> Verdict:
    """Pages that the lanes hold, shared ones counted each time, against pages of the pool that are taken for them."""
    held = sum(int(lane.get("pages") or 0) for lane in best.busy)
    taken = best.pages_total - best.pages_free - best.pages_kept
    whole = block // EngineConfig.page_size
    wanted = (SIBLINGS - 1) * whole
    report.facts["pages"] = {
        "held_by_lanes": held,
        "taken": taken,
        "saved": held - taken,
        "whole_pages_of_the_block": whole,
        "lanes": len(best.busy),
    }
    name, target = "pages of the common block", f"held once: ≥ {wanted} pages saved ({SIBLINGS - 1} × {whole})"
    if len(best.busy) < SIBLINGS:
        return Verdict(name, f"{len(best.busy)} lanes at once", target, None, "the siblings did not all run together")
    if not held:
        return Verdict(name, "not said", target, None, "the server does not say how many pages a lane holds")
    return Verdict(name, f"{held - taken} pages saved ({held} held, {taken} taken)", target, held - taken >= wanted)


def _decoding(now: EngineView) -> int:
    return sum(lane.get("state") == "decode" for lane in now.lanes)


async def _begun(task: asyncio.Task[Outcome], outcome: Outcome) -> None:
    """Returns when the answer's first piece has come, or the task has ended without one."""
    while not outcome.pieces and not task.done():
        await asyncio.sleep(LOOK_SECONDS)
