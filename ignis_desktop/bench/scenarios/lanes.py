"""One stream against as many as there are lanes: what batching gives."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ignis_desktop.bench.client import Ask, Outcome
from ignis_desktop.bench.load import decode_rate
from ignis_desktop.bench.report import ScenarioReport, Verdict
from ignis_desktop.bench.scenarios.base import Bench, Stopwatch
from ignis_desktop.bench.stats import median
from ignis_desktop.bench.watch import wait_idle
from ignis_desktop.cli.errors import CommandError

TITLE = "tokens a second of one stream and of all lanes together"
REPEATS = 5
PROMPT, ANSWER = 64, 64
RATIO = 3.0
"""Times one lane's rate that all lanes together reach at least."""


async def run(bench: Bench) -> ScenarioReport:
    """One stream and all lanes in turn, so that a machine that slows down slows both."""
    watch = Stopwatch()
    rng = bench.rng("lanes")
    prompt = bench.scaled(PROMPT)
    one: list[float] = []
    many: list[float] = []
    for turn in range(REPEATS):
        for rates, count in ((one, 1), (many, bench.lanes)):
            bench.say(f"{count} at once, {turn + 1} of {REPEATS}")
            asks = [Ask(await bench.maker.chat(rng, prompt), ANSWER, seed=index) for index in range(count)]
            outcomes = await asyncio.gather(*map(bench.client.ask, asks))
            _all_answered(outcomes)
            rates.append(decode_rate(outcomes))
            await wait_idle(bench.client)
    single, together = median(one), median(many)
    ratio = together / single if single else 0.0
    report = ScenarioReport("lanes", TITLE, watch.seconds)
    rows: list[Sequence[str]] = [("1", f"{single:.1f}"), (str(bench.lanes), f"{together:.1f}")]
    report.tables.append((("lanes", "tokens/s"), rows))
    report.facts |= {
        "prompt_tokens": prompt,
        "answer_tokens": ANSWER,
        "one_lane_tokens_per_second": [round(rate, 2) for rate in one],
        "all_lanes_tokens_per_second": [round(rate, 2) for rate in many],
        "lanes": bench.lanes,
        "ratio": round(ratio, 3),
    }
    name = f"{bench.lanes} lanes against one"
    eight = bench.lanes == 8
    report.verdicts.append(
        Verdict(
            name,
            f"{ratio:.2f} ×",
            f"≥ {RATIO:g} × with 8 lanes",
            ratio >= RATIO if eight else None,
            "" if eight else f"the server has {bench.lanes} lanes",
        )
    )
    return report


def _all_answered(outcomes: list[Outcome]) -> None:
    for outcome in outcomes:
        if outcome.status != "ok" or len(outcome.pieces) < 2:
            raise CommandError(f"A stream was not answered: {outcome.error or 'it had no text'}")
