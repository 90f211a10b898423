"""Who gets a lane next, and who gives one up. Pure policy: no tensor, no clock, nothing is moved here.

The caller keeps its requests here while they have no lane, and before each step of the engine asks :meth:`Policy.next`
what to do until it answers None, with the same ``now``::

    Start(id)    policy.remove(id), then give it a lane
    Resume(id)   policy.remove(id), then bring it back onto a lane
    Park(id)     move the running agent out, then policy.park(Waiting(..., since=its first ``since``))

    Policy(queue_limit, need)    need(item) -> Need(pages, seconds, parkable=True); must not raise
    add(waiting)  park(waiting)  remove(id) -> Waiting | None       remove: waiting or parked
    len(policy)                                                     waiting and parked
    count(class)  full(class)                                       waiting only
    waiting() -> list in the order of service                       without parked()
    parked() -> list, oldest first
    protected -> frozenset of ids                                   at most one of each class
    retry_after(running, now) -> seconds
    next(running, room, now) -> Start | Park | Resume | None

The rules:

1. Interactive requests come before agents, first come first served within each; a parked agent keeps its place.
2. An interactive request that finds no lane or too few pages has agents parked for it, if that makes it fit. Nothing
   else is ever parked, and nothing for an agent.
3. Agents fill every lane that is left. Those that can be parked take nothing from what interactive requests reach;
   those that cannot leave one lane and ``Room.reserve`` pages within reach.
4. When the first of a class does not fit, it is protected: those behind it may pass only where that does not delay it
   (:mod:`engine.schedule.protection`).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, get_args

from engine.messages import RequestClass
from engine.schedule.asks import Action, Ask, Need, Park, Resume, Room, Running, Start, Waiting
from engine.schedule.parking import to_park
from engine.schedule.protection import Protection
from engine.schedule.supply import Supply

__all__ = ["Action", "Need", "Park", "Policy", "Resume", "Room", "Running", "Start", "Waiting"]

T = TypeVar("T")

# The most urgent first.
CLASSES: tuple[RequestClass, ...] = get_args(RequestClass)

# Bounds of Retry-After, seconds. Ends are estimated from above: asking again after a minute may well succeed.
SOONEST_RETRY = 1.0
LATEST_RETRY = 60.0


class Policy(Generic[T]):
    """The requests without a lane, and the rules by which they get one."""

    def __init__(self, queue_limit: int, need: Callable[[T], Need]) -> None:
        self._limit = queue_limit
        self._need = need
        self._lines: dict[RequestClass, list[Waiting[T]]] = {request_class: [] for request_class in CLASSES}
        self._waiting: dict[str, Waiting[T]] = {}
        self._parked: dict[str, Waiting[T]] = {}
        self._protections: dict[RequestClass, Protection] = {}
        self._changes = 0
        self._settled: object = None
        """What was true when all had to wait: while it is, they have to."""

    def __len__(self) -> int:
        """Requests without a lane, parked ones included."""
        return len(self._waiting) + len(self._parked)

    # --- who is in line --------------------------------------------------------------------------------------

    def add(self, waiting: Waiting[T]) -> None:
        """Put a request in line; the caller refuses it when its class is :meth:`full`."""
        self._stand(waiting, self._waiting)

    def park(self, waiting: Waiting[T]) -> None:
        """Put an agent that gave its lane up in line again, at the place of its ``since``."""
        if waiting.request_class != "agent":
            raise ValueError(f"{waiting.id!r} is not an agent: it is not parked.")
        self._stand(waiting, self._parked)

    def _stand(self, waiting: Waiting[T], group: dict[str, Waiting[T]]) -> None:
        if waiting.id in self._waiting or waiting.id in self._parked:
            raise ValueError(f"{waiting.id!r} is in line already.")
        self._changes += 1
        group[waiting.id] = waiting
        insort(self._lines[waiting.request_class], waiting, key=lambda other: other.since)

    def remove(self, request_id: str) -> Waiting[T] | None:
        """Take a request out of the line wherever it stands; None when it does not."""
        waiting = self._waiting.pop(request_id, None) or self._parked.pop(request_id, None)
        if waiting is not None:
            self._changes += 1
            self._lines[waiting.request_class].remove(waiting)
            protection = self._protections.get(waiting.request_class)
            if protection is not None and protection.id == request_id:
                del self._protections[waiting.request_class]
        return waiting

    def count(self, request_class: RequestClass) -> int:
        """Requests of a class that have not started."""
        parked = len(self._parked) if request_class == "agent" else 0
        return len(self._lines[request_class]) - parked

    def full(self, request_class: RequestClass) -> bool:
        """Whether a class takes no more requests. Each has a bound of its own: agents never make it refuse a person."""
        return self.count(request_class) >= self._limit

    def waiting(self) -> list[Waiting[T]]:
        """Requests that have not started, in the order of service."""
        return [waiting for line in self._lines.values() for waiting in line if waiting.id in self._waiting]

    def parked(self) -> list[Waiting[T]]:
        """Agents that gave their lane up, oldest first."""
        return [waiting for waiting in self._lines["agent"] if waiting.id in self._parked]

    @property
    def protected(self) -> frozenset[str]:
        """Requests that others pass only where that does not delay them, as of the last :meth:`next`."""
        return frozenset(protection.id for protection in self._protections.values())

    def retry_after(self, running: Sequence[Running], now: float) -> float:
        """Seconds until a place in the line is likely to be free: until the first of those that run ends."""
        first = min((request.ends for request in running), default=now)
        return min(max(first - now, SOONEST_RETRY), LATEST_RETRY)

    # --- who is next -----------------------------------------------------------------------------------------

    def next(self, running: Sequence[Running], room: Room, now: float) -> Action | None:
        """What to do now; None when all that is left has to wait. Asking twice gives the same answer.

        Nobody's need is looked at again while the lines, the lanes and the room are as they were when all had to wait:
        time alone lets nobody in, for the starts of protected requests stand.
        """
        if not self._waiting and not self._parked:
            return None
        state = (self._changes, room, [(r.id, r.pages, r.parkable) for r in running])
        if running and state == self._settled:
            return None
        action = self._next(running, room, now)
        self._settled = None if action is not None else state
        return action

    def _next(self, running: Sequence[Running], room: Room, now: float) -> Action | None:
        supply = Supply.of(running, room)
        guards: list[Protection] = []
        foreseen, holders = supply, running  # with protected requests of more urgent classes on lanes
        for request_class, line in self._lines.items():
            for place, waiting in enumerate(line):
                if place and not supply.lane_for(request_class):
                    break
                ask = Ask.of(waiting, self._need(waiting.item))
                if supply.fits(ask) and all(guard.allows(ask, now) for guard in guards):
                    for guard in guards:
                        guard.passed(ask, now)
                    return self._serve(ask, supply, running, now)
                if not place:
                    guard = self._protect(ask, foreseen, holders, now)
                    guards.append(guard)
                    foreseen, holders = foreseen.started(guard.ask), [*holders, guard.as_running()]
        return None

    def _serve(self, ask: Ask, supply: Supply, running: Sequence[Running], now: float) -> Action:
        if ask.request_class == "interactive" and (agent := to_park(running, ask, supply, now)) is not None:
            return Park(agent.id)
        return Resume(ask.id) if ask.id in self._parked else Start(ask.id)

    def _protect(self, ask: Ask, supply: Supply, running: Sequence[Running], now: float) -> Protection:
        """The protection of the first of its class: the one it has, or a new one."""
        protection = self._protections.get(ask.request_class)
        if protection is None or protection.id != ask.id:
            protection = self._protections[ask.request_class] = Protection(ask, supply, running, now)
        else:
            protection.update(ask, supply, running)
        return protection
