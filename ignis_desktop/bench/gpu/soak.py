"""Minutes of everything at once: nothing may grow, be compiled, leak, slow down or change its bits."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from engine.schedule.scheduler import Scheduler
from ignis_desktop.bench.gpu import leaks, mixed, probe
from ignis_desktop.bench.gpu.equal import Equal, graph_and_eager
from ignis_desktop.bench.gpu.watched import WatchedEngine
from ignis_desktop.bench.report import ScenarioReport, Verdict
from ignis_desktop.bench.stats import median

MIB = 1 << 20
WINDOW = 60.0
DRIFT = 0.9
"""What the last third of the windows writes and reads at least, against the first."""
LEAST_WINDOWS = 3
WARM_SHARE = 0.1
"""Of the time, before anything is counted: what a process takes at first use is no leak."""


def on_card(engine: WatchedEngine) -> bool:
    return engine.on_thread(_device) == "cuda"


def _device(scheduler: Scheduler) -> str:
    return scheduler._network.device.type


def run(
    engine: WatchedEngine, compilations: probe.Compilations, *, seconds: float, seed: int, say: Callable[[str], None]
) -> ScenarioReport:
    """``compilations`` listen since before the engine was loaded."""
    began = time.monotonic()
    card = on_card(engine)
    warm = mixed.Mixed(engine, mixed.CARD if card else mixed.HOST, seed=seed)
    at_load = compilations.count
    say("soak: every act once")
    warm.once()
    warm.run(seconds * WARM_SHARE, say)
    leaks.settled(engine)
    say("soak: graph and eager, at the start")
    checks = {"start": graph_and_eager(engine)}
    first_use = compilations.names()
    load = mixed.Mixed(engine, mixed.CARD if card else mixed.HOST, seed=seed + 1)
    before, begun = leaks.state(), engine.snapshot()
    start = probe.look()
    for half in ("middle", "end"):
        load.run(seconds * (1 - WARM_SHARE) / 2, say)
        leaks.settled(engine)
        say(f"soak: graph and eager, at the {half}")
        checks[half] = graph_and_eager(engine)
    leaks.settled(engine)
    after = probe.look()
    report = ScenarioReport("soak", f"{mixed.CLIENTS} clients, everything at once", time.monotonic() - began)
    report.tables.append((mixed.HEADERS, load.tally.rows()))
    late = compilations.since(first_use)
    report.verdicts += [
        faults_verdict(load.tally, warm.tally),
        allocation_verdict(start, after, card=card),
        Verdict(
            "kernels compiled or read during the soak",
            ", ".join(f"{count} × {name}" for name, count in late.items()) or "none",
            "none",
            not late,
        ),
        *leaks.verdicts(engine, before, begun),
        _equal(checks),
        _drift(report, load.tally, seconds),
    ]
    report.notes += [
        f"kernels: {at_load} until the engine was ready, {sum(first_use.values()) - at_load} at first uses after that",
        f"at most {load.tally.most_busy} lanes busy, {load.tally.most_waiting} waiting, "
        f"{load.tally.most_parked} parked",
        f"host memory {(after.resident - start.resident) / MIB:+.0f} MiB (at {after.resident / MIB:,.0f} MiB)",
    ]
    report.facts |= {
        "load": load.tally.json(),
        "first_uses": first_use,
        "compiled_during": late,
        "counters": after.since(start),
        "peak_allocated": after.most_allocated,
        "checks": {name: vars(check) for name, check in checks.items()},
    }
    return report


def faults_verdict(*tallies: mixed.Tally) -> Verdict:
    """The first faults in words, all of them counted."""
    count = sum(sum(tally.faults.values()) for tally in tallies)
    words = [f"{times} × {what}" for tally in tallies for what, times in tally.faults.most_common(5)]
    done = sum(tally.count for tally in tallies)
    return Verdict("acts that went wrong", f"{count} of {done:,}", "0", count == 0, "; ".join(words))


def allocation_verdict(before: probe.Look, after: probe.Look, *, card: bool) -> Verdict:
    grown = after.since(before)
    measured = (
        f"{grown['device_allocations']} allocations, {grown['device_frees']} frees, {grown['retries']} retries, "
        f"{grown['refusals']} refusals, {grown['reserved']:+,} bytes reserved, {grown['pinned']} pinned allocations"
    )
    still = not any(
        grown[name] for name in ("device_allocations", "device_frees", "retries", "refusals", "reserved", "segments")
    )
    return Verdict(
        "memory taken of the driver after load",
        measured if card else "-",
        "none",
        still if card else None,
        "" if card else "there is no card",
    )


def _equal(checks: dict[str, Equal]) -> Verdict:
    same = len({check.digest for check in checks.values()}) == 1
    each = ", ".join(f"{name} {'equal' if check.equal else 'DIFFERENT'}" for name, check in checks.items())
    graph = all(check.graph for check in checks.values())
    return Verdict(
        "graph and eager rounds, fixed prompts",
        f"{each}; {'the same' if same else 'NOT the same'} at all times",
        "equal bit for bit, now and later",
        same and all(check.equal for check in checks.values()),
        "" if graph else "no round is captured here: eager against itself",
    )


def _drift(report: ScenarioReport, tally: mixed.Tally, seconds: float) -> Verdict:
    """Adds the table of windows, and judges the last third of them by the first."""
    window = min(WINDOW, seconds / 6)
    found = mixed.rates(tally.looks, window)
    rows: list[Sequence[str]] = [
        [f"{number * window:,.3g}–{(number + 1) * window:,.3g} s", f"{written:,.0f}", f"{read:,.0f}"]
        for number, (written, read) in enumerate(found)
    ]
    report.tables.append((("time of load", "tokens/s written", "prompt tokens/s read"), rows))
    report.facts["windows"] = [{"written": round(w, 1), "read": round(r, 1)} for w, r in found]
    third = len(found) // 3
    share: Any = None
    if third:
        # Long prompts and long answers come as they are drawn: a window is what it wrote and read together.
        first, last = ([w + r for w, r in part] for part in (found[:third], found[-third:]))
        share = median(last) / max(median(first), 1e-9)
    judged = share is not None and len(found) >= LEAST_WINDOWS and window >= WINDOW / 2
    return Verdict(
        "throughput of the last third against the first",
        "-" if share is None else f"{share:.2f} ×",
        f"≥ {DRIFT} ×",
        share >= DRIFT if judged else None,
        "" if judged else "too short to tell",
    )
