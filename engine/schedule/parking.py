"""Which agent gives its lane and pages to an interactive request."""

from __future__ import annotations

from collections.abc import Iterable

from engine.schedule.asks import Ask, Running, gives_way
from engine.schedule.supply import Supply


def to_park(running: Iterable[Running], ask: Ask, supply: Supply, now: float) -> Running | None:
    """The agent to park next so that ``ask`` fits into what is free; None when it does, or when parking cannot help.

    Those that lose least come first: least recently active (in whole seconds: all that decode advance in every round),
    then with the fewest pages to move, then the youngest. Of these the ones are spared without which it fits as well,
    so that a big agent is not parked together with small ones that it made superfluous.
    """
    lanes, pages = 1 - supply.lanes, ask.pages - supply.pages  # missing
    chosen: list[Running] = []
    agents = filter(gives_way, running)
    for agent in sorted(agents, key=lambda agent: (-int(now - agent.active), agent.pages, -agent.since)):
        if lanes <= 0 and pages <= 0:
            break
        chosen.append(agent)
        lanes -= 1
        pages -= agent.pages
    if lanes > 0 or pages > 0:
        return None
    needed: list[Running] = []
    for agent in reversed(chosen):
        if lanes + 1 <= 0 and pages + agent.pages <= 0:
            lanes += 1
            pages += agent.pages
        else:
            needed.append(agent)
    return needed[-1] if needed else None
