"""Who gives way when pages, units or slots are short, and how: spilled before dropped, in the order of eviction."""

from __future__ import annotations

from typing import Any

import pytest

from engine.memory.kept import Kept
from tests.engine.memory.world import DEVICES, World


def add(world: World, ids: list[int], **options: Any) -> Kept:
    """A prompt read on lane 0 and kept as the lane ends."""
    world.start(0, ids)
    kept = world.keep(0, ending=True, **options)
    world.finish(0)
    assert kept is not None
    return kept


def continued(world: World, kept: Kept, ids: list[int], **options: Any) -> Kept:
    """A longer prompt that started from a kept one, kept too."""
    world.fork(kept, 0, kept.tokens + len(ids))
    world.grow(0, ids)
    longer = world.keep(0, ending=True, **options)
    world.finish(0)
    assert longer is not None
    return longer


def places(kept: Kept) -> str:
    """Where its pages lie: p(ool) or h(ost), in order."""
    return "".join("h" if held.page is None else "p" for held in kept.held)


def eight(first: int) -> list[int]:
    """Two pages of a prompt that is like no other."""
    return [first] * 8


def test_order_of_eviction() -> None:
    world = World(pages=12, slots=6, host=0)
    person_explicit = add(world, eight(0), name="p", explicit=True)
    agent_explicit = add(world, eight(1), name="a", explicit=True, request_class="agent")
    person_old, person_new = add(world, eight(2)), add(world, eight(3))
    agent_old, agent_new = add(world, eight(4), request_class="agent"), add(world, eight(5), request_class="agent")
    world.fork(person_old, 0, 8)
    world.finish(0)  # used now, so no longer the older one
    # One slot of six is common ground: the newest of the agents' counts as a person's.
    order = [agent_old, agent_explicit, person_new, agent_new, person_old, person_explicit]
    for pages in range(1, 13):
        assert world.keeper.reclaim(pages)
        gone = -(-pages // 2)
        assert set(world.alive()) == set(order[gone:])
        assert world.pool.free == 2 * gone
    assert world.keeper.figures().evictions == 6


def test_a_name_that_is_asked_for_counts_as_used() -> None:
    world = World(pages=4, host=0)
    old, new = add(world, [1], name="old", explicit=True), add(world, [2], name="new", explicit=True)
    assert world.keeper.get("old") is old
    world.keeper.reclaim(3)
    assert world.alive() == [old]
    assert new not in world.alive()


def test_spilled_before_dropped() -> None:
    world = World(pages=4, host=3)
    old, new = add(world, eight(1)), add(world, eight(2))
    assert world.keeper.reclaim(1)
    assert (places(old), places(new)) == ("ph", "pp"), "only what is short, from the end"
    assert world.keeper.reclaim(3)
    assert (places(old), places(new)) == ("hh", "ph")
    assert world.keeper.figures().host_used == 3 * world.kv.page_bytes
    assert world.keeper.figures().spills == 3
    world.check()
    assert world.keeper.reclaim(4)
    assert world.alive() == [new], "the older one's units make room"
    assert places(new) == "hh"
    world.check()


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_spilled_can_be_started_from(device: str) -> None:
    world = World(pages=4, host=4, device=device)
    kept = add(world, [1] * 10)
    assert world.keeper.reclaim(4)
    assert places(kept) == "hhh"
    assert world.keeper.pages_for(kept, 12) == 3
    running = world.fork(kept, 0, 12)
    assert world.pool.free == 1
    assert places(kept) == "pph", "the part is copied from where it lies"
    assert world.keeper.figures().restores == 1
    assert world.read(0, running.pages, 10) == world.kept[kept][0]
    world.grow(0, [3, 3])
    world.check()


def test_the_host_tier_is_full_of_better_states() -> None:
    """Then an agent's state goes for good, and a person's spilled one stays."""
    world = World(pages=6, host=2)
    person = add(world, eight(1))
    assert world.keeper.reclaim(6)
    agent = add(world, eight(2), request_class="agent")
    assert world.keeper.reclaim(6)
    assert world.alive() == [person]
    assert agent not in world.alive()
    assert places(person) == "hh"


def test_a_state_larger_than_the_host_tier_takes_nobody_with_it() -> None:
    world = World(pages=8, host=2)
    small = add(world, [1, 1])
    assert world.keeper.reclaim(8)
    large = add(world, [2] * 16)
    world.fork(small, 0, 4)  # now the large one is the older of the two
    world.finish(0)
    assert world.keeper.reclaim(7)
    assert world.alive() == [small]
    assert large not in world.alive()
    assert places(small) == "h"
    world.check()


def test_a_shared_page_stays_for_the_last_that_holds_it() -> None:
    """The beginning of an old and a new prompt is as new as the new one."""
    world = World(pages=8, host=8)
    short = add(world, eight(1))
    long = continued(world, short, [1] * 4)
    between = add(world, eight(2))
    world.fork(long, 0, 12)  # the newest of the three
    world.finish(0)
    assert world.keeper.reclaim(5)
    assert (places(short), places(between), places(long)) == ("pp", "hh", "ppp")
    assert world.keeper.reclaim(7)
    assert (places(short), places(long)) == ("ph", "phh")
    assert short.held[1] is long.held[1], "moved once for both"
    world.check()


def test_dropping_leaves_what_others_hold() -> None:
    world = World(pages=8, host=0)
    short = add(world, eight(1))
    continued(world, short, [1] * 4)
    assert world.keeper.reclaim(6)
    assert world.alive() == [short], "the longer one's own page was enough; the common ones stay"
    world.check()


def test_live_work_is_not_touched() -> None:
    world = World(pages=8, host=8)
    kept = add(world, eight(1))
    other = add(world, eight(2))
    running = world.fork(kept, 0, 12)
    assert world.keeper.reclaimable == 2
    assert not world.keeper.reclaim(6)
    assert places(other) == "pp", "nothing is given up in vain"
    assert world.keeper.reclaim(5)
    assert places(kept) == "pp"
    assert world.read(0, running.pages, 8) == world.kept[kept][0]
    world.check()


def test_the_one_to_start_from_is_spared() -> None:
    world = World(pages=4, host=0)
    mine, other = add(world, eight(1)), add(world, eight(2))
    assert world.keeper.reclaim(2, spare=mine)
    assert world.alive() == [mine]
    assert other not in world.alive()
    assert not world.keeper.reclaim(3, spare=mine)
    assert world.alive() == [mine]


def test_a_spilled_one_to_start_from_is_spared_too() -> None:
    world = World(pages=4, host=2)
    mine = add(world, eight(1))
    assert world.keeper.reclaim(4)
    other = add(world, eight(2))
    assert world.keeper.reclaim(4, spare=mine)
    assert world.alive() == [mine]
    assert other not in world.alive()
    world.fork(mine, 0, 9)
    world.check()


def test_what_the_spared_one_shares_is_spared() -> None:
    world = World(pages=8, host=8)
    short = add(world, eight(1))
    long = continued(world, short, [1] * 4)
    assert not world.keeper.reclaim(6, spare=long)
    assert world.keeper.reclaim(6, spare=short)
    assert (places(short), places(long)) == ("pp", "pph")


def test_units_that_a_better_state_shares_are_not_to_be_had() -> None:
    """Dropping the other would free none of them, so it stays."""
    world = World(pages=8, host=3)
    short = add(world, eight(1), request_class="agent")
    long = continued(world, short, [1] * 4)
    assert world.keeper.reclaim(8)
    assert (places(short), places(long)) == ("hh", "hhh")
    newer = add(world, eight(2), request_class="agent")
    assert world.keeper.reclaim(8)
    assert newer not in world.alive()
    assert world.alive() == [short, long]
    world.check()


@pytest.mark.parametrize("host", [0, 8])
def test_a_slot_for_each(host: int) -> None:
    """Spilled or not, a state has its place on the shelf; the first in the order gives its up."""
    world = World(pages=12, slots=2, host=host)
    agent, person = add(world, eight(1), request_class="agent"), add(world, eight(2))
    world.keeper.reclaim(10)
    newer = add(world, eight(3), request_class="agent")
    assert world.alive() == [person, newer] if host else [newer]
    assert agent not in world.alive()
    newest = add(world, eight(4))
    assert newest in world.alive()
    world.check()
