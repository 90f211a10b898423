"""The reader's end of a request: a bounded queue of events that never makes the engine wait."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator

from engine.messages import EngineError, Event, Failed, Finished

_log = logging.getLogger(__name__)
LIMIT = 4096
"""Events a reader may leave lying before it is cut off."""
_INTERRUPTIBLE = 0.5
"""Seconds of one wait: Windows lets Ctrl-C through between waits only."""


class Stream:
    """Events of one request, from ``Started`` to exactly one ``Finished`` or ``Failed``."""

    def __init__(self, request_id: str, cancel: Callable[[str], object]) -> None:
        self.request_id = request_id
        self._cancel = cancel
        self._events: deque[Event] = deque()
        self._changed = threading.Condition()
        self._notify: Callable[[], None] | None = None
        self._begun = False
        self._ended = False
        self._told = False

    @property
    def begun(self) -> bool:
        """The request left the queue: it holds a lane or has ended."""
        return self._begun

    @property
    def ended(self) -> bool:
        """The last event is there (read or not)."""
        return self._ended

    def __iter__(self) -> Iterator[Event]:
        """Events until the end; none when the end was read already."""
        while (event := self.get()) is not None:
            yield event

    def get(self, timeout: float | None = None) -> Event | None:
        """The next event; None when ``timeout`` seconds passed without one, or the end was read already."""
        until = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while not self._events:
                left = _INTERRUPTIBLE if until is None else until - time.monotonic()
                if left <= 0 or self._ended:
                    return None
                self._changed.wait(min(left, _INTERRUPTIBLE))
            return self._events.popleft()

    def poll(self) -> list[Event]:
        """All events that are there now; never waits."""
        with self._changed:
            events = list(self._events)
            self._events.clear()
            self._told = False
            return events

    def notify(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` (from the engine's thread, so it must return at once) when events arrive after a
        :meth:`poll` took all; also now, if events are lying there."""
        with self._changed:
            self._notify = callback
            waiting = bool(self._events)
            self._told = waiting
        if waiting:
            callback()

    def cancel(self) -> None:
        """End the request within one round; ``Finished(reason="cancelled")`` follows unless it had ended."""
        self._cancel(self.request_id)

    def put(self, event: Event) -> bool:
        """The engine's side. False when the reader is too slow and was cut off: the request should end."""
        with self._changed:
            if self._ended:
                return False
            if len(self._events) >= LIMIT and not isinstance(event, Finished | Failed):
                event = Failed(
                    EngineError(f"{LIMIT} events were left unread; the reader was cut off.", code="slow_reader")
                )
            self._begun = True
            self._ended = isinstance(event, Finished | Failed)
            self._events.append(event)
            self._changed.notify_all()
            callback = None if self._told else self._notify
            self._told = self._told or callback is not None
        if callback is not None:
            try:
                callback()
            except Exception:  # a reader's fault must not reach the other requests of the round
                _log.exception("the reader of %s could not be told", self.request_id)
        return not isinstance(event, Failed)
