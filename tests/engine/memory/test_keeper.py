"""What is kept, under which names, and what starting from it gives."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.memory.kept import Kept
from engine.messages import BusyError
from tests.engine.memory.world import DEVICES, World

PROMPT = [1, 2, 3, 4, 5, 6, 7, 0, 1, 2]
"""Two pages and a half."""


@pytest.fixture
def world() -> World:
    return World()


def kept_prompt(world: World, ids: list[int] = PROMPT, **options: Any) -> Kept:
    """A prompt read on lane 0 and kept as the lane ends."""
    world.start(0, ids)
    kept = world.keep(0, ending=True, **options)
    world.finish(0)
    assert kept is not None
    return kept


@pytest.mark.parametrize("tokens", [1, 3, 4, 5, 8, 10])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("device", DEVICES)
def test_a_fork_has_every_byte(tokens: int, dtype: torch.dtype, device: str) -> None:
    """On and off a page's edge, while the lane that made it goes its own way, and twice."""
    world = World(dtype=dtype, device=device)
    world.start(0, PROMPT[:tokens], total=16)
    kept = world.keep(0)
    assert kept is not None
    world.grow(0, [7, 7, 7])
    for lane in (1, 2):
        running = world.fork(kept, lane, tokens + 2)
        assert world.read(lane, running.pages, tokens) == world.kept[kept][0]
        world.grow(lane, [lane, lane])
        world.check()


def test_whole_pages_are_shared_and_a_part_is_copied(world: World) -> None:
    lane = world.start(0, PROMPT, total=16)
    kept = world.keep(0)
    assert kept is not None
    assert world.pool.free == 12 - 4 - 1
    fork = world.fork(kept, 1, 11)
    assert fork.pages[:2] == lane.pages[:2]
    assert world.pool.free == 12 - 4 - 1 - 1
    assert world.pool.count(lane.pages[0]) == 3
    assert world.keeper.reclaimable == 1
    world.finish(0)
    world.finish(1)
    assert world.keeper.reclaimable == 3
    world.keeper.clear()
    assert world.pool.free == 12


def test_siblings_share_by_reference(world: World) -> None:
    """A longer prompt that started from a kept one adds its own pages only."""
    first = kept_prompt(world, PROMPT[:8])
    world.fork(first, 0, 12)
    world.grow(0, [5, 5, 5, 5])
    second = world.keep(0, ending=True)
    world.finish(0)
    assert second is not None
    assert second.held[:2] == first.held
    assert world.pool.free == 12 - 3
    world.check()


def test_an_ending_lane_gives_its_last_page(world: World) -> None:
    """The pool may be full to the last page."""
    world = World(pages=3)
    kept = kept_prompt(world)
    assert world.keeper.reclaimable == 3
    assert world.keeper.pages_for(kept, 10) == 1
    world.check()


def test_the_same_prompt_is_kept_once(world: World) -> None:
    kept = kept_prompt(world)
    other = kept_prompt(world, [7])
    world.start(0, PROMPT)
    before = world.pool.free
    last = world.running[0].last
    assert world.keep(0, request_class="agent", last=last) is kept
    assert world.pool.free == before
    assert last is not None
    assert kept.last is not None
    assert torch.equal(kept.last, last)
    assert kept.request_class == "interactive"
    assert kept.used > other.used, "it counts as used"


def test_an_agents_snapshot_that_a_person_needs_is_a_persons(world: World) -> None:
    kept = kept_prompt(world, request_class="agent")
    assert kept_prompt(world) is kept
    assert kept.request_class == "interactive"


def test_finding_the_longest(world: World) -> None:
    short, long = kept_prompt(world, PROMPT[:3]), kept_prompt(world, PROMPT[:9])
    kept_prompt(world, [3, 3, 3])
    assert world.find(PROMPT) is long
    assert world.find(PROMPT, limit=8) is short
    assert world.find(PROMPT, limit=2) is None
    assert world.find(PROMPT[:9]) is short, "all of a prompt needs the last column's residual"
    assert world.find([*PROMPT[:8], 7, 7]) is short
    assert world.find([2, *PROMPT]) is None
    assert world.keeper.figures().hits == 0


def test_the_whole_prompt_is_found_with_its_last_column(world: World) -> None:
    world.start(0, PROMPT)
    last = world.running[0].last
    kept = world.keep(0, last=last)
    assert world.find(PROMPT) is kept
    assert kept is not None
    assert kept.last is not None
    assert last is not None
    assert kept.last.data_ptr() != last.data_ptr(), "a copy: a view would hold a whole chunk's residuals"


def test_pictures_are_part_of_a_prefix(world: World) -> None:
    world.start(0, PROMPT, pictures=((2, b"one"),))
    kept = world.keep(0)
    longer = [*PROMPT, 1]
    assert world.find(longer, ((2, b"one"),)) is kept
    assert world.find(longer, ((2, b"one"), (10, b"two"))) is kept
    for pictures in ((), ((2, b"two"),), ((3, b"one"),)):
        assert world.find(longer, pictures) is None


def test_explicit_states_have_names(world: World) -> None:
    automatic = kept_prompt(world, [7, 7], name="mine")
    assert world.keeper.get("mine") is None, "a snapshot has no name to ask for"
    kept = kept_prompt(world, name="mine", explicit=True)
    assert world.keeper.get("mine") is kept
    assert world.find([*PROMPT, 1]) is kept, "others may start from it too"
    world.keeper.drop("mine")
    world.keeper.drop("mine")
    assert world.keeper.get("mine") is None
    assert world.alive() == [automatic]
    assert world.pool.free == 12 - 1


def test_an_explicit_state_of_the_same_name_replaces(world: World) -> None:
    kept_prompt(world, name="mine", explicit=True)
    second = kept_prompt(world, [7, 7], name="mine", explicit=True)
    assert world.alive() == [second]
    assert kept_prompt(world, [7, 7], name="mine", explicit=True) is second
    keyless = kept_prompt(world, [7, 7], name="mine", explicit=True, key=None)
    assert world.alive() == [keyless]


def test_names_for_the_same_prompt_are_apart(world: World) -> None:
    """Dropping one leaves the other."""
    one = kept_prompt(world, name="one", explicit=True)
    two = kept_prompt(world, name="two", explicit=True)
    assert one is not two
    world.keeper.drop("one")
    assert world.keeper.get("two") is two
    assert world.find([*PROMPT, 1]) is two


def test_a_snapshot_becomes_explicit_at_no_cost(world: World) -> None:
    kept = kept_prompt(world)
    assert kept_prompt(world, name="mine", explicit=True) is kept
    assert world.keeper.get("mine") is kept
    assert kept_prompt(world, request_class="agent") is kept
    assert kept.explicit, "an automatic keep of the same takes nothing away"


def test_states_of_few_layers_are_found_by_name_only(world: World) -> None:
    kept = kept_prompt(world, name="few", explicit=True, layers=2)
    assert world.find([*PROMPT, 1]) is None
    assert world.keeper.get("few") is kept
    assert kept.layers == 2


def test_explicit_states_take_snapshots_places_and_not_the_other_way_round() -> None:
    world = World(slots=2)
    kept_prompt(world, [1])
    second = kept_prompt(world, [2], request_class="agent")
    a = kept_prompt(world, [3], name="a", explicit=True, request_class="agent")
    assert a in world.alive()
    assert second not in world.alive()
    world.keeper.clear()
    second = kept_prompt(world, [2], request_class="agent")
    a = kept_prompt(world, [3], name="a", explicit=True, request_class="agent")
    b = kept_prompt(world, [4], name="b", explicit=True)
    assert world.alive() == [a, b]
    world.start(0, [5])
    assert world.keep(0) is None
    assert world.alive() == [a, b]
    c = kept_prompt(world, [6], name="c", explicit=True)
    assert world.alive() == [b, c], "agents' first"


def test_a_full_pool_keeps_the_copy_in_the_host_tier() -> None:
    """Running requests reserve what they may need, so a full pool is nothing unusual."""
    world = World(pages=3, host=1)
    world.start(0, PROMPT)
    kept = world.keep(0)
    assert kept is not None
    assert [held.page is None for held in kept.held] == [False, False, True]
    world.grow(0, [1, 1])
    world.check()
    world.finish(0)
    running = world.fork(kept, 1, 12)
    assert world.read(1, running.pages, 10) == world.kept[kept][0]


def test_a_copy_in_the_host_tier_drops_nothing_better() -> None:
    world = World(pages=3, host=1)
    person = kept_prompt(world, [5])
    assert world.keeper.reclaim(3)
    world.start(0, PROMPT)
    assert world.keep(0, request_class="agent") is None
    assert world.alive() == [person]
    newer = world.keep(0)
    assert world.alive() == [newer]
    world.check()


def test_no_place_for_the_copy() -> None:
    world = World(pages=3, host=0)
    world.start(0, PROMPT)
    assert world.keep(0) is None
    with pytest.raises(BusyError, match="Running requests hold every KV page"):
        world.keep(0, name="mine", explicit=True)
    assert world.alive() == []
    world.grow(0, [1, 1])
    assert world.keep(0) is not None, "a full last page is shared"


def test_a_copy_takes_a_page_from_older_snapshots_only() -> None:
    world = World(pages=4, host=0)
    kept_prompt(world, [1, 1], name="mine", explicit=True)
    world.start(0, PROMPT)
    assert world.keep(0) is None, "an explicit state does not give way to a snapshot"
    world.finish(0)
    world.keeper.drop("mine")
    old = kept_prompt(world, [1, 1])
    world.start(0, PROMPT)
    new = world.keep(0)
    assert new is not None
    assert world.alive() == [new]
    assert old not in world.alive()
    world.check()


def test_a_spilled_explicit_state_does_not_give_way_to_a_snapshot_either() -> None:
    world = World(pages=4, host=1)
    mine = kept_prompt(world, [5], name="mine", explicit=True, request_class="agent")
    assert world.keeper.reclaim(4)
    old = kept_prompt(world, [6])
    world.start(0, PROMPT)
    new = world.keep(0)
    assert world.alive() == [mine, new]
    assert old not in world.alive()
    world.check()


@pytest.mark.parametrize(("tokens", "key"), [(0, b"key"), (13, b"key"), (4, None)])
def test_what_cannot_be_kept(world: World, tokens: int, key: bytes | None) -> None:
    pages = world.start(0, PROMPT).pages
    with pytest.raises(ValueError, match=r"cannot hold|never be found"):
        world.keeper.keep(0, pages, tokens, key=key, id="", rope_delta=0, request_class="agent")


def test_no_slot_for_it_leaves_no_copy_behind() -> None:
    world = World(slots=1)
    mine = kept_prompt(world, name="mine", explicit=True)
    world.start(0, [5])
    assert world.keep(0) is None
    assert world.alive() == [mine]
    world.check()


def test_a_fork_without_pages_changes_nothing() -> None:
    world = World(pages=4)
    kept = kept_prompt(world)
    world.start(0, [1, 2])
    before = world.pool.references(), world.keeper.figures()
    with pytest.raises(MemoryError):
        world.keeper.fork(kept, 1, 2)
    with pytest.raises(ValueError, match="a page for its copy"):
        world.keeper.fork(kept, 1, 0)
    assert (world.pool.references(), world.keeper.figures()) == before
    world.check()
