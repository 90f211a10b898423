"""Lanes and pages: what is free, and what an interactive request reaches by parking agents."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.messages import RequestClass
from engine.schedule.asks import Ask, Room, Running, gives_way


@dataclass(frozen=True, slots=True)
class Supply:
    """Lanes and pages at one moment, real or foreseen. What is foreseen may be negative: then agents must be parked.

    A request that can be parked takes from what is free, but nothing from what is within reach.
    """

    lanes: int
    pages: int
    """Free."""
    reach_lanes: int
    reach_pages: int
    """Free, or free once every agent is parked that can be."""
    reserve: int
    """Pages that agents leave within reach."""
    holders: int
    """Requests on lanes."""

    @classmethod
    def of(cls, running: Iterable[Running], room: Room) -> Supply:
        holders = lanes = pages = 0
        for request in running:
            holders += 1
            if gives_way(request):
                lanes += 1
                pages += request.pages
        return cls(room.lanes, room.pages, room.lanes + lanes, room.pages + pages, room.reserve, holders)

    def ended(self, request: Running) -> Supply:
        """After ``request`` ended."""
        new = 0 if gives_way(request) else 1
        return self._moved(1, request.pages, new, new * request.pages)

    def started(self, ask: Ask) -> Supply:
        """After ``ask`` started."""
        lost = 0 if ask.parkable else 1
        return self._moved(-1, -ask.pages, -lost, -lost * ask.pages)

    def _moved(self, lanes: int, pages: int, reach_lanes: int, reach_pages: int) -> Supply:
        return Supply(
            self.lanes + lanes,
            self.pages + pages,
            self.reach_lanes + reach_lanes,
            self.reach_pages + reach_pages,
            self.reserve,
            self.holders - lanes,
        )

    def free(self, ask: Ask) -> bool:
        """Whether a lane and the pages are there without parking anyone."""
        return self.lanes >= 1 and self.pages >= ask.pages

    def lane_for(self, request_class: RequestClass) -> bool:
        return (self.reach_lanes if request_class == "interactive" else self.lanes) >= 1

    def fits(self, ask: Ask) -> bool:
        """Whether ``ask`` may have what it asks for: interactive requests by parking agents, agents from what is free.

        An agent that cannot be parked leaves a lane and the reserve within reach, unless it would have the machine to
        itself: then there is nothing to wait for.
        """
        if ask.request_class == "interactive":
            return self.reach_lanes >= 1 and self.reach_pages >= ask.pages
        if not self.free(ask):
            return False
        after = self.started(ask)
        return ask.parkable or self.holders == 0 or (after.reach_lanes >= 1 and after.reach_pages >= self.reserve)
