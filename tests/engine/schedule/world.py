"""Requests, lanes and pages on a simulated clock, driven by the admission policy and watched over by plain arithmetic.

Times and pages are whole numbers, so that comparisons are exact. Every action of the policy is checked when it is
carried out, and every state in which it has nothing more to do. The checks know the promises, not the policy: they use
lists and sums only.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.messages import RequestClass
from engine.schedule.policy import Need, Park, Policy, Resume, Room, Running, Start, Waiting


@dataclass(frozen=True)
class Job:
    """A request as it will turn out to be."""

    id: str
    kind: RequestClass
    pages: int
    work: int
    """Seconds on a lane that it takes."""
    estimate: int
    """Seconds that it is thought to take."""
    movable: bool = True
    """Whether it can be moved out where there is room for it."""
    drift: int = 0
    """It is always said to end at least so many seconds from now: an estimate that moves along while it runs."""


@dataclass(eq=False)
class Held:
    """A job since it arrived; on a lane where ``began`` is set, else waiting or parked."""

    job: Job
    since: float
    left: int
    """Seconds of work left when it got its lane, or in line."""
    estimate: int
    began: int | None = None
    parked: bool = False
    parkable: bool = False
    """It is on a lane and has a place outside."""

    @property
    def ends(self) -> int:
        assert self.began is not None
        return self.began + self.left

    def estimated_end(self, now: int) -> int:
        assert self.began is not None
        return max(self.began + self.estimate, now + self.job.drift)


@dataclass
class Promise:
    """What the first in line was told when it found no room."""

    by: int
    """When it starts at the latest, were nobody let past it and were the estimates right."""
    before: set[str]
    """Those that it may have to wait for: all that ran then, and all that got a lane until ``by``."""


@dataclass
class World:
    lanes: int
    pages: int
    reserve: int
    outside: int | None = None
    """Pages that parked agents may have together; None is no limit."""
    now: int = 0
    held: dict[str, Held] = field(default_factory=dict)
    started: dict[str, int] = field(default_factory=dict)
    """When each job got a lane first."""
    ended: dict[str, int] = field(default_factory=dict)
    """When each job was over or cancelled."""
    parks: int = 0
    passed: int = 0
    """Starts before someone older of the same class."""
    protected: set[str] = field(default_factory=set)
    """All that ever were."""

    def __post_init__(self) -> None:
        self.policy: Policy[Held] = Policy(1 << 20, self._need)
        self.overruns = False
        """Some estimate is too low."""
        self.people = False
        """Some request was interactive."""
        self._promises: dict[str, Promise] = {}
        self._arrivals = 0

    # --- what happens ----------------------------------------------------------------------------------------

    def arrive(self, *jobs: Job) -> None:
        for job in jobs:
            self._arrivals += 1
            held = Held(job, self.now + self._arrivals / 2**20, job.work, job.estimate)
            self.held[job.id] = held
            self.overruns |= job.work > job.estimate or bool(job.drift)
            self.people |= job.kind == "interactive"
            self.policy.add(Waiting(job.id, job.kind, held, held.since))
        self.settle()

    def cancel(self, name: str) -> None:
        held = self.held.pop(name)
        waiting = self.policy.remove(name)
        assert (waiting is None) == (held.began is not None)
        assert self.policy.remove(name) is None
        self.ended[name] = self.now
        self._promises.pop(name, None)
        self.settle()

    def wait(self, seconds: int) -> None:
        """Let time pass, and jobs end."""
        until = self.now + seconds
        while (ending := min((held.ends for held in self.running), default=until + 1)) <= until:
            self.now = ending
            for held in self.running:
                if held.ends == ending:
                    del self.held[held.job.id]
                    self.ended[held.job.id] = ending
            self.settle()
        self.now = until
        self.settle()

    def drain(self) -> None:
        """Nobody comes any more: all must end, and nothing is left."""
        while self.held:
            running = self.running
            assert running, f"{list(self.held)} wait for ever"
            self.wait(min(held.ends for held in running) - self.now)
        assert len(self.policy) == 0
        assert self.policy.waiting() == self.policy.parked() == []
        assert self.policy.next([], self._room(), self.now) is None
        assert self.policy.protected == frozenset()
        assert not self._promises

    # --- who is where ----------------------------------------------------------------------------------------

    @property
    def running(self) -> list[Held]:
        return [held for held in self.held.values() if held.began is not None]

    def line(self, kind: RequestClass) -> list[Held]:
        line = [held for held in self.held.values() if held.began is None and held.job.kind == kind]
        return sorted(line, key=lambda held: held.since)

    def _room(self) -> Room:
        running = self.running
        return Room(self.lanes - len(running), self.pages - sum(h.job.pages for h in running), self.reserve)

    @property
    def place_outside(self) -> int:
        """Pages outside that neither parked agents hold nor such as are promised to be parkable."""
        if self.outside is None:
            return 1 << 40
        return self.outside - sum(held.job.pages for held in self.held.values() if held.parked or held.parkable)

    def _could_park(self, held: Held) -> bool:
        job = held.job
        return job.kind == "agent" and job.movable and (held.parked or job.pages <= self.place_outside)

    def _need(self, held: Held) -> Need:
        return Need(held.job.pages, held.estimate, self._could_park(held))

    def _as_running(self, held: Held) -> Running:
        assert held.began is not None
        job = held.job
        ends = held.estimated_end(self.now)
        return Running(job.id, job.kind, job.pages, ends, held.began, held.parkable, held.since)

    # --- what the policy does --------------------------------------------------------------------------------

    def settle(self) -> None:
        """Carry out all that the policy wants now."""
        for held in self.running:
            held.parkable = held.parkable or self._could_park(held)
        for _ in range(4 * len(self.held) + 4):
            self._promise()
            running = [self._as_running(held) for held in self.running]
            action = self.policy.next(running, self._room(), self.now)
            assert action == self.policy.next(running, self._room(), self.now), "asking changes nothing"
            if action is None:
                break
            held = self.held[action.id]
            if isinstance(action, Park):
                self._park(held)
            else:
                assert isinstance(action, Resume if held.parked else Start)
                self._begin(held)
        else:
            raise AssertionError("it never has enough")
        self._check_rest()

    def _park(self, held: Held) -> None:
        job, now = held.job, self.now
        assert held.began is not None
        assert job.kind == "agent"
        assert held.parkable
        assert self.line("interactive"), "parked for nobody"
        wanted = [other.job.pages for other in self.line("interactive")]
        room = self._room()
        assert room.lanes == 0 or room.pages < max(wanted), "parked for nothing"
        lanes, pages = self._reach()
        assert lanes >= 1, "parked in vain"
        assert pages >= min(wanted), "parked in vain"
        held.left, held.estimate = held.ends - now, max(held.estimated_end(now) - now, 0)
        held.began, held.parked, held.parkable = None, True, False
        self.policy.park(Waiting(job.id, job.kind, held, held.since))
        self.parks += 1

    def _begin(self, held: Held) -> None:
        job, now = held.job, self.now
        waiting = self.policy.remove(job.id)
        assert waiting is not None
        assert waiting.item is held
        room = self._room()
        assert room.lanes >= 1, "no lane is given twice"
        assert room.pages >= job.pages, "no page is given twice"
        alone = not self.running
        self.passed += self.line(job.kind)[0] is not held
        parkable = self._could_park(held)
        held.began, held.parked, held.parkable = now, False, parkable
        if job.kind == "agent" and not parkable and not alone:
            lanes, pages = self._reach()
            assert lanes >= 1, "a lane stays within reach"
            assert pages >= self.reserve, "the reserve stays within reach"
        self.started.setdefault(job.id, now)
        self._keep_promise(job.id)

    # --- promises --------------------------------------------------------------------------------------------

    def _reach(self) -> tuple[int, int]:
        """Lanes and pages that are free once all are parked that can be."""
        stay = [held.job.pages for held in self.running if not held.parkable]
        return self.lanes - len(stay), self.pages - sum(stay)

    def _fits(self, held: Held, gone: list[Held]) -> bool:
        """Whether it has room once those in ``gone`` are."""
        kept = [other for other in self.running if other not in gone]
        pages = self.pages - sum(other.job.pages for other in kept)
        reach_pages = self.pages - sum(other.job.pages for other in kept if not other.parkable)
        reach_lanes = self.lanes - sum(not other.parkable for other in kept)
        if held.job.kind == "interactive":
            return reach_lanes >= 1 and reach_pages >= held.job.pages
        if len(kept) == self.lanes or pages < held.job.pages:
            return False
        leaves = reach_lanes >= 2 and reach_pages - held.job.pages >= self.reserve
        return not kept or self._could_park(held) or leaves

    def _foreseen(self, held: Held) -> int:
        """When it starts by the estimates if nobody else does."""
        order = sorted(self.running, key=lambda other: other.estimated_end(self.now))
        for count in range(len(order) + 1):
            if self._fits(held, order[:count]):
                return max([self.now, *(other.estimated_end(self.now) for other in order[:count])])
        raise AssertionError(f"{held.job} does not fit at all")

    def _promise(self) -> None:
        """Agents are promised nothing where people come, or where they depend on each other's places outside."""
        nothing = self.people or self.outside is not None
        for line in [self.line("interactive"), [] if nothing else self.line("agent")]:
            if line and line[0].job.id not in self._promises and not self._fits(line[0], []):
                before = {held.job.id for held in self.running}
                self._promises[line[0].job.id] = Promise(self._foreseen(line[0]), before)
        if self.people:
            for name in [name for name in self._promises if self.held[name].job.kind == "agent"]:
                del self._promises[name]

    def _keep_promise(self, name: str) -> None:
        """``name`` starts: on time, if it was promised; and it delays nobody to whom something was."""
        promise = self._promises.pop(name, None)
        if promise is not None:
            last = max((self.ended.get(other, self.now + 1) for other in promise.before), default=0)
            assert self.now <= max(last, promise.by), "it waits for those only that ran or were thought to be over"
            assert self.overruns or self.now <= promise.by, "it starts as early as if nobody had been let past"
        for other, promise in self._promises.items():
            if self.now <= promise.by:
                promise.before.add(name)
            assert self.overruns or self._foreseen(self.held[other]) <= promise.by

    def _check_rest(self) -> None:
        """Nothing is left to do: rightly so?"""
        assert self.place_outside >= 0
        people, agents = self.line("interactive"), self.line("agent")
        if people:
            assert not self._fits(people[0], []), "agents keep a person waiting"
        elif agents:
            assert not self._fits(agents[0], []), "a lane is idle"
        in_line = {held.job.id for held in (*people, *agents)}
        assert len(self.policy) == len(in_line)
        assert [w.id for w in self.policy.parked()] == [held.job.id for held in agents if held.parked]
        assert [w.id for w in self.policy.waiting()] == [h.job.id for h in (*people, *agents) if not h.parked]
        assert self.policy.count("interactive") == len(people)
        assert self.policy.count("agent") == sum(not held.parked for held in agents)
        self.protected |= self.policy.protected
        assert self.policy.protected == {line[0].job.id for line in (people, agents) if line}
