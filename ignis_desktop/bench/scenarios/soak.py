"""Many short requests, some of whose clients leave: afterwards everything must be as it was before."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from ignis_desktop.bench.client import Ask
from ignis_desktop.bench.report import ScenarioReport, Verdict
from ignis_desktop.bench.scenarios.base import Bench, Stopwatch
from ignis_desktop.bench.scenarios.soak_load import CANCELLED, LEAVING, SoakLoad, Tally
from ignis_desktop.bench.stats import Spread
from ignis_desktop.bench.watch import EngineView, wait_idle

WARM_SHARE = 0.2
"""What a process takes in this first part of a soak (threads, caches, logs that fill up) is no leak."""
MIB = 1 << 20
GROWTH = 16 * MIB
"""Resident memory that may come in the rest: what the C library's heap varies by."""
FILL_TOKENS = 40_000
"""The KV pool is written once in whole before the soak when it holds no more: memory counts once it is touched."""
SETTLE_SECONDS = 0.2


async def run(bench: Bench) -> ScenarioReport:
    watch = Stopwatch()
    count = bench.options.requests
    bench.say("preparing prompts")
    load = await SoakLoad.create(bench)
    filled = await _fill_pool(bench)
    begun = await _settled(bench)
    warm = max(1, int(count * WARM_SHARE))
    tally = Tally()
    await load.send(range(warm), tally, count)
    await _settled(bench)
    before = bench.target.usage()
    await load.send(range(warm, count), tally, count)
    last = await _settled(bench)
    after = bench.target.usage()
    report = ScenarioReport("soak", _title(count), watch.seconds)
    grown = last.since(begun)
    report.verdicts += [_answers(tally), _ends(grown, tally.left + tally.cancelled), _pages(last)]
    report.verdicts += _process(before, after, count - warm, filled)
    seconds = Spread.of(tally.seconds)
    rate = count / report.seconds
    if seconds is not None:
        report.notes.append(f"{rate:.0f} requests a second; answers took {seconds.p50 * 1e3:,.0f} ms (median)")
    report.facts |= {
        "requests": count,
        "answered": tally.finished,
        "left": tally.left,
        "cancelled": tally.cancelled,
        "whole_before_leaving": tally.whole_before_leaving,
        "faults": dict(tally.faults),
        "requests_per_second": round(rate, 2),
        "answer_ms": seconds.json(1e3) if seconds else None,
        "counters": grown,
        "pool_written_before": filled,
        "process": {"before": before, "after": after},
    }
    return report


def _title(count: int) -> str:
    return f"{count:,} short requests, {LEAVING:.0%} of whose clients leave; {CANCELLED:.0%} are cancelled"


async def _fill_pool(bench: Bench) -> bool:
    """Write every page of the KV pool once; whether that was done."""
    if bench.context * bench.lanes > FILL_TOKENS:
        return False
    bench.say("writing the KV pool once")
    rng = bench.rng("soak", "fill")
    length = bench.context - 32
    asks = [Ask(await bench.maker.chat(rng, length), 16, seed=number) for number in range(bench.lanes)]
    outcomes = await asyncio.gather(*map(bench.client.ask, asks))
    return all(outcome.status == "ok" for outcome in outcomes)


async def _settled(bench: Bench) -> EngineView:
    """The idle server with one connection, a moment later: threads that end and connections that close take one."""
    await wait_idle(bench.client)
    await bench.client.hang_up()
    await asyncio.sleep(SETTLE_SECONDS)
    return await wait_idle(bench.client)


def _answers(tally: Tally) -> Verdict:
    reasons = "; ".join(f"{count} × {reason}" for reason, count in tally.faults.most_common(3))
    failed = sum(tally.faults.values())
    measured = f"{failed} ({tally.finished:,} answered, {tally.left:,} left, {tally.cancelled:,} cancelled)"
    return Verdict("requests that failed", measured, "0", failed == 0, reasons)


def _ends(grown: dict[str, int], ended: int) -> Verdict:
    """The engine's own count. ``ended``: requests that were cancelled or whose client left; no others may be short."""
    failed, cancelled = grown["requests_failed"], grown["requests_cancelled"]
    return Verdict(
        "the engine's count of failed and cancelled requests",
        f"{failed} failed, {cancelled:,} cancelled",
        f"0 failed, at most {ended:,} cancelled",
        failed == 0 and cancelled <= ended,
    )


def _pages(last: EngineView) -> Verdict:
    missing = last.pages_total - last.pages_kept - last.pages_free
    busy, parked = len(last.busy), len(last.parked or ())
    return Verdict(
        "lanes, queue and pages afterwards",
        f"{busy} lanes busy, {last.queued} waiting, {parked} parked, {missing} pages missing "
        f"({last.pages_free:,} free, {last.pages_kept:,} kept, of {last.pages_total:,})",
        "all idle, every page free or kept",
        last.idle and missing == 0,
    )


def _process(before: dict[str, Any] | None, after: dict[str, Any] | None, requests: int, filled: bool) -> list[Verdict]:
    """What the server's process holds beside the engine's own counters."""
    if before is None or after is None:
        why = "the process of a server that was running already is not looked into"
        return [Verdict("threads, connections and memory afterwards", "not measured", "as before", None, why)]
    more = Counter(after["threads"]) - Counter(before["threads"])
    native = after["native_threads"] - before["native_threads"]
    handles = {name: (after[name] or 0) - (before[name] or 0) for name in ("connections", "files")}
    growth = after["resident_bytes"] - before["resident_bytes"]
    judged = filled or growth <= GROWTH
    return [
        Verdict(
            "streams and requests still in memory",
            ", ".join(f"{count} {name}" for name, count in after["alive"].items()),
            "0",
            not any(after["alive"].values()),
        ),
        Verdict(
            "threads afterwards",
            ", ".join(f"{count:+d} {name}" for name, count in more.items()) or f"as before ({native:+d} native)",
            "as before",
            not more and native <= 0,
        ),
        Verdict(
            "connections and files afterwards",
            ", ".join(f"{count:+d} {name}" for name, count in handles.items()),
            "as before",
            all(count <= 0 for count in handles.values()),
        ),
        Verdict(
            f"memory growth over {requests:,} requests",
            f"{growth / MIB:+.1f} MiB (at {after['resident_bytes'] / MIB:,.0f} MiB)",
            f"≤ {GROWTH / MIB:.0f} MiB",
            growth <= GROWTH if judged else None,
            "" if judged else "the KV pool is touched for the first time meanwhile; --max-context 1K makes it small",
        ),
    ]
