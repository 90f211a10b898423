"""Requests that give up their lane go on as if nothing had been."""

from __future__ import annotations

import pytest
import torch

from tests.engine.memory.world import DEVICES, World


@pytest.mark.parametrize("tokens", [1, 4, 6, 8])
@pytest.mark.parametrize("spilled", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("device", DEVICES)
def test_a_parked_request_goes_on_bit_for_bit(tokens: int, spilled: bool, dtype: torch.dtype, device: str) -> None:
    world = World(dtype=dtype, device=device)
    world.start(0, [1] * tokens, total=12)
    parked, running = world.park(0)
    assert world.keeper.pages_to_resume(parked) == 0
    if spilled:
        world.keeper.spill_parked(parked)
        assert world.pool.free == 12
        assert world.keeper.pages_to_resume(parked) == 3
    world.start(0, [2] * 8)
    world.start(1, [3] * 8)
    world.resume(parked, running, 2)
    world.check()
    world.grow(2, [4] * (12 - tokens))
    world.check()


def test_blank_pages_take_no_unit() -> None:
    """An answer's reservation is far larger than what is written of it."""
    world = World(pages=12, host=2)
    world.start(0, [1] * 6, total=48)
    parked, running = world.park(0)
    assert (world.pool.free, world.keeper.spillable(parked)) == (0, 2)
    assert world.keeper.can_spill(2)
    world.keeper.spill_parked(parked)
    assert world.pool.free == 12
    assert world.keeper.figures().host_used == 2 * world.kv.page_bytes
    world.keeper.spill_parked(parked)
    assert world.keeper.pages_to_resume(parked) == 12, "spilling twice is the same"
    world.resume(parked, running, 1)
    world.check()


def test_parking_never_fails_for_want_of_a_slot() -> None:
    world = World(slots=1)
    for lane in range(3):
        world.start(lane, [lane])
        world.keep(lane)
    all_parked = [world.park(lane) for lane in range(3)]
    for lane, (parked, running) in enumerate(all_parked):
        world.resume(parked, running, 2 - lane)
    world.check()


def test_pages_shared_with_lanes_stay() -> None:
    world = World()
    world.start(0, [1] * 8)
    kept = world.keep(0)
    world.finish(0)
    assert kept is not None
    world.fork(kept, 0, 12)
    world.fork(kept, 1, 12)
    world.grow(1, [2] * 4)
    parked, running = world.park(1)
    assert world.keeper.spillable(parked) == 1
    world.keeper.spill_parked(parked)
    assert world.keeper.pages_to_resume(parked) == 1
    world.check()
    world.finish(0)
    assert world.keeper.spillable(parked) == 2, "the common ones are nobody's but its own and the kept state's now"
    world.keeper.spill_parked(parked)
    assert [held.page for held in kept.held] == [None, None]
    world.check()
    world.resume(parked, running, 2)
    world.check()


def test_parked_siblings_share_their_beginning() -> None:
    """The last that goes on takes the common pages with it."""
    world = World()
    world.start(0, [1] * 8)
    kept = world.keep(0)
    world.finish(0)
    assert kept is not None
    world.fork(kept, 0, 12)
    world.fork(kept, 1, 12)
    world.keeper.clear()
    one, other = world.park(0), world.park(1)
    world.resume(*one, 0)
    world.check()
    world.finish(0)
    assert world.pool.free == 12 - 3
    world.resume(*other, 0)
    world.check()


def test_kept_state_leaves_what_is_parked() -> None:
    world = World(host=0)
    world.start(0, [1] * 8)
    kept = world.keep(0)
    parked, running = world.park(0)
    assert world.keeper.reclaimable == 0
    world.keeper.clear()
    assert kept not in world.alive()
    world.resume(parked, running, 1)
    world.check()


def test_kept_state_in_the_host_tier_gives_way() -> None:
    """Even a person's explicit one: a request under way is worth more than what may be asked for."""
    world = World(host=3)
    world.start(0, [1] * 8)
    kept = world.keep(0, name="mine", explicit=True, ending=True)
    world.finish(0)
    assert kept is not None
    assert world.keeper.reclaim(12)
    world.start(0, [2] * 8)
    parked, running = world.park(0)
    assert world.keeper.can_spill(3)
    assert not world.keeper.can_spill(4)
    world.keeper.spill_parked(parked)
    assert world.alive() == []
    assert world.keeper.can_spill(1)
    assert not world.keeper.can_spill(2), "a parked request never gives way"
    world.resume(parked, running, 0)
    assert world.keeper.can_spill(3)
    world.check()


@pytest.mark.parametrize("host", [0, 1])
def test_no_room_for_what_is_parked(host: int) -> None:
    world = World(host=host)
    world.start(0, [1] * 8, total=12)
    parked, running = world.park(0)
    assert not world.keeper.can_spill(2)
    with pytest.raises(MemoryError, match=f"2 units of the host tier wanted, {host} free"):
        world.keeper.spill_parked(parked)
    assert world.pool.free == 12 - 3
    world.resume(parked, running, 0)
    world.check()


def test_resuming_needs_pages() -> None:
    world = World(pages=4)
    world.start(0, [1] * 8, total=12)
    parked, running = world.park(0)
    world.keeper.spill_parked(parked)
    world.start(1, [2] * 8)
    with pytest.raises(MemoryError, match="3 pages wanted, 2 free"):
        world.keeper.resume(parked, 0)
    world.keeper.check([world.running[1].pages])
    world.finish(1)
    world.resume(parked, running, 0)
    world.check()


@pytest.mark.parametrize("spilled", [False, True])
def test_a_parked_request_that_is_cancelled(spilled: bool) -> None:
    world = World()
    world.start(0, [1] * 6, total=12)
    parked, _ = world.park(0)
    if spilled:
        world.keeper.spill_parked(parked)
    world.keeper.discard(parked)
    world.keeper.check([])
    assert world.pool.free == 12
    assert world.keeper.figures().host_used == 0


def test_figures() -> None:
    world = World()
    world.start(0, [1] * 6, total=12)
    parked, running = world.park(0)
    world.keeper.spill_parked(parked)
    world.resume(parked, running, 0)
    found = world.keeper.figures()
    assert (found.parks, found.resumes, found.spills, found.restores) == (1, 1, 1, 1)
