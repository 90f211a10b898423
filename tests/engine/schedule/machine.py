"""A machine with lanes and pages that does at once what the admission policy says: for examples."""

from __future__ import annotations

from dataclasses import dataclass

from engine.messages import RequestClass
from engine.schedule.policy import Action, Need, Park, Policy, Room, Running, Waiting


@dataclass
class Machine:
    """Four lanes and 100 pages, 25 of them in reserve; at second 0 unless told otherwise."""

    lanes: int = 4
    pages: int = 100
    reserve: int = 25
    limit: int = 8

    def __post_init__(self) -> None:
        self.needs: dict[str, Need] = {}
        self.policy: Policy[str] = Policy(self.limit, self.needs.__getitem__)
        self.running: dict[str, Running] = {}
        self._clock = 0.0

    def asks(
        self, name: str, pages: int = 10, seconds: float = 10, kind: RequestClass = "interactive", parkable: bool = True
    ) -> None:
        self._clock += 1 / 1024
        self.needs[name] = Need(pages, seconds, parkable)
        self.policy.add(Waiting(name, kind, name, self._clock))

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
        self.running[name] = Running(name, kind, pages, ends, active, parkable, since)

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
                self.needs[agent.id] = Need(agent.pages, max(agent.ends - now, 1))
                self.policy.park(Waiting(agent.id, agent.request_class, agent.id, agent.since))
            else:
                waiting = self.policy.remove(action.id)
                assert waiting is not None
                need = self.needs[waiting.item]
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
