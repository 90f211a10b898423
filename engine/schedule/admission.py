"""Who gets a lane next. Pure policy: no tensor, no clock of its own."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from engine.messages import RequestClass

T = TypeVar("T")


@dataclass(frozen=True)
class Waiting(Generic[T]):
    """A request in the queue with what it needs to start."""

    id: str
    request_class: RequestClass
    pages: int
    """Pages to reserve for it: prompt and the longest answer it may give."""
    item: T


@dataclass
class AdmissionQueue(Generic[T]):
    """A bounded queue in two classes, first come first served within each.

    Interactive requests go first. Agents leave one lane free, so that an interactive request finds a lane at once; with
    a single lane there is none to spare. A request whose pages are not there yet waits and keeps its place: later ones
    of its class do not pass it.
    """

    limit: int
    lanes: int
    _queues: dict[RequestClass, deque[Waiting[T]]] = field(
        default_factory=lambda: {"interactive": deque(), "agent": deque()}
    )

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def count(self, request_class: RequestClass) -> int:
        return len(self._queues[request_class])

    @property
    def full(self) -> bool:
        return len(self) >= self.limit

    def add(self, waiting: Waiting[T]) -> None:
        """Raises ``OverflowError`` when the queue is full (ask first)."""
        if self.full:
            raise OverflowError(f"{len(self)} requests are waiting already")
        self._queues[waiting.request_class].append(waiting)

    def remove(self, request_id: str) -> Waiting[T] | None:
        """Take a request out of the queue wherever it stands."""
        for queue in self._queues.values():
            for waiting in queue:
                if waiting.id == request_id:
                    queue.remove(waiting)
                    return waiting
        return None

    def next(self, free_lanes: int, free_pages: int) -> Waiting[T] | None:
        """The request that may start now, taken out of the queue; None when none may."""
        spare = 1 if self.lanes > 1 else 0
        for request_class, kept in (("interactive", 0), ("agent", spare)):
            queue = self._queues["interactive" if request_class == "interactive" else "agent"]
            if queue and free_lanes > kept:
                return queue.popleft() if queue[0].pages <= free_pages else None
        return None

    def all(self) -> list[Waiting[T]]:
        """Everything that waits, interactive first."""
        return [*self._queues["interactive"], *self._queues["agent"]]
