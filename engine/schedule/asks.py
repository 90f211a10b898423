"""What admission is told: who waits and for how much, who runs, what is free; and what it answers.

Pages are KV pages of the pool, times are seconds of the caller's clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from engine.messages import RequestClass

T = TypeVar("T")


@dataclass(frozen=True)
class Need:
    """What a waiting or parked request asks for now."""

    pages: int
    """To take beyond what it shares with kept state."""
    seconds: float
    """How long it will hold them, estimated from above: its prompt and every token it may generate."""
    parkable: bool = True
    """Whether it could be moved out for an interactive request once it runs, beside all that run now."""


@dataclass(frozen=True, eq=False)
class Waiting(Generic[T]):
    """A request without a lane. Two are the same only if they are one: items need not be comparable."""

    id: str
    request_class: RequestClass
    item: T
    since: float


@dataclass(frozen=True)
class Running:
    """A request on a lane."""

    id: str
    request_class: RequestClass
    pages: int
    """Those that are free again when it ends or is moved out: its private ones."""
    ends: float
    """When it ends, estimated from above. A time that is past means that the estimate was wrong."""
    active: float
    """When it last advanced."""
    parkable: bool
    """Whether it can be moved out now. All that say so can be moved out together."""
    since: float = 0.0
    """When it was asked for."""


@dataclass(frozen=True)
class Room:
    """What is free. None in line may ask for more pages than there are when nothing runs."""

    lanes: int
    pages: int
    """Free pages and those that dropping or spilling kept state would free."""
    reserve: int
    """Pages that must stay within reach of interactive requests: one lane's worth."""


@dataclass(frozen=True)
class Start:
    """Give the waiting request a lane."""

    id: str


@dataclass(frozen=True)
class Park:
    """Move the running agent out: its pages and its lane are wanted."""

    id: str


@dataclass(frozen=True)
class Resume:
    """Bring the parked agent back onto a lane."""

    id: str


Action = Start | Park | Resume


@dataclass(frozen=True)
class Ask:
    """A request in line with what it needs."""

    id: str
    request_class: RequestClass
    pages: int
    seconds: float
    parkable: bool
    """Whether it gives way to an interactive request: agents that can be moved out do."""
    since: float

    @classmethod
    def of(cls, waiting: Waiting[T], need: Need) -> Ask:
        gives_way = need.parkable and waiting.request_class == "agent"
        return cls(waiting.id, waiting.request_class, need.pages, need.seconds, gives_way, waiting.since)


def gives_way(running: Running) -> bool:
    """Whether it can be parked for an interactive request."""
    return running.parkable and running.request_class == "agent"
