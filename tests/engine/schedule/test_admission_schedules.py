"""Admission over random schedules, on a simulated clock; :mod:`tests.engine.schedule.world` checks the promises."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from random import Random
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from engine.messages import RequestClass
from tests.engine.schedule.world import Job, World

PAGES = 24
KINDS: st.SearchStrategy[RequestClass] = st.sampled_from(["interactive", "agent"])


def worlds(outside: st.SearchStrategy[int | None]) -> st.SearchStrategy[World]:
    return st.builds(World, lanes=st.integers(1, 5), pages=st.just(PAGES), reserve=st.integers(0, 8), outside=outside)


@dataclass(frozen=True)
class Event:
    """A job arrives ``after`` seconds; ``cancel`` seconds later it is given up, if it is there still."""

    after: int
    job: Job
    cancel: int | None = None


def play(world: World, events: Iterable[Event], kinds: Collection[str] = get_args(RequestClass)) -> World:
    """Run a schedule to its end; without the requests of other kinds."""
    clock = 0
    moments: list[tuple[int, int, Job | str]] = []
    for number, event in enumerate(events):
        clock += event.after
        if event.job.kind not in kinds:
            continue
        job = replace(event.job, id=f"{event.job.kind} {number}")
        moments.append((clock, number, job))
        if event.cancel is not None:
            moments.append((clock + event.cancel, number, job.id))
    for time, _, what in sorted(moments, key=lambda moment: moment[:2]):
        world.wait(time - world.now)
        if isinstance(what, Job):
            world.arrive(what)
        elif what in world.held:
            world.cancel(what)
    world.drain()
    return world


def jobs(kinds: st.SearchStrategy[RequestClass] = KINDS, movable: bool | None = None) -> st.SearchStrategy[Job]:
    """Jobs whose estimates are too high, too low, or move along."""
    return st.builds(
        Job,
        id=st.just(""),
        kind=kinds,
        pages=st.one_of(st.integers(0, 6), st.integers(0, PAGES)),
        work=st.one_of(st.integers(1, 8), st.integers(1, 60)),
        estimate=st.one_of(st.integers(0, 8), st.integers(1, 60)),
        movable=st.booleans() if movable is None else st.just(movable),
        drift=st.sampled_from([0, 0, 0, 1, 5]),
    )


def schedules(job: st.SearchStrategy[Job]) -> st.SearchStrategy[list[Event]]:
    gone = st.one_of(st.none(), st.none(), st.integers(0, 30))
    event = st.builds(Event, st.sampled_from([0, 0, 0, 1, 2, 5]), job, gone)
    # Lists are short when left alone, and short ones keep nobody waiting.
    return st.one_of(st.lists(event, min_size=1, max_size=12), st.lists(event, min_size=16, max_size=24))


def right(job: st.SearchStrategy[Job]) -> st.SearchStrategy[Job]:
    """The same jobs, with estimates that are right."""
    return job.map(lambda job: replace(job, estimate=job.work, drift=0))


ANY_OUTSIDE = st.one_of(st.none(), st.integers(0, PAGES))


@settings(max_examples=70)
@given(worlds(ANY_OUTSIDE), schedules(jobs()))
def test_whatever_happens_no_promise_is_broken_and_all_end(world: World, events: list[Event]) -> None:
    play(world, events)


@settings(max_examples=70)
@given(worlds(ANY_OUTSIDE), schedules(right(jobs())))
def test_nobody_is_late_when_estimates_are_right(world: World, events: list[Event]) -> None:
    play(world, events)
    assert not world.overruns


@settings(max_examples=60)
@given(worlds(st.none()), schedules(right(jobs(st.just("agent")))))
def test_agents_among_themselves_are_not_late_either(world: World, events: list[Event]) -> None:
    play(world, events)
    assert world.parks == 0


@settings(max_examples=70)
@given(st.integers(1, 5), st.integers(0, 8), schedules(jobs(movable=True)))
def test_people_are_served_as_if_there_were_no_agents(lanes: int, reserve: int, events: list[Event]) -> None:
    """Whatever the agents do, however many they are and however wrong the estimates."""
    mixed = play(World(lanes, PAGES, reserve), events)
    alone = play(World(lanes, PAGES, reserve), events, kinds={"interactive"})
    assert alone.started == {name: time for name, time in mixed.started.items() if name in alone.started}
    assert alone.ended == {name: time for name, time in mixed.ended.items() if name in alone.ended}


@pytest.mark.parametrize("estimates", ["right", "from above", "wrong"])
def test_busy_days(estimates: str) -> None:
    """Hundreds of requests, more than there is room for, on eight lanes."""
    days = [busy_day(Random(seed), estimates) for seed in range(20)]
    assert all(day.overruns == (estimates == "wrong") for day in days)
    # It was busy indeed.
    assert sum(len(day.protected) for day in days) > 300
    assert sum(day.passed for day in days) > 300
    assert sum(day.parks for day in days) > 300


def busy_day(random: Random, estimates: str) -> World:
    pauses = random.choice([[0, 1, 5, 20], [0, 10, 30]])
    events = []
    for _ in range(150):
        work = random.choice([random.randint(1, 10), random.randint(10, 200)])
        estimate = {
            "right": work,
            "from above": work + random.randint(0, 100),
            "wrong": random.choice([work // 4, work // 2, work, 4 * work]),
        }[estimates]
        job = Job(
            id="",
            kind=random.choice(["interactive", "agent"]),
            pages=random.choice([random.randint(1, 10), random.randint(1, 60)]),
            work=work,
            estimate=estimate,
            movable=random.random() < 0.8,
            drift=random.choice([0, 3, 30]) if estimates == "wrong" else 0,
        )
        events.append(Event(random.choice(pauses), job, random.choice([None, None, None, random.randint(0, 200)])))
    return play(World(8, 100, 13, outside=120), events)


class Admission(RuleBasedStateMachine):
    """People and agents come, change their minds, or stay."""

    @initialize(world=worlds(ANY_OUTSIDE))
    def begin(self, world: World) -> None:
        self.world = world
        self.number = 0

    @rule(job=jobs())
    def arrive(self, job: Job) -> None:
        self.number += 1
        self.world.arrive(replace(job, id=f"{job.kind} {self.number}"))

    @rule(seconds=st.integers(1, 20))
    def wait(self, seconds: int) -> None:
        self.world.wait(seconds)

    @precondition(lambda self: self.world.held)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        self.world.cancel(data.draw(st.sampled_from(sorted(self.world.held))))

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.drain()


TestAdmission = Admission.TestCase
TestAdmission.settings = settings(max_examples=40, stateful_step_count=40)
