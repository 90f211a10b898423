"""From the engine's streams to the server's event loop.

The engine's thread rings a ``Doorbell``; whatever rings until the loop comes round is answered by one callback, so a
round that adds a token to eight streams wakes the loop once. Readers then take all their events without a thread hop.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from starlette.requests import Request as HttpRequest

from engine.messages import BusyError, EngineError, Event, Failed, Finished
from engine.messages import Request as EngineRequest
from ignis_desktop.server.errors import ApiError, ClientGone, cancelled

if TYPE_CHECKING:
    from engine import Engine
    from engine.stream import Stream


class Doorbell:
    """Wakes sleepers on an event loop from another thread, many rings to one wake-up."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._rung: deque[Callable[[], None]] = deque()
        self._scheduled = False

    def ring(self, wake: Callable[[], None]) -> None:
        """From any thread: call ``wake`` on the loop soon. A loop that has ended is left alone."""
        self._rung.append(wake)
        if not self._scheduled:
            self._scheduled = True
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._answer)

    def _answer(self) -> None:
        self._scheduled = False  # before the queue is emptied: a ring from now on schedules anew
        while self._rung:
            self._rung.popleft()()


class EventReader:
    """Reads one or several engine streams on the loop until each has ended, and knows whether the client left."""

    def __init__(self, streams: Sequence[Stream], doorbell: Doorbell) -> None:
        self._doorbell = doorbell
        self._streams: list[Stream] = []
        self._open: set[int] = set()
        self._waiter: asyncio.Future[None] | None = None
        self.gone = False
        self.add(streams)

    def add(self, streams: Sequence[Stream]) -> None:
        """Read more streams; they are counted on."""
        for stream in streams:
            self._open.add(len(self._streams))
            self._streams.append(stream)
            stream.notify(partial(self._doorbell.ring, self.wake))

    @property
    def ended(self) -> bool:
        return not self._open

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def leave(self) -> None:
        """The client is gone: end the work, wake the reader."""
        self.gone = True
        self.cancel()
        self.wake()

    def cancel(self) -> None:
        """End what still runs."""
        for index in self._open:
            self._streams[index].cancel()

    def _poll(self) -> list[tuple[int, Event]]:
        found = [(index, event) for index in sorted(self._open) for event in self._streams[index].poll()]
        for index, event in found:
            if isinstance(event, Finished | Failed):
                self._open.discard(index)
        return found

    async def batch(self, timeout: float) -> list[tuple[int, Event]]:
        """(stream, event) for all events there are; waits for the first up to ``timeout`` seconds, then gives [].

        Raises ``ClientGone`` once the client has left.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        while True:
            if self.gone:
                raise ClientGone
            # A ring may be answered after its events were taken: waking up to nothing is not silence.
            if (found := self._poll()) or loop.time() >= until:
                return found
            self._waiter = loop.create_future()
            timer = loop.call_at(until, self.wake)
            try:
                await self._waiter
            finally:
                timer.cancel()
                self._waiter = None


@contextlib.asynccontextmanager
async def client_watch(http: HttpRequest, on_leave: Callable[[], None]) -> AsyncIterator[None]:
    """Call ``on_leave`` when the client closes the connection while the block runs. The body must have been read."""

    async def watch() -> None:
        while (await http.receive())["type"] != "http.disconnect":
            pass
        http.scope["ignis.gone"] = True
        on_leave()

    watcher = asyncio.create_task(watch())
    try:
        yield
    finally:
        watcher.cancel()


def submit_all(engine: Engine, requests: Sequence[EngineRequest]) -> list[Stream]:
    """Queue all requests or none; raises what ``Engine.submit`` raises."""
    outcomes = engine.submit_all(requests)
    streams = [outcome for outcome in outcomes if not isinstance(outcome, EngineError)]
    refused = next((outcome for outcome in outcomes if isinstance(outcome, EngineError)), None)
    if refused is not None:
        for stream in streams:
            stream.cancel()
        raise refused
    return streams


def require_ready(engine: Engine) -> None:
    """Raises 503 unless the engine serves."""
    now = engine.snapshot()
    if now.state == "ready":
        return
    if now.state == "failed":
        raise ApiError(503, f"The engine has failed: {now.reason}", code="engine_failed")
    if now.state in ("draining", "closed"):
        raise ApiError(503, "The engine is shutting down.", code="engine_closed")
    done = "" if now.progress is None else f", {now.progress:.0%} done"
    raise ApiError.of(BusyError(f"The model is still loading{done}; try again soon.", retry_after=2.0, code="loading"))


def expect_success(event: Event) -> None:
    """Raises for an event that ends a request without an answer."""
    if isinstance(event, Failed):
        raise ApiError.of(event.error)
    if isinstance(event, Finished) and event.reason == "cancelled":
        raise cancelled()
    if isinstance(event, Finished) and event.reason == "error":
        raise ApiError.of(EngineError("The engine could not finish the request.", code="engine_error"))
