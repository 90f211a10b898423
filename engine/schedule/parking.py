"""Which agent gives its lane and pages to an interactive request."""

from __future__ import annotations

from collections.abc import Iterable

from engine.schedule.asks import Ask, Running, gives_way
from engine.schedule.supply import Supply


def to_park(running: Iterable[Running], ask: Ask, supply: Supply, now: float) -> Running | None:
    """The agent to park next for ``ask``, which fits within reach; None when it fits into what is free.

    Those that lose least come first: least recently active (in whole seconds: all that decode advance in every round),
    then with the fewest pages to move, then the youngest. None is parked without which it would fit as well: small ones
    are spared where a big one has to go anyway.
    """
    agents = sorted(filter(gives_way, running), key=lambda a: (-int(now - a.active), a.pages, -a.since))
    # Missing once all of them are parked; then those that lose most are spared first.
    lanes = 1 - supply.lanes - len(agents)
    pages = ask.pages - supply.pages - sum(agent.pages for agent in agents)
    needed: list[Running] = []
    for agent in reversed(agents):
        if lanes + 1 <= 0 and pages + agent.pages <= 0:
            lanes += 1
            pages += agent.pages
        else:
            needed.append(agent)
    return needed[-1] if needed else None
