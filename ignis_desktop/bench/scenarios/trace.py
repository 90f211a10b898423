"""Recorded traffic again, at the times it came: made-up texts of the recorded lengths and shared beginnings."""

from __future__ import annotations

from ignis_desktop.bench.client import Ask
from ignis_desktop.bench.load import Arrival, open_loop
from ignis_desktop.bench.report import ScenarioReport
from ignis_desktop.bench.scenarios.base import Bench, Stopwatch, load_report
from ignis_desktop.bench.trace import Trace, chat_message, read_trace
from ignis_desktop.bench.watch import Watcher, wait_idle
from ignis_desktop.cli.errors import USAGE, CommandError


async def run(bench: Bench) -> ScenarioReport:
    """As much of the trace as comes in ``--seconds``."""
    watch = Stopwatch()
    path = bench.options.trace
    if path is None:
        raise CommandError("The trace scenario needs --trace FILE.", USAGE)
    trace = read_trace(path)
    if trace.longest > bench.context:
        raise CommandError(f"{path} needs a context of {trace.longest:,} tokens; the model has {bench.context:,}.")
    speed = bench.options.speed
    played = [request for request in trace.requests if request.at / speed <= bench.options.seconds]
    texts = await _texts(bench, trace, {number for request in played for number in request.messages})
    arrivals = [
        Arrival(
            request.at / speed,
            Ask(
                [chat_message(trace.messages[number][0], texts[number]) for number in request.messages],
                request.output_tokens,
                request.request_class,
                seed,
            ),
        )
        for seed, request in enumerate(played)
    ]
    before = await wait_idle(bench.client)
    bench.say(f"{len(played)} requests in {arrivals[-1].at:.0f} s")
    async with Watcher(bench.client) as watcher:
        outcomes = await open_loop(bench.client, arrivals)
    seconds = max(outcome.ended for outcome in outcomes) - min(outcome.scheduled for outcome in outcomes)
    after = await wait_idle(bench.client)
    fast = "" if speed == 1 else f", {speed:g} × as fast as recorded"
    title = f"{len(played)} of {len(trace.requests)} requests of {path.name}{fast}"
    report, _ = load_report("trace", title, outcomes, seconds, watch=watch, watcher=watcher, before=before, after=after)
    answered = [(o, r) for o, r in zip(outcomes, played, strict=True) if o.status == "ok"]
    recorded = sum(request.prompt_tokens for _, request in answered)
    replayed = sum(outcome.prompt_tokens for outcome, _ in answered)
    report.notes.append(f"prompt tokens of answered requests: {replayed:,}, recorded {recorded:,}")
    report.facts |= {
        "origin": trace.origin,
        "speed": speed,
        "requests_in_trace": len(trace.requests),
        "replayed": len(played),
        "prompt_tokens_recorded": recorded,
        "prompt_tokens_replayed": replayed,
        "reusable_share_of_trace": round(trace.reusable_share, 4),
    }
    return report


async def _texts(bench: Bench, trace: Trace, numbers: set[int]) -> dict[int, str]:
    """A text for each message: the same number always gets the same one."""
    bench.say(f"making {len(numbers)} texts")
    texts = {}
    for number in sorted(numbers):
        tokens = trace.messages[number][1]
        texts[number] = await bench.maker.text(bench.rng("trace", number), tokens) if tokens else ""
    return texts
