"""The memory plan beside what the driver and the tensors say, and what a mixed load takes on top of it: nothing."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from ignis_desktop.bench.gpu import leaks, mixed, probe
from ignis_desktop.bench.gpu.held import Line, lines_held
from ignis_desktop.bench.gpu.soak import allocation_verdict, faults_verdict, on_card
from ignis_desktop.bench.gpu.watched import WatchedEngine
from ignis_desktop.bench.report import ScenarioReport, Verdict

MIB = 1 << 20
LIMIT = 0.01
"""Share of the plan by which the driver's figure may differ."""
HEADERS = ("line", "planned MiB", "held MiB", "off MiB", "off", "told by")


def run(
    engine: WatchedEngine, unused: int | None, *, seconds: float, seed: int, say: Callable[[str], None]
) -> ScenarioReport:
    """``unused``: what the driver said was in use before CUDA was touched in this process."""
    began = time.monotonic()
    card = on_card(engine)
    plan = engine.snapshot().memory_plan
    assert plan is not None, "a ready engine has a plan"
    ready = probe.driver_used()
    own = None if ready is None or unused is None or not card else ready - unused
    context = None if own is None else own - torch.cuda.memory_reserved()
    lines = engine.on_thread(lambda scheduler: lines_held(scheduler, plan, context))
    load = mixed.Mixed(engine, mixed.CARD if card else mixed.HOST, seed=seed)
    say("memory: every act once")
    load.once()
    leaks.settled(engine)
    first = probe.look()
    probe.reset_peak()
    load.run(seconds, say)
    leaks.settled(engine)
    last = probe.look()
    loaded = probe.driver_used()
    after = None if loaded is None or own is None or unused is None else loaded - unused
    report = ScenarioReport("memory", "the plan beside what is held", time.monotonic() - began)
    total = Line("all of the plan, by the driver", plan.total, own, "the driver, since before CUDA was used")
    report.tables.append((HEADERS, [_row(line) for line in (*lines, total)]))
    report.notes += [
        f"torch: {first.reserved / MIB:,.0f} MiB reserved, {last.most_allocated / MIB:,.0f} MiB in use at most during "
        f"{load.tally.count:,} acts",
        f"host memory {(last.resident - first.resident) / MIB:+.0f} MiB meanwhile (at {last.resident / MIB:,.0f} MiB)",
    ]
    report.verdicts += [
        _plan("plan against the driver, ready", plan.total, own),
        _plan("plan against the driver, after the load", plan.total, after),
        *_buffers(lines),
        allocation_verdict(first, last, card=card),
        faults_verdict(load.tally),
    ]
    report.facts |= {
        "plan": plan.total,
        "driver_ready": own,
        "driver_after": after,
        "lines": [{**vars(line), "off": line.off} for line in lines],
        "counters": last.since(first),
        "look": last.json(),
        "load": load.tally.json(),
    }
    return report


def _plan(name: str, planned: int, held: int | None) -> Verdict:
    off = None if held is None else (held - planned) / planned
    return Verdict(
        name,
        "-" if off is None else f"{off:+.2%}",
        f"within {LIMIT:.0%}",
        None if off is None else abs(off) <= LIMIT,
        "the driver does not tell" if off is None else "",
    )


def _buffers(lines: list[Line]) -> list[Verdict]:
    """What is reserved once is as large as planned."""
    off = [line for line in lines if line.buffer and line.off is not None and abs(line.off) > LIMIT]
    return [
        Verdict(
            "buffers against their lines",
            ", ".join(f"{line.name} {line.off:+.1%}" for line in off) or "all as planned",
            f"each within {LIMIT:.0%}",
            not off,
        )
    ]


def _row(line: Line) -> list[str]:
    if line.held is None:
        return [line.name, f"{line.planned / MIB:,.1f}", "-", "-", "-", "not told here"]
    off = "-" if line.off is None else f"{line.off:+.1%}"
    figures = (line.planned, line.held, line.held - line.planned)
    return [line.name, *(f"{value / MIB:,.1f}" for value in figures), off, line.how]
