"""Figures, reservations and the books of pages and slots."""

from __future__ import annotations

import pytest

from engine.memory.audit import AccountError
from engine.memory.kept import Kept
from engine.memory.sizes import state_bytes
from tests.engine.memory.world import SIZE, TEXT, World

PROMPT = [1, 2, 3, 4, 5, 6, 7, 0, 1, 2]


@pytest.fixture
def world() -> World:
    return World()


def kept_prompt(world: World) -> Kept:
    world.start(0, PROMPT)
    kept = world.keep(0, ending=True)
    world.finish(0)
    assert kept is not None
    return kept


def test_figures(world: World) -> None:
    kept = kept_prompt(world)
    world.keeper.count_miss()
    world.fork(kept, 0, 12)
    world.fork(kept, 1, 12)
    found = world.keeper.figures()
    assert (found.kept, found.hits, found.misses, found.cached_tokens) == (1, 2, 1, 2 * len(PROMPT))
    assert (found.kept_pages, found.host_total, found.host_used) == (1, 6 * world.kv.page_bytes, 0)


def test_what_is_reserved_is_what_the_plan_counts(world: World) -> None:
    shelf = (world.slots + world.lanes) * state_bytes(TEXT, 4)
    last = world.slots * TEXT.hidden_size * 4
    assert world.keeper.nbytes == shelf + last + world.host * world.kv.page_bytes


def test_check_finds_what_is_wrong(world: World) -> None:
    kept = kept_prompt(world)
    world.start(0, [1, 2])
    running = world.running[0].pages
    world.keeper.check([running])
    world.keeper.check()
    with pytest.raises(AccountError, match="pages as"):
        world.keeper.check([])
    with pytest.raises(AccountError, match="pages as"):
        world.keeper.check([running, running])
    kept.held[0].kept += 1
    with pytest.raises(AccountError, match="is held by 1 kept"):
        world.keeper.check([running])
    kept.held[0].kept -= 1
    slot, kept.slot = kept.slot, 2
    with pytest.raises(AccountError, match="slots for kept states"):
        world.keeper.check([running])
    kept.slot = slot
    parked, _ = world.park(0)
    world.keeper.check([])
    slot, parked.slot = parked.slot, 4
    with pytest.raises(AccountError, match="slots for parked requests"):
        world.keeper.check([])
    parked.slot = slot
    (unit,) = world.keeper._host.units.take(1)
    with pytest.raises(AccountError, match="units"):
        world.keeper.check([])
    world.keeper._host.units.release([unit])
    held = kept.held.pop()
    with pytest.raises(AccountError, match="are on the books"):
        world.keeper.check([])
    kept.held.append(held)
    world.keeper.check([])


def test_pages_for_nothing_kept(world: World) -> None:
    assert [world.keeper.pages_for(None, n) for n in (0, 1, SIZE, SIZE + 1)] == [0, 1, 1, 2]


def test_without_a_host_tier_nothing_is_reserved_for_it() -> None:
    world = World(host=0)
    assert world.keeper.figures().host_total == 0
    assert world.keeper.nbytes == World(host=1).keeper.nbytes - world.kv.page_bytes
    assert not world.keeper.can_spill(0)
