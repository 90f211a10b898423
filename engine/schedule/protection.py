"""A place that later requests may fill but not delay: EASY backfilling.

After D. Lifka, "The ANL/IBM SP Scheduling System" (1995), with pages beside processors and wrong estimates.

The first in line that does not fit opens a protection. Its *donors* are the running requests, in the order of their
estimated ends, whose ends make room for it; the last of these ends is its start. Both are frozen then. A later
request may pass if it is over by that start, or if both fit once the donors are gone.

Frozen, because estimates are wrong: were the start moved along with them, short requests could pass for ever. As it
is, those that pass on time are donors too, none of them is let in after the start, and every other one leaves room
for the protected request beside it. So the protected request fits when the last donor ends, however late that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.schedule.asks import Ask, Running
from engine.schedule.supply import Supply


class Protection:
    """What is kept for one request. :meth:`update` comes before each use, with what is true now."""

    def __init__(self, ask: Ask, supply: Supply, running: Sequence[Running], now: float) -> None:
        self.id = ask.id
        self.start = now
        """When it starts if the estimates hold."""
        self._donors: set[str] = set()
        self._firm = False
        self.update(ask, supply, running)

    def update(self, ask: Ask, supply: Supply, running: Sequence[Running]) -> None:
        """Further donors are taken only where those there are do not suffice any more: a more urgent request took its
        place, an agent cannot be parked after all, or kept state it counted on is gone.

        An agent that once could not be parked is kept room for as such: were that believed anew each time, those that
        it lets past could take the place outside that it needs to be parkable, again and again.
        """
        self._firm = self._firm or not ask.parkable
        if self._firm and ask.parkable:
            ask = replace(ask, parkable=False)
        then = supply
        for request in running:
            if request.id in self._donors:
                then = then.ended(request)
        if not then.fits(ask):
            for request in sorted((r for r in running if r.id not in self._donors), key=lambda r: r.ends):
                self._donors.add(request.id)
                self.start = max(self.start, request.ends)
                then = then.ended(request)
                if then.fits(ask):
                    break
        self.ask = ask
        self._then = then

    def allows(self, ask: Ask, now: float) -> bool:
        """Whether ``ask`` may start now, before the protected request."""
        return self._on_time(ask, now) or self._beside(ask)

    def passed(self, ask: Ask, now: float) -> None:
        """Note that ``ask`` starts now."""
        if self._on_time(ask, now):
            self._donors.add(ask.id)
        else:
            self._donors.discard(ask.id)

    def as_running(self) -> Running:
        """The protected request as those behind its class foresee it."""
        ask = self.ask
        return Running(ask.id, ask.request_class, ask.pages, self.start + ask.seconds, self.start, False, ask.since)

    def _on_time(self, ask: Ask, now: float) -> bool:
        return now + ask.seconds <= self.start

    def _beside(self, ask: Ask) -> bool:
        """Whether both fit when the donors are gone, and without parking ``ask`` again at once."""
        then = self._then.started(ask)
        return then.fits(self.ask) and (ask.request_class == "interactive" or then.free(self.ask))
