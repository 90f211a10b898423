"""Requests of both classes that come as they do from people and programs who know nothing of each other."""

from __future__ import annotations

import random

from ignis_desktop.bench.client import Ask
from ignis_desktop.bench.load import Arrival, open_loop
from ignis_desktop.bench.prompts import Message
from ignis_desktop.bench.report import ScenarioReport
from ignis_desktop.bench.scenarios.base import Bench, Stopwatch, load_report
from ignis_desktop.bench.watch import Watcher, wait_idle

SYSTEMS, SYSTEM = 3, 400
"""System blocks that agents share, and their length."""
AGENT_TASK, AGENT_ANSWER = (100, 400), (32, 96)
INTERACTIVE, INTERACTIVE_ANSWER = (128, 384), (16, 48)
"""Tokens, drawn evenly: an agent's task after its system block and its answer; a person's prompt and its answer."""


async def run(bench: Bench) -> ScenarioReport:
    watch = Stopwatch()
    options = bench.options
    rng = bench.rng("poisson")
    bench.say("preparing prompts")
    systems: list[Message] = [
        {"role": "system", "content": await bench.maker.text(rng, bench.scaled(SYSTEM))} for _ in range(SYSTEMS)
    ]
    arrivals = []
    for at in arrival_times(rng, options.rate, options.seconds):
        agent = rng.random() < options.mix
        ask = await _agent(bench, rng, rng.choice(systems)) if agent else await _person(bench, rng)
        arrivals.append(Arrival(at, ask))
    before = await wait_idle(bench.client)
    bench.say(f"{len(arrivals)} requests in {options.seconds:g} s")
    async with Watcher(bench.client) as watcher:
        outcomes = await open_loop(bench.client, arrivals)
    seconds = max(outcome.ended for outcome in outcomes) - min(outcome.scheduled for outcome in outcomes)
    after = await wait_idle(bench.client)
    title = f"{options.rate:g} requests a second at random times, {options.mix:.0%} of them agents'"
    report, _ = load_report(
        "poisson", title, outcomes, seconds, watch=watch, watcher=watcher, before=before, after=after
    )
    report.facts |= {"rate": options.rate, "mix": options.mix}
    return report


def arrival_times(rng: random.Random, rate: float, seconds: float) -> list[float]:
    """A Poisson process: ``rate`` arrivals a second on average over ``seconds``; at least one."""
    times: list[float] = []
    at = rng.expovariate(rate)
    while at < seconds or not times:
        times.append(at)
        at += rng.expovariate(rate)
    return times


async def _agent(bench: Bench, rng: random.Random, system: Message) -> Ask:
    task = await bench.maker.text(rng, bench.scaled(rng.randint(*AGENT_TASK)))
    return Ask([system, {"role": "user", "content": task}], rng.randint(*AGENT_ANSWER), "agent", rng.getrandbits(31))


async def _person(bench: Bench, rng: random.Random) -> Ask:
    messages = await bench.maker.chat(rng, bench.scaled(rng.randint(*INTERACTIVE)))
    return Ask(messages, rng.randint(*INTERACTIVE_ANSWER), "interactive", rng.getrandbits(31))
