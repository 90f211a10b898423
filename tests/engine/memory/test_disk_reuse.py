"""States from a keeper to the disk tier and back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.memory.prefix_hash import prefix_chain
from tests.engine.memory.test_disk_tier import PROMPT, tier
from tests.engine.memory.world import DEVICES, SIZE, World


@pytest.mark.parametrize(("host", "evicted"), [(0, [4, 10, 7]), (3, [4, 10])])
@pytest.mark.parametrize("device", DEVICES)
def test_what_is_evicted_comes_back_bit_for_bit(tmp_path: Path, host: int, evicted: list[int], device: str) -> None:
    """Over a restart, on and off a page's edge, from the pool and from the host tier."""
    prompts = {4: [0] * 4, 10: [1] * 10, 7: [2] * 7}
    with tier(tmp_path) as disk:
        world = World(host=host, disk=disk, device=device)
        for ids in prompts.values():
            world.start(0, ids)
            world.keep(0, ending=True, last=world.running[0].last, request_class="agent")
            world.finish(0)
        remembered = {kept.key: what for kept, what in world.kept.items()}
        assert world.keeper.reclaim(12)
        assert disk.wait_idle(10)
        assert world.keeper.figures().disk_used == disk.used_bytes > 0
        world.keeper.clear()
    with tier(tmp_path) as disk:
        world = World(host=host, disk=disk, device=device)
        assert len(list(disk.folder.glob("*.json"))) == len(evicted), "what is cleared is gone"
        for tokens in evicted:
            ids = prompts[tokens]
            stored = disk.fetch(ids, prefix_chain(ids, SIZE), limit=tokens)
            assert stored is not None
            kept = world.keeper.adopt(stored)
            assert kept is not None
            world.kept[kept] = remembered[kept.key]
            assert world.find(ids) is kept
            assert kept.request_class == "agent"
            running = world.fork(kept, 0, len(ids) + 3)
            assert world.read(0, running.pages, kept.tokens) == remembered[kept.key][0]
            world.check()
            world.finish(0)


def test_what_is_kept_outlives_the_process_too(tmp_path: Path) -> None:
    world = World()
    world.keeper.save()  # without a disk tier there is nothing to do
    with tier(tmp_path) as disk:
        world = World(disk=disk)
        for ids in ([1] * 5, [2] * 6, [3] * 9):
            world.start(0, ids)
            world.keep(0, ending=True)
            world.finish(0)
        world.keeper.reclaim(9)  # wherever they lie
        world.keeper.save()
        assert len(world.alive()) == 3
        world.check()
    with tier(tmp_path) as disk:
        for ids in ([1] * 5, [2] * 6, [3] * 9):
            found = disk.fetch([*ids, 0], prefix_chain([*ids, 0], SIZE), limit=99)
            assert found is not None
            assert found.tokens == len(ids)


def test_dropped_and_keyless_states_are_not_written(tmp_path: Path) -> None:
    with tier(tmp_path) as disk:
        world = World(host=0, disk=disk)
        for key in (b"k" * 16, None):
            world.start(0, PROMPT)
            world.keep(0, ending=True, explicit=True, name="mine", key=key)
            world.finish(0)
            if key:
                world.keeper.drop("mine")
        assert world.keeper.reclaim(12)
        assert world.alive() == []
        assert disk.wait_idle(10)
        assert disk.used_bytes == 0


def test_states_of_another_shape_are_not_adopted() -> None:
    world = World()
    world.start(0, PROMPT)
    kept = world.keep(0, last=world.running[0].last)
    assert kept is not None
    assert kept.key is not None
    stored = world.keeper._stored(kept, kept.key)
    assert world.keeper.adopt(stored) is kept, "it is there"
    world.keeper.clear()
    assert stored.last is not None
    for wrong in (
        replace(stored, kv=stored.kv[:1]),
        replace(stored, kv=stored.kv[:, :, :-1]),
        replace(stored, kv=stored.kv.to(torch.bfloat16)),
        replace(stored, conv=stored.conv[:, :1]),
        replace(stored, recurrent=stored.recurrent[..., :1]),
        replace(stored, last=stored.last[:, :1]),
    ):
        assert world.keeper.adopt(wrong) is None
    world.check()
    again = world.keeper.adopt(stored)
    assert again is not None
    world.kept[again] = world.kept[kept]
    world.check()


def test_adopting_takes_no_explicit_states_place() -> None:
    world = World(pages=4, slots=2, host=0)
    world.start(0, PROMPT)
    kept = world.keep(0, ending=True)
    world.finish(0)
    assert kept is not None
    assert kept.key is not None
    stored = world.keeper._stored(kept, kept.key)
    world.keeper.clear()
    world.start(0, [5] * 8)
    mine = world.keep(0, ending=True, explicit=True, name="mine")
    world.finish(0)
    assert world.keeper.adopt(stored) is None, "pages"
    assert world.alive() == [mine]
    world.keeper.clear()
    for name in "ab":
        world.start(0, [5])
        world.keep(0, ending=True, explicit=True, name=name, key=None)
        world.finish(0)
    assert world.keeper.adopt(stored) is None, "slots"
    assert len(world.alive()) == 2


@pytest.mark.parametrize("better", [{}, {"request_class": "agent", "explicit": True, "name": "mine"}])
def test_adopting_takes_no_better_states_units(better: dict[str, Any]) -> None:
    """What is better in the order, or explicit, keeps its units; the adopted one goes to the pool."""
    world = World(host=2)
    world.start(0, PROMPT[:8])
    kept = world.keep(0, ending=True, request_class="interactive" if better else "agent")
    world.finish(0)
    assert kept is not None
    assert kept.key is not None
    stored = world.keeper._stored(kept, kept.key)
    world.keeper.clear()
    world.start(0, [5] * 8)
    other = world.keep(0, ending=True, **better)
    world.finish(0)
    assert other is not None
    assert world.keeper.reclaim(12)
    again = world.keeper.adopt(stored)
    assert again is not None
    world.kept[again] = world.kept[kept]
    assert world.alive() == [other, again]
    assert [held.page is None for held in (*other.held, *again.held)] == [True, True, False, False]
    world.check()
