"""Who gets a lane next. Pure policy: no tensor, no clock of its own."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from engine.messages import RequestClass

T = TypeVar("T")


@dataclass(frozen=True)
class Waiting(Generic[T]):
    """A request in the queue."""

    id: str
    request_class: RequestClass
    item: T


@dataclass
class AdmissionQueue(Generic[T]):
    """A queue in two classes, first come first served within each.

    Interactive requests go first. Agents leave one lane free, so that an interactive request finds a lane at once; with
    a single lane there is none to spare. Nobody passes the first in line: when its pages are not there yet, all wait.
    """

    lanes: int
    _queues: dict[RequestClass, deque[Waiting[T]]] = field(
        default_factory=lambda: {"interactive": deque(), "agent": deque()}
    )

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def count(self, request_class: RequestClass) -> int:
        return len(self._queues[request_class])

    def add(self, waiting: Waiting[T]) -> None:
        self._queues[waiting.request_class].append(waiting)

    def remove(self, request_id: str) -> Waiting[T] | None:
        """Take a request out of the queue wherever it stands."""
        for queue in self._queues.values():
            for waiting in queue:
                if waiting.id == request_id:
                    queue.remove(waiting)
                    return waiting
        return None

    def first(self, free_lanes: int) -> Waiting[T] | None:
        """The request that starts next, left in the queue; None when no lane is free for any."""
        interactive, agents = self._queues["interactive"], self._queues["agent"]
        if interactive:
            return interactive[0] if free_lanes else None
        kept = 1 if self.lanes > 1 else 0
        return agents[0] if agents and free_lanes > kept else None

    def all(self) -> list[Waiting[T]]:
        """Everything that waits, interactive first."""
        return [*self._queues["interactive"], *self._queues["agent"]]
