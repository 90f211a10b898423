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
    machine.asks("beside", 10, seconds=100)
    assert machine.step() == [Start("beside")]
    machine.runs("donor", 60, ends=500)
    machine.asks("short", 30, seconds=20)
    assert machine.step(now=1) == []


def test_those_who_pass_on_time_take_nothing_from_those_who_pass_beside(machine: Machine) -> None:
    machine.runs("donor", 40, ends=20)
    machine.asks("big", 90)
    machine.asks("short", 10, seconds=20)
    machine.asks("long", 10, seconds=100)
    assert machine.step() == [Start("short"), Start("long")]
    del machine.running["donor"], machine.running["short"]
    assert machine.step(now=20) == [Start("big")]


def test_one_that_was_to_be_over_may_come_back_for_longer(machine: Machine) -> None:
    """Then it takes the place beside the protected request."""
    machine.runs("donor", 40, ends=20)
    machine.asks("big", 90)
    machine.asks("agent", 10, seconds=20, kind="agent")
    assert machine.step() == [Start("agent")]
    machine.asks("person", 55, seconds=5)
    assert machine.step() == [Park("agent"), Start("person")]
    machine.needs["agent"] = Need(10, 100)
    machine.asks("second agent", 10, seconds=100, kind="agent")
    del machine.running["person"]
    assert machine.step(now=5) == [Resume("agent")]


def test_the_start_moves_when_what_it_was_reckoned_with_is_gone() -> None:
    """Later only: whoever was let past until then must not be too late afterwards."""
    machine = Machine(lanes=5)
    machine.runs("donor", 30, ends=20)
    machine.runs("agent 1", 20, ends=40, kind="agent")
    machine.runs("agent 2", 10, ends=40, kind="agent")
    machine.asks("big", 100)
    assert machine.step() == []
    machine.runs("agent 2", 10, ends=5, kind="agent", parkable=False)
    assert machine.step(now=1) == [], "it has to wait for this agent as well, but that ends before the donor"
    machine.asks("until 20", 10, seconds=18)
    machine.asks("until 40", 10, seconds=38)
    assert machine.step(now=2) == [Start("until 20")]
    machine.runs("agent 1", 20, ends=40, kind="agent", parkable=False)
    assert machine.step(now=2) == [Start("until 40")]


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


def test_an_agent_waits_for_the_person_before_it_and_is_passed_accordingly(machine: Machine) -> None:
    """The person starts at 20 and ends at 50; not before then is there room for the agent."""
    machine.runs("donor", 60, ends=20)
    machine.asks("person", 80, seconds=30)
    machine.asks("agent", 90, kind="agent")
    machine.asks("until 51", 20, seconds=51, kind="agent")
    machine.asks("until 50", 20, seconds=50, kind="agent")
    assert machine.step() == [Start("until 50")]
    assert machine.policy.protected == {"person", "agent"}


def test_beside_an_agent_that_must_leave_the_reserve(machine: Machine) -> None:
    """One that can be parked is within reach itself."""
    machine.runs("donor", 60, ends=20, kind="agent", parkable=False)
    machine.asks("big", 70, kind="agent", parkable=False)
    machine.asks("stays", 10, seconds=100, kind="agent", parkable=False)
    machine.asks("moves", 10, seconds=100, kind="agent")
    assert machine.step() == [Start("moves")]
    del machine.running["donor"]
    assert machine.step(now=20) == [Start("big")]


def test_an_agent_whose_place_outside_comes_and_goes_is_kept_room_for(machine: Machine) -> None:
    """Room for it as one that cannot be parked, once that has been so: here, the reserve beside it."""
    machine.runs("donor", 60, ends=20, kind="agent", parkable=False)
    machine.asks("big", 70, kind="agent")
    assert machine.step() == []
    machine.needs["big"] = Need(70, 10, parkable=False)
    machine.asks("bigger", 80, kind="agent")
    assert machine.step() == []
    machine.needs["big"] = Need(70, 10)
    machine.asks("small", 10, seconds=100, kind="agent", parkable=False)
    assert machine.step() == []
    del machine.running["donor"]
    assert machine.step(now=20) == [Start("big"), Start("small")]
