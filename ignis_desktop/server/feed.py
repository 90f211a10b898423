"""The engine's snapshots as one event stream, for any number of listeners.

A snapshot is turned into a frame once, however many listen; a listener that is slow gets the newest frame when it is
ready for one, so that nothing ever piles up. While nobody listens, nothing runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

from starlette.requests import Request

from engine.messages import EngineSnapshot
from ignis_desktop.server import sse
from ignis_desktop.server.snapshot_json import snapshot_bytes

PERIOD = 1 / 30
"""Seconds between two looks at the engine, and so between two events."""


class EngineFeed:
    """Everything but the constructor belongs to the server's event loop."""

    def __init__(self, snapshot: Callable[[], EngineSnapshot]) -> None:
        self._snapshot = snapshot
        self._seen: EngineSnapshot | None = None
        self._body = b""
        self._spoke = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._changed = asyncio.Event()
        self._listeners: set[Listener] = set()
        self.closed = False
        self.frame = b""
        """The newest event."""
        self.version = 0
        """Counts the events."""
        self.beats = 0
        """Counts the signs of life in between."""

    def listen(self, http: Request) -> Listener:
        """A new listener; its first event is the engine's state now."""
        listener = Listener(self, http)
        self._listeners.add(listener)
        if self._timer is None:
            self._look()
        return listener

    def leave(self, listener: Listener) -> None:
        """The last one to leave stops the timer."""
        self._listeners.discard(listener)
        if not self._listeners and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._wake()

    def close(self) -> None:
        """The server stops: every stream comes to its end."""
        self.closed = True
        self._wake()

    async def news(self) -> None:
        """Returns when something may have changed."""
        await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed.clear()  # each waiter has its own future by now, and those are done

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(PERIOD, self._look)
        now = self._snapshot()
        if now is not self._seen:
            self._seen = now
            body = snapshot_bytes(now)
            # An idle engine publishes too: only its clock has moved then, and that is not sent.
            if body != self._body:
                self._body = body
                self.frame = sse.frame(body, "snapshot")
                self.version += 1
                self._spoke = loop.time()
                self._wake()
                return
        if loop.time() - self._spoke >= sse.KEEP_ALIVE_SECONDS:
            self.beats += 1
            self._spoke = loop.time()
            self._wake()


class Listener:
    """One client's stream: the ``Work`` of its response."""

    def __init__(self, feed: EngineFeed, http: Request) -> None:
        self._feed = feed
        self._http = http
        self._gone = False

    async def frames(self) -> AsyncGenerator[bytes, None]:
        """The newest event whenever it is another one, a comment after fifteen silent seconds."""
        feed = self._feed
        version, beats = -1, feed.beats
        while not (self._gone or feed.closed):
            if feed.version != version:
                version = feed.version
                yield feed.frame
            elif feed.beats != beats:
                beats = feed.beats
                yield sse.KEEP_ALIVE
            else:
                await feed.news()

    def leave(self) -> None:
        self._gone = True
        self._http.scope["ignis.gone"] = False  # to leave is how such a stream ends: no fault for the log
        self._feed.leave(self)

    def close(self) -> None:
        self._feed.leave(self)
