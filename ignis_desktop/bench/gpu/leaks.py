"""What must be as before once nothing is asked any more: lanes, queue, pages, slots, threads, objects."""

from __future__ import annotations

import gc
import threading
import time
from collections import Counter
from concurrent.futures import thread as futures
from dataclasses import dataclass

from engine.engine import Engine
from engine.messages import EngineSnapshot
from engine.schedule.job import Job
from engine.schedule.scheduler import Scheduler
from engine.stream import Stream
from ignis_desktop.bench.gpu.watched import WatchedEngine
from ignis_desktop.bench.report import Verdict

SETTLE_SECONDS = 20.0


@dataclass(frozen=True)
class State:
    """Threads outside of pools by name, and objects that stand for requests."""

    threads: Counter[str]
    alive: Counter[str]


def state() -> State:
    gc.collect()
    kinds = (Stream, Job)
    alive = Counter(type(thing).__name__ for thing in gc.get_objects() if type(thing) in kinds)
    # Pools start their threads one by one and keep them: those are as many as the pool is made for.
    pooled = set(futures._threads_queues)
    threads = (thread.name for thread in threading.enumerate() if thread not in pooled)
    return State(Counter(name.rstrip("0123456789") for name in threads), alive)


def settled(engine: Engine) -> EngineSnapshot:
    """The first snapshot with nothing to do, or the last one when that takes too long."""
    until = time.monotonic() + SETTLE_SECONDS
    while not _idle(now := engine.snapshot()) and time.monotonic() < until:
        time.sleep(0.02)
    return now


def verdicts(engine: WatchedEngine, before: State, begun: EngineSnapshot) -> list[Verdict]:
    """Judge an engine that was asked to do nothing more; ``before`` and ``begun`` are from before the load."""
    last = settled(engine)
    missing = last.pages_total - last.pages_free - last.reuse.kept_pages
    busy = sum(lane.state != "idle" for lane in last.lanes)
    waiting = last.queued_interactive + last.queued_agent
    try:
        books = engine.on_thread(_audit)
    except Exception as fault:
        books = f"{type(fault).__name__}: {fault}"
    now = state()
    more = now.threads - before.threads
    held = now.alive - before.alive
    failed = last.requests_failed - begun.requests_failed
    ended = last.requests_finished - begun.requests_finished
    return [
        Verdict(
            "lanes, queue and pages afterwards",
            f"{busy} lanes busy, {waiting} waiting, {len(last.parked)} parked, {missing} pages missing "
            f"({last.pages_free:,} free, {last.reuse.kept_pages:,} kept, of {last.pages_total:,}; {ended:,} requests "
            f"finished, {last.requests_cancelled - begun.requests_cancelled:,} cancelled, {failed:,} failed)",
            "all idle, every page free or kept",
            _idle(last) and missing == 0,
        ),
        Verdict(
            "references to pages, units and slots, counted again", books or "as on the books", "as booked", not books
        ),
        Verdict(
            "requests still in memory, threads more",
            ", ".join(f"{count} {name}" for name, count in (held + more).items()) or "none",
            "none",
            not held and not more,
        ),
    ]


def _idle(now: EngineSnapshot) -> bool:
    busy = any(lane.state != "idle" for lane in now.lanes)
    return not (busy or now.parked or now.queued_interactive or now.queued_agent)


def _audit(scheduler: Scheduler) -> str:
    scheduler.lanes.keeper.check([sequence.pages for sequence in scheduler.lanes.running])
    return ""
