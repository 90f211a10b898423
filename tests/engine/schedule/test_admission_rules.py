"""Admission by example: who waits, who runs, what is free, and what is done next."""

from __future__ import annotations

import pytest

from engine.schedule.policy import Need, Park, Policy, Resume, Room, Running, Start, Waiting
from tests.engine.schedule.machine import Machine


@pytest.fixture
def machine() -> Machine:
    return Machine()


# --- order ---------------------------------------------------------------------------------------------------


def test_nothing_waits_nothing_is_done(machine: Machine) -> None:
    machine.runs("a")
    assert machine.next() is None


def test_interactive_before_agents_and_first_come_first_served(machine: Machine) -> None:
    machine.asks("agent 1", kind="agent")
    machine.asks("person 1")
    machine.asks("agent 2", kind="agent")
    machine.asks("person 2")
    assert machine.step() == [Start("person 1"), Start("person 2"), Start("agent 1"), Start("agent 2")]


def test_those_who_came_at_the_same_moment_are_served_in_the_order_they_were_added(machine: Machine) -> None:
    for name in ("first", "second", "third"):
        machine.needs[name] = Need(10, 10)
        machine.policy.add(Waiting(name, "interactive", name, 0))
    assert machine.step() == [Start("first"), Start("second"), Start("third")]


def test_waiting_is_told_in_the_order_of_service(machine: Machine) -> None:
    machine.asks("agent", kind="agent")
    machine.asks("person")
    assert [w.id for w in machine.policy.waiting()] == ["person", "agent"]


# --- promise 1: a person does not wait for agents ------------------------------------------------------------


def test_an_agent_is_parked_for_a_person_and_goes_on_afterwards(machine: Machine) -> None:
    for number in range(4):
        machine.runs(f"agent {number}", kind="agent", since=number)
    machine.asks("person")
    assert machine.step() == [Park("agent 3"), Start("person")]
    assert [w.id for w in machine.policy.parked()] == ["agent 3"]
    assert machine.step() == []
    del machine.running["person"]
    assert machine.step() == [Resume("agent 3")]


def test_the_least_recently_active_is_parked_then_the_smallest_then_the_youngest(machine: Machine) -> None:
    machine.runs("idle and big", 40, kind="agent", active=6.0)
    machine.runs("small and old", 10, kind="agent", active=9.9, since=1)
    machine.runs("small and young", 10, kind="agent", active=9.2, since=2)
    machine.runs("bigger", 20, kind="agent", active=9.1, since=3)
    for number in range(4):
        machine.asks(f"person {number}")
    parked = [action.id for action in machine.step(now=10) if isinstance(action, Park)]
    assert parked == ["idle and big", "small and young", "small and old", "bigger"]


def test_as_many_as_it_takes_are_parked_and_no_more(machine: Machine) -> None:
    machine.runs("5", 5, kind="agent")
    machine.runs("30", 30, kind="agent")
    machine.runs("40", 40, kind="agent")
    machine.asks("person", 65)
    assert machine.step() == [Park("40"), Start("person")], "with the big one moved out, the small ones may stay"
    machine.asks("second person", 20)
    machine.asks("third person", 10)
    assert machine.step() == [Park("30"), Start("second person"), Start("third person")]


def test_of_several_the_one_that_loses_least_is_parked_first(machine: Machine) -> None:
    for pages in (30, 20, 10):
        machine.runs(str(pages), pages, kind="agent")
    machine.asks("person", 75)
    assert machine.step() == [Park("10"), Park("30"), Start("person")]


def test_nobody_is_parked_in_vain(machine: Machine) -> None:
    machine.runs("other person", 50)
    machine.runs("agent", 40, kind="agent")
    machine.asks("person", 60)
    assert machine.next() is None


def test_an_agent_that_cannot_be_moved_out_is_not_parked(machine: Machine) -> None:
    for number in range(4):
        machine.runs(f"agent {number}", kind="agent", parkable=number == 1)
    machine.asks("person 1")
    machine.asks("person 2")
    assert machine.step() == [Park("agent 1"), Start("person 1")]


def test_people_are_never_parked_and_nobody_is_for_an_agent(machine: Machine) -> None:
    for number in range(3):
        machine.runs(f"person {number}")
    machine.runs("agent 1", kind="agent")
    machine.asks("agent 2", kind="agent")
    assert machine.next() is None
    machine.asks("person 3")
    assert machine.step() == [Park("agent 1"), Start("person 3")]
    machine.asks("person 4")
    assert machine.next() is None


def test_someone_small_has_an_agent_parked_beside_someone_big_who_waits(machine: Machine) -> None:
    """Agents are no reason to wait for those in the middle of the line either."""
    machine.runs("person", 60, ends=50)
    machine.runs("agent", 40, kind="agent")
    machine.asks("big", 90, seconds=5)
    machine.asks("small", 30, seconds=20)
    assert machine.step() == [Park("agent"), Start("small")]
    assert machine.policy.protected == {"big", "agent"}


# --- promise 2: agents fill the lanes ------------------------------------------------------------------------


def test_agents_fill_all_lanes_when_they_can_be_parked(machine: Machine) -> None:
    for number in range(6):
        machine.asks(f"agent {number}", 25, kind="agent")
    assert machine.step() == [Start(f"agent {number}") for number in range(4)]


def test_agents_that_cannot_be_parked_leave_a_lane(machine: Machine) -> None:
    for number in range(6):
        machine.asks(f"agent {number}", kind="agent", parkable=False)
    assert machine.step() == [Start(f"agent {number}") for number in range(3)]
    machine.asks("person", 70)
    assert machine.step() == [Start("person")]


def test_agents_that_cannot_be_parked_leave_the_reserve(machine: Machine) -> None:
    machine.asks("agent 1", 70, kind="agent", parkable=False)
    machine.asks("agent 2", 10, kind="agent", parkable=False)
    assert machine.step() == [Start("agent 1")]
    machine.asks("person", machine.reserve)
    assert machine.step() == [Start("person")]


def test_one_that_could_never_leave_the_reserve_gets_the_machine_to_itself(machine: Machine) -> None:
    machine.runs("person", 10)
    machine.asks("agent", 90, kind="agent", parkable=False)
    assert machine.step() == []
    del machine.running["person"]
    assert machine.step() == [Start("agent")]


def test_a_single_lane_serves_agents_too() -> None:
    machine = Machine(lanes=1)
    machine.asks("agent", kind="agent", parkable=False)
    assert machine.step() == [Start("agent")]


# --- promise 4: a bounded line for each class ----------------------------------------------------------------


def test_agents_never_make_the_queue_refuse_a_person(machine: Machine) -> None:
    for number in range(machine.limit):
        assert not machine.policy.full("agent")
        machine.asks(f"agent {number}", kind="agent")
    assert machine.policy.full("agent")
    assert not machine.policy.full("interactive")
    assert (machine.policy.count("agent"), machine.policy.count("interactive")) == (machine.limit, 0)


def test_parked_agents_do_not_fill_the_queue(machine: Machine) -> None:
    for number in range(machine.limit):
        machine.policy.park(Waiting(f"agent {number}", "agent", "a", number))
    assert machine.policy.count("agent") == 0
    assert not machine.policy.full("agent")
    assert len(machine.policy) == machine.limit


def test_retry_after_is_when_the_first_lane_is_free(machine: Machine) -> None:
    assert machine.policy.retry_after([], now=0) == 1
    machine.runs("a", ends=30)
    machine.runs("b", ends=20)
    running = list(machine.running.values())
    assert machine.policy.retry_after(running, now=8) == 12
    assert machine.policy.retry_after(running, now=25) == 1, "late: it may end at any time"
    assert machine.policy.retry_after(running, now=-1000) == 60


# --- promise 5: any request may go at any time ---------------------------------------------------------------


def test_removal_ends_a_protection(machine: Machine) -> None:
    machine.runs("donor", 60, ends=20)
    machine.asks("big", 90)
    machine.asks("small", 30, seconds=100)
    assert machine.step() == []
    removed = machine.policy.remove("big")
    assert removed is not None
    assert removed.id == "big"
    assert machine.policy.protected == frozenset()
    assert machine.step() == [Start("small")]
    assert len(machine.policy) == 0


def test_the_unknown_cannot_be_removed_and_nobody_stands_in_line_twice(machine: Machine) -> None:
    assert machine.policy.remove("nobody") is None
    machine.asks("a", kind="agent")
    with pytest.raises(ValueError, match="in line already"):
        machine.asks("a")
    with pytest.raises(ValueError, match="in line already"):
        machine.policy.park(Waiting("a", "agent", "a", 0))
    with pytest.raises(ValueError, match="not an agent"):
        machine.policy.park(Waiting("b", "interactive", "b", 0))


# --- cost ----------------------------------------------------------------------------------------------------


def test_a_long_line_costs_nothing_while_nothing_changes() -> None:
    """Every step of the engine asks, and a request's need is looked up in what is kept."""
    looked_at: list[str] = []

    def need(name: str) -> Need:
        looked_at.append(name)
        return Need(70, 10)

    policy = Policy(256, need)
    running = [Running(f"person {number}", "interactive", 10, 10, 0, False) for number in range(4)]
    names = [f"{kind} {number}" for kind in ("person", "agent") for number in range(4, 260)]
    for number, name in enumerate(names):
        policy.add(Waiting(name, "interactive" if name.startswith("person") else "agent", name, number))

    def looks(lanes: int, now: float, room: Room) -> list[str]:
        looked_at.clear()
        assert policy.next(running[:lanes], room, now) is None
        return list(looked_at)

    assert looks(4, 0, Room(0, 60, 25)) == ["person 4", "agent 4"], "without a lane, the first of each class"
    assert looks(4, 1, Room(0, 60, 25)) == []
    assert looks(3, 2, Room(1, 69, 25)) == names, "one ended"
    assert looks(3, 3, Room(1, 69, 25)) == []
    policy.remove("agent 259")
    assert looks(3, 4, Room(1, 69, 25)) == names[:-1], "one gave up"
    assert looks(3, 5, Room(1, 68, 25)) == names[:-1], "something was kept"
    assert looks(0, 6, Room(4, 69, 25)) == names[:-1]
    assert looks(0, 7, Room(4, 69, 25)) == names[:-1], "nothing runs: nothing else would make it look again"
