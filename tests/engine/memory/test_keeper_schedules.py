"""Lanes, kept states and parked requests under any sequence of calls: nothing leaks, every byte stays what it was."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from engine.memory.kept import Kept, Parked
from engine.memory.stored import StoredState
from engine.messages import PAGE_FREE, PAGE_KEPT, PAGE_PARKED, PAGE_SHARED, BusyError
from tests.engine.memory.world import SIZE, Lane, World

IDS = st.lists(st.integers(0, 1), min_size=1, max_size=18)
"""Two tokens only, so that prompts share beginnings; some are drawn to go on from others."""
PICTURES = st.sampled_from([(), (), ((0, b"a"),), ((0, b"b"),), ((5, b"a"),)])
LANES = st.integers(0, 2)
CLASSES = st.sampled_from(["interactive", "agent"])


class KeeperMachine(RuleBasedStateMachine):
    @initialize(
        pages=st.integers(5, 16),
        slots=st.integers(1, 4),
        host=st.sampled_from([0, 2, 5, 12]),
        prompts=st.lists(st.tuples(IDS, CLASSES, st.booleans()), min_size=3, max_size=6),
    )
    def begin(self, pages: int, slots: int, host: int, prompts: list[tuple[list[int], str, bool]]) -> None:
        """Some requests have come and gone, the last one runs."""
        self.world = World(pages=pages, lanes=3, slots=slots, host=host)
        self.parked: list[tuple[Parked, Lane]] = []
        self.shelved: list[tuple[StoredState, tuple]] = []
        """Copies of states as the disk tier would hold them."""
        for ids, request_class, last in prompts:
            if self.world.running:
                self.keep(0, request_class, last, True)
            self.admit(ids, (), 3)

    @property
    def idle_lanes(self) -> list[int]:
        return [lane for lane in range(3) if lane not in self.world.running]

    def lane(self, number: int) -> int:
        """One of the running lanes."""
        return list(self.world.running)[number % len(self.world.running)]

    def frozen(self) -> tuple:
        """Everything that a call in vain must leave as it is."""
        keeper = self.world.keeper
        return self.world.pool.references(), self.world.alive(), keeper.figures(), keeper._host.units.references()

    # --- requests ----------------------------------------------------------------------------------------------

    @precondition(lambda self: self.idle_lanes and self.world.alive())
    @rule(number=st.integers(0, 3), ids=IDS, answer=st.integers(0, 9))
    def continue_one(self, number: int, ids: list[int], answer: int) -> None:
        """A prompt that goes on from a kept one."""
        alive = self.world.alive()
        _, before, pictures, _ = self.world.kept[alive[number % len(alive)]]
        self.admit([*before, *ids][:18], pictures, answer)

    @precondition(lambda self: self.idle_lanes)
    @rule(ids=IDS, pictures=PICTURES, answer=st.integers(0, 9))
    def admit(self, ids: list[int], pictures: tuple, answer: int) -> None:
        """Start a request as the scheduler does: from the longest kept prefix, with room made beside it."""
        world, lane = self.world, self.idle_lanes[0]
        kept, expected = world.find(ids, pictures), self.longest(ids, pictures)
        assert (kept and kept.tokens) == (expected and expected.tokens)
        total = len(ids) + answer
        needed = world.keeper.pages_for(kept, total)
        before = self.frozen()
        room = world.pool.free + world.keeper.reclaimable
        if not world.keeper.reclaim(needed, spare=kept):
            assert self.frozen() == before, "nothing is given up in vain"
            assert kept is not None or room < needed
            return
        assert kept is None or kept in world.alive()
        if kept is None:
            world.start(lane, ids, total=total, pictures=pictures)
            world.keeper.count_miss()
        else:
            running = world.fork(kept, lane, total)
            assert world.read(lane, running.pages, kept.tokens) == world.kept[kept][0]
            world.grow(lane, ids[kept.tokens :])

    def longest(self, ids: list[int], pictures: tuple) -> Kept | None:
        """What may be found, by comparing tokens."""
        found = None
        for kept in self.world.alive():
            _, own, own_pictures, last = self.world.kept[kept]
            inside = tuple(picture for picture in pictures if picture[0] < kept.tokens)
            own_inside = tuple(picture for picture in own_pictures if picture[0] < kept.tokens)
            same = tuple(ids[: kept.tokens]) == own and inside == own_inside and kept.key is not None
            if same and (kept.tokens < len(ids) or last is not None) and (not found or kept.tokens > found.tokens):
                found = kept
        return found

    @precondition(lambda self: self.world.running)
    @rule(number=LANES, ids=IDS)
    def go_on(self, number: int, ids: list[int]) -> None:
        """Tokens within what was reserved."""
        running = self.world.running[self.lane(number)]
        self.world.grow(self.lane(number), ids[: len(running.pages) * SIZE - len(running.ids)])

    @precondition(lambda self: self.world.running)
    @rule(number=LANES, request_class=CLASSES, last=st.booleans(), ends=st.booleans())
    def keep(self, number: int, request_class: str, last: bool, ends: bool) -> None:
        lane = self.lane(number)
        running = self.world.running[lane]
        before = self.world.keeper.figures()
        explicit = [kept for kept in self.world.alive() if kept.explicit]
        kept = self.world.keep(lane, request_class=request_class, last=running.last if last else None, ending=ends)
        assert [kept for kept in self.world.alive() if kept.explicit] == explicit
        if kept is None:
            full = all(kept.explicit for kept in self.world.alive()) and before.kept == self.world.slots
            assert full or (self.world.pool.free == 0 and len(running.ids) % SIZE and not ends)
        if ends:
            self.world.finish(lane)

    @precondition(lambda self: self.world.running)
    @rule(
        number=LANES,
        name=st.sampled_from("abc"),
        request_class=CLASSES,
        layers=st.sampled_from([None, None, 2]),
        ends=st.booleans(),
    )
    def retain(self, number: int, name: str, request_class: str, layers: int | None, ends: bool) -> None:
        lane = self.lane(number)
        options: dict[str, Any] = {
            "name": name,
            "request_class": request_class,
            "layers": layers,
            "ending": ends,
            "explicit": True,
        }
        try:
            kept = self.world.keep(lane, **options)
        except BusyError:
            assert not ends
            assert self.world.pool.free == 0
        else:
            assert kept is not None
            assert self.world.keeper.get(name) is kept
            assert (kept.key is None) == (layers is not None)
        if ends:
            self.world.finish(lane)

    @precondition(lambda self: self.world.running)
    @rule(number=LANES)
    def finish(self, number: int) -> None:
        self.world.finish(self.lane(number))

    # --- parking -----------------------------------------------------------------------------------------------

    @precondition(lambda self: self.world.running and len(self.parked) < 3)
    @rule(number=LANES)
    def park(self, number: int) -> None:
        before = self.world.pool.free
        self.parked.append(self.world.park(self.lane(number)))
        assert self.world.pool.free == before
        assert self.world.keeper.pages_to_resume(self.parked[-1][0]) == 0

    @precondition(lambda self: self.parked)
    @rule(number=st.integers(0, 2))
    def spill(self, number: int) -> None:
        parked, _ = self.parked[number % len(self.parked)]
        keeper = self.world.keeper
        count, free, owed = keeper.spillable(parked), self.world.pool.free, keeper.pages_to_resume(parked)
        if count and not keeper.can_spill(count):
            before = self.frozen()
            with pytest.raises(MemoryError, match="units of the host tier wanted"):
                keeper.spill_parked(parked)
            assert self.frozen() == before
            return
        blank = len(parked.blank)
        keeper.spill_parked(parked)
        assert self.world.pool.free >= free + count + blank  # more where kept states gave way
        assert keeper.pages_to_resume(parked) == owed + count + blank
        assert keeper.spillable(parked) == 0

    @precondition(lambda self: self.parked and self.idle_lanes)
    @rule(number=st.integers(0, 2))
    def resume(self, number: int) -> None:
        parked, running = self.parked[number % len(self.parked)]
        needed = self.world.keeper.pages_to_resume(parked)
        if not self.world.keeper.reclaim(needed):
            before = self.frozen()
            with pytest.raises(MemoryError, match="pages wanted"):
                self.world.keeper.resume(parked, self.idle_lanes[0])
            assert self.frozen() == before
            return
        self.parked.remove((parked, running))
        self.world.resume(parked, running, self.idle_lanes[0])

    @precondition(lambda self: self.parked)
    @rule(number=st.integers(0, 2))
    def discard(self, number: int) -> None:
        parked, _ = self.parked.pop(number % len(self.parked))
        self.world.keeper.discard(parked)

    # --- making room -------------------------------------------------------------------------------------------

    @rule(pages=st.integers(0, 16), spare=st.integers(0, 8))
    def reclaim(self, pages: int, spare: int) -> None:
        alive = self.world.alive()
        spared = alive[spare] if spare < len(alive) else None
        before, content = self.frozen(), spared and [(held.page, held.unit) for held in spared.held]
        room = self.world.pool.free + self.world.keeper.reclaimable
        done = self.world.keeper.reclaim(pages, spare=spared)
        assert done == (self.world.pool.free >= pages)
        assert done or spared or room < pages
        if not done:
            assert self.frozen() == before
        if spared is not None:
            assert spared in self.world.alive()
            assert [(held.page, held.unit) for held in spared.held] == content

    @rule(name=st.sampled_from("abc"))
    def drop(self, name: str) -> None:
        self.world.keeper.drop(name)
        assert self.world.keeper.get(name) is None

    @precondition(lambda self: len(self.world.alive()) == self.world.slots and not self.world.running)
    @rule()
    def clear(self) -> None:
        self.world.keeper.clear()
        assert self.world.keeper.figures().kept == self.world.keeper.reclaimable == 0

    # --- to files and back -------------------------------------------------------------------------------------

    @rule(number=st.integers(0, 8))
    def shelve(self, number: int) -> None:
        found = [kept for kept in self.world.alive() if kept.key is not None]
        if found:
            kept = found[number % len(found)]
            assert kept.key is not None
            self.shelved.append((self.world.keeper._stored(kept, kept.key), self.world.kept[kept]))

    @precondition(lambda self: self.shelved)
    @rule(number=st.integers(0, 8))
    def adopt(self, number: int) -> None:
        stored, what = self.shelved[number % len(self.shelved)]
        before = self.world.alive()
        kept = self.world.keeper.adopt(stored)
        if kept is not None and kept not in before:
            self.world.kept[kept] = what

    # --- at any time -------------------------------------------------------------------------------------------

    @invariant()
    def all_is_what_it_was(self) -> None:
        self.world.check()

    @invariant()
    def parked_requests_are_what_they_were(self) -> None:
        for parked, running in self.parked:
            assert parked.tokens == parked.rope_delta == len(running.ids)
            content = running.content
            found = content.kv.new_full(content.kv.shape, float("nan"))
            for held, tokens in zip(parked.held, found.split(SIZE, dim=2), strict=True):
                self.world.keeper._held.read(held, tokens)
            assert found.equal(content.kv)
            shelf = self.world.keeper._shelf
            assert all(map(lambda a, b: a.equal(b), shelf.slot(parked.slot), (content.conv, content.recurrent)))

    @invariant()
    def pages_are_whose_the_map_says(self) -> None:
        world, owners = self.world, self.world.keeper.owners()
        lanes = {page for lane in world.running.values() for page in lane.pages}
        parked = {held.page for state, _ in self.parked for held in state.held}
        parked |= {page for state, _ in self.parked for page in state.blank}
        kept = {held.page for state in world.alive() for held in state.held}
        for page in range(world.pool.total):
            holders = (page in lanes) + (page in parked) + (page in kept)
            alone = PAGE_PARKED if page in parked else PAGE_KEPT if page in kept else PAGE_FREE
            assert owners[page] == (PAGE_SHARED if holders > 1 else alone)
        only_kept = len(kept - lanes - parked - {None})
        assert world.keeper.reclaimable == world.keeper.figures().kept_pages == only_kept

    def teardown(self) -> None:
        for lane in list(self.world.running):
            self.world.finish(lane)
        for parked, _ in self.parked:
            self.world.keeper.discard(parked)
        self.world.keeper.clear()
        self.world.keeper.check([])
        assert self.world.pool.free == self.world.pool.total
        units = self.world.keeper._host.units
        assert units.free == units.total


TestKeeper = KeeperMachine.TestCase
TestKeeper.settings = settings(deadline=None, max_examples=250, stateful_step_count=40)
