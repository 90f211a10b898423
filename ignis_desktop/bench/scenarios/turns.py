"""Conversations: the next turn must not read again what the last one read."""

from __future__ import annotations

from ignis_desktop.bench.client import Ask, Outcome
from ignis_desktop.bench.prompts import Message
from ignis_desktop.bench.report import ScenarioReport, Verdict, milliseconds
from ignis_desktop.bench.scenarios.base import Bench, Stopwatch
from ignis_desktop.bench.stats import median
from ignis_desktop.bench.watch import wait_idle
from ignis_desktop.cli.errors import CommandError

CONVERSATIONS, TURNS = 3, 3
FIRST, NEXT, ANSWER = 2000, 64, 32
"""Tokens of the first prompt, of each later message and of each answer."""
SHARE = 0.10
"""Part of a later turn's prompt that may be read again."""


async def run(bench: Bench) -> ScenarioReport:
    watch = Stopwatch()
    first = bench.scaled(FIRST)
    turns: list[list[Outcome]] = [[] for _ in range(TURNS)]
    read: list[float] = []
    for number in range(CONVERSATIONS):
        bench.say(f"conversation {number + 1} of {CONVERSATIONS}")
        rng = bench.rng("turns", number)
        messages: list[Message] = await bench.maker.chat(rng, first)
        for turn in range(TURNS):
            before = await wait_idle(bench.client)
            outcome = await bench.client.ask(Ask(messages, ANSWER, seed=number))
            if outcome.status != "ok":
                raise CommandError(f"A turn was not answered: {outcome.error}")
            after = await wait_idle(bench.client)
            turns[turn].append(outcome)
            if turn:
                read.append(after.since(before)["tokens_prefilled"] / outcome.prompt_tokens)
            following = await bench.maker.text(rng, bench.scaled(NEXT))
            if outcome.prompt_tokens + 4 * (ANSWER + NEXT) > bench.context:  # the answer's text may take more tokens
                break
            messages = [
                *messages,
                {"role": "assistant", "content": outcome.text},
                {"role": "user", "content": following},
            ]
    turns = [turn for turn in turns if turn]
    report = ScenarioReport("turns", f"{CONVERSATIONS} conversations that begin with {first:,} tokens", watch.seconds)
    report.tables.append((("turn", "prompt", "cached", "ttft ms"), [_row(i, turn) for i, turn in enumerate(turns, 1)]))
    report.facts |= {
        "turns": [
            {
                "prompt_tokens": [outcome.prompt_tokens for outcome in turn],
                "cached_tokens": [outcome.cached_tokens for outcome in turn],
                "ttft_ms": [round((outcome.first_seconds or 0) * 1e3, 2) for outcome in turn],
            }
            for turn in turns
        ],
        "read_share": [round(share, 4) for share in read],
    }
    worst = max(read, default=1.0)
    long_enough = first == FIRST and bool(read)
    report.verdicts.append(
        Verdict(
            "prompt tokens read again by a later turn",
            f"{worst:.1%} at most" if read else "there was none",
            f"< {SHARE:.0%} of a {FIRST:,}-token conversation",
            worst < SHARE if long_enough else None,
            "" if long_enough else "the model's context is too short for it",
        )
    )
    return report


def _row(number: int, turn: list[Outcome]) -> list[str]:
    firsts = [outcome.first_seconds for outcome in turn if outcome.first_seconds is not None]
    return [
        str(number),
        f"{median([outcome.prompt_tokens for outcome in turn]):,.0f}",
        f"{median([outcome.cached_tokens for outcome in turn]):,.0f}",
        milliseconds(median(firsts) if firsts else None),
    ]
