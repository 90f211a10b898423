"""What the server says of itself while it is under load: ``GET /v1/engine``, a few times a second."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from typing import Any

from ignis_desktop.bench.client import LoadClient
from ignis_desktop.cli.errors import CommandError

WATCH_SECONDS = 0.25
READY_POLL_SECONDS = 0.1
IDLE_SECONDS = 30.0
IDLE_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class EngineView:
    """One answer of ``GET /v1/engine``."""

    raw: dict[str, Any]

    @property
    def lanes(self) -> list[dict[str, Any]]:
        return self.raw.get("lanes") or []

    @property
    def busy(self) -> list[dict[str, Any]]:
        return [lane for lane in self.lanes if lane.get("state") != "idle"]

    @property
    def parked(self) -> list[dict[str, Any]] | None:
        """Requests that gave their lane away for a while; None when the server does not say."""
        return self.raw.get("parked")

    @property
    def queued(self) -> int:
        return int((self.raw.get("queue") or {}).get("total") or 0)

    @property
    def idle(self) -> bool:
        return not self.busy and not self.parked and not self.queued

    def find(self, word: str) -> str | None:
        """The id of the request whose prompt begins with ``word``, wherever it is; None when it is not shown."""
        for request in (*self.lanes, *(self.parked or ()), *(self.raw.get("waiting") or ())):
            if str(request.get("label", "")).split(" ")[0] == word:
                return str(request["request_id"])
        return None

    @property
    def pages_total(self) -> int:
        return int(self.raw["pages"]["total"])

    @property
    def pages_free(self) -> int:
        return int(self.raw["pages"]["free"])

    @property
    def pages_kept(self) -> int:
        """Pages that only kept state holds."""
        return int(self.reuse.get("kept_pages") or 0)

    @property
    def reuse(self) -> dict[str, int]:
        """What is kept of earlier requests; empty when the server does not say."""
        return self.raw.get("reuse") or {}

    @property
    def counters(self) -> dict[str, int]:
        return self.raw.get("counters") or {}

    @property
    def resident(self) -> int:
        return int(self.raw.get("resident_bytes") or 0)

    def since(self, before: EngineView) -> dict[str, int]:
        """How much each counter grew."""
        grown = {name: value - before.counters.get(name, 0) for name, value in self.counters.items()}
        for name in ("hits", "misses", "cached_tokens", "evictions", "spills", "restores", "parks", "resumes"):
            if name in self.reuse:
                grown[name] = self.reuse[name] - before.reuse.get(name, 0)
        return grown


async def view(client: LoadClient) -> EngineView:
    return EngineView(await client.get("/v1/engine"))


async def wait_ready(client: LoadClient) -> EngineView:
    """The first view of a server that serves. Raises ``CommandError`` when it never will."""
    while (now := await view(client)).raw.get("state") != "ready":
        state = now.raw.get("state")
        if state in ("failed", "draining", "closed"):
            raise CommandError(str(now.raw.get("reason") or f"The engine is {state}."))
        await asyncio.sleep(READY_POLL_SECONDS)
    return now


async def wait_idle(client: LoadClient, limit: float = IDLE_SECONDS) -> EngineView:
    """The first view of a server with nothing to do, or the last one when ``limit`` seconds have passed."""
    until = time.monotonic() + limit
    while not (now := await view(client)).idle and time.monotonic() < until:
        await asyncio.sleep(IDLE_POLL_SECONDS)
    return now


@dataclass
class Watcher:
    """Looks on while a block runs; a server that does not answer in between is no fault here."""

    client: LoadClient
    every: float = WATCH_SECONDS
    views: int = 0
    parked: dict[str, int] = field(default_factory=dict)
    """Class → most requests seen parked at once."""
    says_parked: bool = False
    """Whether the server tells what is parked."""
    most_busy: int = 0
    most_queued: int = 0
    least_free: int | None = None
    _task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Watcher:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        while True:
            with contextlib.suppress(CommandError):
                self._take(await view(self.client))
            await asyncio.sleep(self.every)

    def _take(self, now: EngineView) -> None:
        self.views += 1
        self.most_busy = max(self.most_busy, len(now.busy))
        self.most_queued = max(self.most_queued, now.queued)
        self.least_free = now.pages_free if self.least_free is None else min(self.least_free, now.pages_free)
        if now.parked is None:
            return
        self.says_parked = True
        for name in ("interactive", "agent"):
            held = sum(lane.get("class") == name for lane in now.parked)
            self.parked[name] = max(self.parked.get(name, 0), held)

    def json(self) -> dict[str, Any]:
        return {
            "views": self.views,
            "most_busy_lanes": self.most_busy,
            "most_queued": self.most_queued,
            "least_free_pages": self.least_free,
            "most_parked": self.parked if self.says_parked else None,
        }
