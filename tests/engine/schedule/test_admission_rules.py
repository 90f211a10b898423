"""Admission by example: who waits, who runs, what is free, and what is done next."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from engine.messages import RequestClass
from engine.schedule.policy import Action, Need, Park, Policy, Resume, Room, Running, Start, Waiting


@dataclass
class Machine:
    """Four lanes and 100 pages, 25 of them in reserve; at second 0 unless told otherwise."""

    lanes: int = 4
    pages: int = 100
    reserve: int = 25
    limit: int = 8

    def __post_init__(self) -> None:
        self.policy: Policy[Need] = Policy(self.limit, lambda need: need)
        self.running: dict[str, Running] = {}
        self._clock = 0.0

    def asks(
        self, name: str, pages: int = 10, seconds: float = 10, kind: RequestClass = "interactive", parkable: bool = True
    ) -> None:
        self._clock += 1 / 1024
        self.policy.add(Waiting(name, kind, Need(pages, seconds, parkable), self._clock))

    def runs(
        self,
        name: str,
        pages: int = 10,
        ends: float = 10,
        kind: RequestClass = "interactive",
        parkable: bool = True,
        active: float = 0,
        since: float = 0,
    ) -> None:
        self.running[name] = Running(name, kind, pages, ends, active, parkable and kind == "agent", since)

    def next(self, now: float = 0) -> Action | None:
        held = sum(request.pages for request in self.running.values())
        room = Room(self.lanes - len(self.running), self.pages - held, self.reserve)
        action = self.policy.next(list(self.running.values()), room, now)
        assert action == self.policy.next(list(self.running.values()), room, now), "asking changes nothing"
        return action

    def step(self, now: float = 0) -> list[Action]:
        """Ask and carry out until nothing is left to do."""
        done: list[Action] = []
        while (action := self.next(now)) is not None:
            done.append(action)
            if isinstance(action, Park):
                agent = self.running.pop(action.id)
                need = Need(agent.pages, max(agent.ends - now, 1))
                self.policy.park(Waiting(agent.id, agent.request_class, need, agent.since))
            else:
                waiting = self.policy.remove(action.id)
                assert waiting is not None
                need = waiting.item
                self.runs(
                    waiting.id,
                    need.pages,
                    now + need.seconds,
                    waiting.request_class,
                    need.parkable,
                    active=now,
                    since=waiting.since,
                )
        return done


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


# --- promise 3: nobody starves -------------------------------------------------------------------------------


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
        machine.policy.park(Waiting(f"agent {number}", "agent", Need(1, 1), number))
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
        machine.policy.park(Waiting("a", "agent", Need(1, 1), 0))
    with pytest.raises(ValueError, match="not an agent"):
        machine.policy.park(Waiting("b", "interactive", Need(1, 1), 0))
