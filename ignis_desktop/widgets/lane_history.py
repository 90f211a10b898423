"""What a lane did lately, as spans of time. Nothing here draws."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

SECONDS = 60.0
"""How far back a lane's history goes."""
_MOST = 4096
"""Spans kept at most: far more than a minute's pixels can show."""


@dataclass(slots=True)
class Span:
    """One request in one state. ``end`` is infinite while it goes on."""

    start: float
    end: float
    state: str
    """ "prefill", "decode" or "parked"."""
    tint: str
    """Whose colour it has: the request's class."""
    request: str


class LaneHistory:
    """Fed with what a lane does now; remembers the last ``SECONDS``."""

    def __init__(self) -> None:
        self._spans: deque[Span] = deque(maxlen=_MOST)
        self.touched = math.inf
        """The earliest moment about which something else is known since whoever draws has reset this."""

    def __bool__(self) -> bool:
        return bool(self._spans)

    @property
    def running(self) -> Span | None:
        """What goes on now."""
        return self._spans[-1] if self._spans and self._spans[-1].end == math.inf else None

    def note(self, now: float, state: str, tint: str = "", request: str = "") -> None:
        """At ``now`` the lane is in ``state`` with ``request``; "idle" is no span."""
        running = self.running
        if running is not None:
            if (running.state, running.request, running.tint) == (state, request, tint):
                return
            running.end = now
            self.touched = min(self.touched, now)
        if state != "idle":
            self._spans.append(Span(now, math.inf, state, tint, request))
            self.touched = min(self.touched, now)
        self.forget(now)

    def forget(self, now: float) -> None:
        """Drops what is too long ago."""
        while self._spans and self._spans[0].end < now - SECONDS:
            self._spans.popleft()

    def since(self, moment: float) -> Iterator[Span]:
        """The spans that reach past ``moment``, newest first."""
        for span in reversed(self._spans):
            if span.end < moment:
                return
            yield span

    def at(self, moment: float) -> Span | None:
        """What the lane did then."""
        return next((span for span in self.since(moment) if span.start <= moment), None)
