"""Agents flood every lane; one interactive request a second must not notice."""

from __future__ import annotations

import asyncio
import time

from ignis_desktop.bench.classes import ClassSummary
from ignis_desktop.bench.client import Ask, Outcome
from ignis_desktop.bench.load import Arrival, one_after_another, open_loop
from ignis_desktop.bench.prompts import Message
from ignis_desktop.bench.report import ScenarioReport, Verdict, milliseconds
from ignis_desktop.bench.scenarios.base import Bench, Stopwatch, load_report
from ignis_desktop.bench.stats import Spread, median
from ignis_desktop.bench.watch import Watcher, view, wait_idle
from ignis_desktop.cli.errors import CommandError

INTERACTIVE, ANSWER = 256, 32
SYSTEM, TASK, TURN, AGENT_ANSWER, TURNS = 512, 256, 64, 96, 6
"""An agent's system block (the same for all), its task, each later message, each answer; turns until the next task."""
IDLE_REQUESTS, CHUNKS = 10, 5
CHUNK = 1024
"""Prompt tokens that the engine reads between two rounds (``EngineConfig.prefill_chunk``'s default)."""
SLACK = 1.2
FULL_SECONDS = 20.0
"""How long the agents may take to fill the lanes before the interactive requests begin."""
PAUSE_SECONDS = 0.5
"""An agent that was refused waits this long, as ``Retry-After`` would have it at least."""


async def run(bench: Bench) -> ScenarioReport:
    watch = Stopwatch()
    title = (
        f"{bench.options.agents} agents flooding, {bench.options.rate:g} interactive request(s) a second "
        f"({bench.scaled(INTERACTIVE)} prompt tokens, {ANSWER} generated)"
    )
    bench.say("the idle server first")
    await one_after_another(bench.client, await _interactive(bench, 2, "warm"))
    idle = await one_after_another(bench.client, await _interactive(bench, IDLE_REQUESTS, "idle"))
    base = ClassSummary.of("idle", idle, sum(outcome.ended - outcome.sent for outcome in idle))
    if base.first is None or base.ok < len(idle):
        raise CommandError(f"The idle server did not answer: {', '.join(base.errors) or 'no text came'}")
    chunk_tokens = min(CHUNK, bench.context // 2)
    chunk = await _chunk_seconds(bench, chunk_tokens)

    count = max(1, round(bench.options.seconds * bench.options.rate))
    asks = await _interactive(bench, count, "flood")
    arrivals = [Arrival(number / bench.options.rate, ask) for number, ask in enumerate(asks)]
    system: Message = {
        "role": "system",
        "content": await bench.maker.text(bench.rng("flood", "system"), bench.scaled(SYSTEM)),
    }
    workers = [_Agent(bench, number, system) for number in range(bench.options.agents)]
    for worker in workers:
        await worker.prepare()
    await wait_idle(bench.client)
    before = await view(bench.client)
    bench.say(f"{len(workers)} agents flood")
    async with Watcher(bench.client) as watcher:
        tasks = [asyncio.create_task(worker.run()) for worker in workers]
        try:
            await _until_full(bench)
            start = time.monotonic()
            bench.say(f"{count} interactive requests among them")
            interactive = await open_loop(bench.client, arrivals, start)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    seconds = time.monotonic() - start
    agents = [outcome for worker in workers for outcome in worker.outcomes if outcome.ended >= start]
    after = await wait_idle(bench.client)
    report, classes = load_report(
        "flood",
        title,
        [*interactive, *agents],
        seconds,
        watch=watch,
        watcher=watcher,
        before=before,
        after=after,
        by_clock=interactive,
    )
    report.tables[0][1].insert(0, base.row())
    report.facts |= {
        "idle": base.json(),
        "chunk": {"tokens": chunk_tokens, "ms": round(chunk * 1e3, 3)},
        "agents": bench.options.agents,
        "rate": bench.options.rate,
        "prompt_tokens": bench.scaled(INTERACTIVE),
        "answer_tokens": ANSWER,
    }
    report.notes.append(f"one prefill chunk ({chunk_tokens} tokens): {milliseconds(chunk)} ms")
    report.verdicts += _verdicts(classes["interactive"], base.first, chunk, watcher)
    return report


def _verdicts(interactive: ClassSummary, idle: Spread, chunk: float, watcher: Watcher) -> list[Verdict]:
    limit = SLACK * idle.p50 + chunk
    first = interactive.first
    parked = watcher.parked.get("interactive", 0) if watcher.says_parked else None
    whole = interactive.requests - interactive.ok
    return [
        Verdict(
            "interactive TTFT p95 under flood",
            f"{milliseconds(first.p95 if first else None)} ms",
            f"≤ {milliseconds(limit)} ms ({SLACK} × idle {milliseconds(idle.p50)} + chunk {milliseconds(chunk)})",
            first is not None and first.p95 <= limit,
        ),
        Verdict(
            "interactive requests refused or failed",
            str(whole),
            "0",
            whole == 0,
        ),
        Verdict(
            "interactive requests parked",
            "not said" if parked is None else str(parked),
            "0",
            None if parked is None else parked == 0,
            "the server does not say what it parks" if parked is None else f"seen in {watcher.views} looks",
        ),
    ]


async def _interactive(bench: Bench, count: int, name: str) -> list[Ask]:
    """Requests that share nothing but the template's own beginning."""
    rng = bench.rng("flood", name)
    tokens = bench.scaled(INTERACTIVE)
    return [Ask(await bench.maker.chat(rng, tokens), ANSWER, seed=number) for number in range(count)]


async def _chunk_seconds(bench: Bench, tokens: int) -> float:
    """How long an idle engine takes for a prompt of one chunk, by its own clock."""
    rng = bench.rng("flood", "chunk")
    outcomes = await one_after_another(
        bench.client, [Ask(await bench.maker.chat(rng, tokens), 1, seed=number) for number in range(CHUNKS)]
    )
    times = [outcome.timings["prefill_ms"] / 1e3 for outcome in outcomes if outcome.status == "ok"]
    if not times:
        raise CommandError(f"The idle server did not read a prompt of {tokens} tokens: {outcomes[0].error}")
    return median(times)


async def _until_full(bench: Bench) -> None:
    """Returns when agents hold every lane that they may hold, or after ``FULL_SECONDS``."""
    until = time.monotonic() + FULL_SECONDS
    wanted = min(bench.options.agents, max(1, bench.lanes - 1))
    while len((await view(bench.client)).busy) < wanted and time.monotonic() < until:
        await asyncio.sleep(0.1)


class _Agent:
    """Works through tasks without a pause: each turn sends the conversation so far."""

    def __init__(self, bench: Bench, number: int, system: Message) -> None:
        self.outcomes: list[Outcome] = []
        self._bench = bench
        self._number = number
        self._system = system
        self._task: Message = {"role": "user", "content": ""}
        self._turns: list[str] = []

    async def prepare(self) -> None:
        """Make its texts before the clock runs."""
        rng = self._bench.rng("flood", "agent", self._number)
        maker, scaled = self._bench.maker, self._bench.scaled
        self._task = {"role": "user", "content": await maker.text(rng, scaled(TASK))}
        self._turns = [await maker.text(rng, scaled(TURN)) for _ in range(TURNS - 1)]

    async def run(self) -> None:
        """Until cancelled. Every task has words of its own in front, so that only the system block is shared."""
        job = 0
        while True:
            task = {"role": "user", "content": f"{job} {self._number} {self._task['content']}"}
            messages: list[Message] = [self._system, task]
            for turn in range(TURNS):
                outcome = await self._send(messages, job * TURNS + turn)
                if outcome.status != "ok":
                    await asyncio.sleep(PAUSE_SECONDS)
                    break
                full = outcome.prompt_tokens + 2 * (AGENT_ANSWER + TURN) + AGENT_ANSWER > self._bench.context
                if full or turn == len(self._turns):
                    break
                following = self._turns[turn]
                messages += [{"role": "assistant", "content": outcome.text}, {"role": "user", "content": following}]
            job += 1

    async def _send(self, messages: list[Message], number: int) -> Outcome:
        ask = Ask(list(messages), AGENT_ANSWER, "agent", seed=self._number * 10_000 + number)
        now = time.monotonic()
        outcome = Outcome("agent", now, now)
        self.outcomes.append(outcome)
        return await self._bench.client.read(ask, outcome)
