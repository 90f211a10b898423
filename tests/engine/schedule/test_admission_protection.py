"""Nobody starves: examples of who may pass one that waits for room, and who may not."""

from __future__ import annotations

import pytest

from engine.schedule.policy import Action, Need, Park, Resume, Start
from tests.engine.schedule.machine import Machine


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_those_who_end_in_time_pass_and_others_do_not(machine: Machine) -> None:
    machine.runs("donor", 60, ends=20)
    machine.asks("big", 90, seconds=5)
    machine.asks("long", 30, seconds=21)
    machine.asks("short", 30, seconds=20)
    assert machine.step() == [Start("short")]
    assert machine.policy.protected == {"big"}
    machine.running.clear()
    assert machine.step(now=20) == [Start("big")]
    assert machine.policy.protected == {"long"}


def test_those_who_fit_beside_pass_however_long_they_are(machine: Machine) -> None:
    machine.runs("donor", 60, ends=20)
    machine.asks("big", 80, seconds=5)
    machine.asks("too much", 21, seconds=1000)
    machine.asks("beside", 20, seconds=1000)
    machine.asks("nothing left", 1, seconds=1000)
    assert machine.step() == [Start("beside")]
    del machine.running["donor"]
    assert machine.step(now=20) == [Start("big")]


def test_a_protection_keeps_a_lane_too() -> None:
    machine = Machine(lanes=2)
    machine.runs("donor", 60, ends=20)
    machine.asks("big", 50)
    machine.asks("takes the free lane", 1, seconds=1000)
    machine.asks("would take the donor's", 1, seconds=1000)
    assert machine.step() == [Start("takes the free lane")]
    del machine.running["donor"]
    assert machine.step(now=20) == [Start("big")]


def test_agents_do_not_take_what_a_person_waits_for(machine: Machine) -> None:
    """They would have to be parked again at once."""
    machine.runs("donor", 60, ends=20)
    machine.asks("big", 80)
    machine.asks("agent 1", 30, seconds=100, kind="agent")
    machine.asks("agent 2", 20, seconds=100, kind="agent")
    machine.asks("agent 3", 20, seconds=20, kind="agent")
    assert machine.step() == [Start("agent 2"), Start("agent 3")]


def test_the_start_is_frozen_when_estimates_move(machine: Machine) -> None:
    """Otherwise short requests could pass for ever."""
    machine.runs("donor", 60, ends=20)
    machine.asks("big", 90)
    assert machine.step() == []
    machine.runs("donor", 60, ends=500)
    machine.asks("short", 30, seconds=20)
    assert machine.step(now=1) == []


def test_an_end_that_is_past_lets_nobody_pass_on_time(machine: Machine) -> None:
    machine.runs("late", 60, ends=5)
    machine.asks("big", 90)
    machine.asks("short", 30, seconds=0.5)
    machine.asks("beside", 10, seconds=100)
    assert machine.step(now=50) == [Start("beside")]


def test_passers_that_overrun_delay_the_protected_one_but_let_nobody_in(machine: Machine) -> None:
    machine.runs("donor", 60, ends=20)
    machine.asks("big", 90)
    machine.asks("short", 30, seconds=20)
    assert machine.step() == [Start("short")]
    del machine.running["donor"]
    for now in range(20, 60, 10):
        machine.asks(f"later {now}", 60, seconds=1)
        assert machine.step(now) == []
    del machine.running["short"]
    assert machine.step(60) == [Start("big")]


def test_a_big_agent_is_not_passed_over_while_people_come_and_go(machine: Machine) -> None:
    """Its protection lasts while more urgent requests are served, and while one of them has its own."""
    machine.runs("donor", 50, ends=20)
    machine.asks("big agent", 80, kind="agent")
    machine.asks("small agent 0", 25, seconds=100, kind="agent")
    assert machine.step() == []
    for now in range(1, 20):
        machine.asks(f"person {now}", 60, seconds=1)
        machine.asks(f"small agent {now}", 25, seconds=100, kind="agent")
        assert machine.step(now) == []
        assert machine.policy.protected == {"person 1", "big agent"}
    started: list[Action] = []
    del machine.running["donor"]
    for now in range(20, 40):
        started += machine.step(now)
        machine.running.clear()
    people = [Start(f"person {number}") for number in range(1, 20)]
    assert started[:20] == [*people, Start("big agent")]


def test_a_parked_agent_keeps_its_place_in_line(machine: Machine) -> None:
    """One that was let past a protected agent does not get before it by being parked."""
    machine.runs("donor", 70, ends=20)
    machine.asks("first", 90, kind="agent")
    machine.asks("second", 20, seconds=15, kind="agent")
    machine.asks("third", 20, kind="agent")
    assert machine.step() == [Start("second")]
    machine.asks("person", 30, seconds=30)
    assert machine.step(now=1) == [Park("second"), Start("person")]
    machine.running.clear()
    assert machine.step(now=20) == [Start("first")]
    machine.running.clear()
    assert machine.step(now=30) == [Resume("second"), Start("third")]


def test_an_agent_whose_place_outside_comes_and_goes_is_kept_room_for(machine: Machine) -> None:
    """Room for it as one that cannot be parked, once that has been so: here, the reserve beside it."""
    machine.runs("donor", 60, ends=20, kind="agent", parkable=False)
    machine.asks("big", 70, kind="agent")
    assert machine.step() == []
    machine.needs["big"] = Need(70, 10, parkable=False)
    assert machine.step() == []
    machine.needs["big"] = Need(70, 10)
    machine.asks("small", 10, seconds=100, kind="agent", parkable=False)
    assert machine.step() == []
    del machine.running["donor"]
    assert machine.step(now=20) == [Start("big"), Start("small")]
