"""Admission as pure policy: any sequence of arrivals, starts, ends and departures."""

from __future__ import annotations

from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from engine.messages import RequestClass
from engine.schedule.admission import AdmissionQueue, Waiting

CLASSES = st.sampled_from(get_args(RequestClass))


class Admission(RuleBasedStateMachine):
    """Lanes and a queue beside the simplest model of both: lists."""

    def __init__(self) -> None:
        super().__init__()
        self.lanes = 0
        self.number = 0
        self.running: list[Waiting[int]] = []
        self.waiting: list[Waiting[int]] = []

    @precondition(lambda self: self.lanes == 0)
    @rule(lanes=st.integers(1, 4))
    def begin(self, lanes: int) -> None:
        self.lanes = lanes
        self.queue: AdmissionQueue[int] = AdmissionQueue(lanes)

    @precondition(lambda self: self.lanes)
    @rule(request_class=CLASSES)
    def arrive(self, request_class: RequestClass) -> None:
        self.number += 1
        waiting = Waiting(f"request {self.number}", request_class, self.number)
        self.queue.add(waiting)
        self.waiting.append(waiting)

    @precondition(lambda self: self.lanes)
    @rule()
    def start_one(self) -> None:
        free = self.lanes - len(self.running)
        first = self.queue.first(free)
        assert first is self.queue.first(free), "asking changes nothing"
        interactive = [w for w in self.waiting if w.request_class == "interactive"]
        agents = [w for w in self.waiting if w.request_class == "agent"]
        if interactive:
            assert first is (interactive[0] if free else None)
        elif agents:
            assert first is (agents[0] if free > (self.lanes > 1) else None)
        else:
            assert first is None
        if first is not None:
            assert self.queue.remove(first.id) is first
            self.waiting.remove(first)
            self.running.append(first)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def end_one(self, data: st.DataObject) -> None:
        self.running.remove(data.draw(st.sampled_from(self.running)))

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        gone = data.draw(st.sampled_from(self.waiting))
        assert self.queue.remove(gone.id) is gone
        assert self.queue.remove(gone.id) is None
        self.waiting.remove(gone)

    @invariant()
    def counts_agree(self) -> None:
        if not self.lanes:
            return
        assert len(self.queue) == len(self.waiting)
        for request_class in get_args(RequestClass):
            own = [w for w in self.waiting if w.request_class == request_class]
            assert self.queue.count(request_class) == len(own)
        assert sorted(self.queue.all(), key=lambda w: w.item) == self.waiting

    @invariant()
    def a_person_finds_a_lane_unless_people_hold_them(self) -> None:
        """Agents alone never fill all lanes."""
        agents = sum(w.request_class == "agent" for w in self.running)
        assert agents <= max(1, self.lanes - 1)


TestAdmission = Admission.TestCase
TestAdmission.settings = settings(max_examples=60, stateful_step_count=40)


@given(lanes=st.integers(2, 8), arrivals=st.lists(CLASSES, max_size=60))
def test_everybody_gets_a_lane_in_the_order_of_its_class(lanes: int, arrivals: list[RequestClass]) -> None:
    """One request ends after each start: nobody is passed within its class, and nobody is left."""
    queue: AdmissionQueue[int] = AdmissionQueue(lanes)
    for number, request_class in enumerate(arrivals):
        queue.add(Waiting(str(number), request_class, number))
    started: list[Waiting[int]] = []
    while (first := queue.first(2)) is not None:
        queue.remove(first.id)
        started.append(first)
    assert len(queue) == 0
    order = [
        *(n for n, c in enumerate(arrivals) if c == "interactive"),
        *(n for n, c in enumerate(arrivals) if c == "agent"),
    ]
    assert [waiting.item for waiting in started] == order


def test_one_lane_serves_agents_too() -> None:
    queue: AdmissionQueue[None] = AdmissionQueue(1)
    queue.add(Waiting("a", "agent", None))
    assert queue.first(0) is None
    assert queue.first(1) is not None
