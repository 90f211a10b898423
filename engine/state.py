"""The engine's published state: one snapshot, replaced as a whole, that any thread may read or wait for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import psutil

from engine.messages import EngineError, EngineSnapshot, EngineState, LaneSnapshot
from engine.schedule.scheduler import Scheduler

_PROCESS = psutil.Process()
_SHOWN = 64
"""Waiting requests that a snapshot names; it counts all."""
_INTERRUPTIBLE = 0.5
"""Seconds of one wait: Windows lets Ctrl-C through between waits only."""


class StateBoard:
    """Only the engine's thread enters states; every thread reads them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._snapshot = EngineSnapshot("empty", time=time.monotonic())

    @property
    def snapshot(self) -> EngineSnapshot:
        return self._snapshot

    def enter(self, state: EngineState, reason: str = "", **fields: Any) -> None:
        """Publish the newest snapshot with these fields changed."""
        snapshot = replace(self._snapshot, state=state, reason=reason, time=time.monotonic(), **fields)
        with self._changed:
            self._snapshot = snapshot
            self._changed.notify_all()

    def fail(self, reason: str) -> None:
        """Enter "failed". Nothing runs any more, whatever the last snapshot said."""
        last = self._snapshot
        self.enter(
            "failed",
            reason,
            progress=None,
            lanes=tuple(LaneSnapshot(lane.lane) for lane in last.lanes),
            parked=(),
            waiting=(),
            queued_interactive=0,
            queued_agent=0,
            pages_free=last.pages_total,
            page_map=bytes(last.pages_total),
            retained=0,
            reuse=replace(last.reuse, kept=0, kept_pages=0, host_used=0),
            decode_tokens_per_second=0.0,
            prefill_tokens_per_second=0.0,
        )

    def wait_ready(self, timeout: float | None, on_progress: Callable[[EngineSnapshot], None] | None) -> None:
        """Return when the state is "ready"; see ``Engine.wait_ready``."""
        until = None if timeout is None else time.monotonic() + timeout
        shown: EngineSnapshot | None = None
        while True:
            with self._changed:
                if self._snapshot is shown:
                    left = _INTERRUPTIBLE if until is None else until - time.monotonic()
                    if left <= 0:
                        raise TimeoutError(f"The engine was not ready after {timeout} s.")
                    self._changed.wait(min(left, _INTERRUPTIBLE))
                snapshot = self._snapshot
            if snapshot.state == "ready":
                return
            if snapshot.state == "failed":
                raise EngineError(snapshot.reason)
            if snapshot.state in ("draining", "closed"):
                raise EngineError("The engine was closed before it was ready.")
            if on_progress is not None and snapshot is not shown:
                on_progress(snapshot)
            shown = snapshot


def figures(scheduler: Scheduler, now: float) -> dict[str, Any]:
    """The snapshot's fields that change while the engine serves."""
    counters, lanes, policy = scheduler.counters, scheduler.lanes, scheduler.policy
    return {
        "lanes": lanes.snapshots(now),
        "parked": lanes.parked(now),
        "waiting": scheduler.waiting(now, _SHOWN),
        "queued_interactive": policy.count("interactive"),
        "queued_agent": policy.count("agent"),
        "pages_total": lanes.pages.total,
        "pages_free": lanes.pages.free,
        "page_map": lanes.page_map(),
        "retained": lanes.keeper.explicit,
        "reuse": lanes.keeper.figures(),
        "decode_tokens_per_second": scheduler.decode_rate.value(now),
        "prefill_tokens_per_second": scheduler.prefill_rate.value(now),
        "rounds": counters.rounds,
        "tokens_generated": counters.tokens_generated,
        "tokens_prefilled": counters.tokens_prefilled,
        "requests_finished": counters.finished,
        "requests_failed": counters.failed,
        "requests_cancelled": counters.cancelled,
        "resident_bytes": _PROCESS.memory_info().rss,
    }
