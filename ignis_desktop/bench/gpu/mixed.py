"""A mixed load through the engine's door: a dozen clients that do all there is to do, in any order."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ignis_desktop.bench.gpu.acts import Act, Actor, Sizes, acts_of, outcome
from ignis_desktop.bench.stats import Spread

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.messages import EngineSnapshot

CLIENTS = 12
JOIN_SECONDS = 300.0
LOOK_SECONDS = 0.25
CARD, HOST = Sizes(long=8192), Sizes(short=16, long=320, answer=16, side=160, log_lines=8)
"""What clients ask of a card, and of a processor."""


@dataclass
class Tally:
    """What became of everything."""

    outcomes: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Act → outcome → how often."""
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    faults: Counter[str] = field(default_factory=Counter)
    looks: list[tuple[float, int, int]] = field(default_factory=list)
    """(seconds of load so far, tokens written, prompt tokens read since the beginning of this load)."""
    loaded: float = 0.0
    """Seconds of load in all."""
    most_busy: int = 0
    most_waiting: int = 0
    most_parked: int = 0

    @property
    def count(self) -> int:
        return sum(counter.total() for counter in self.outcomes.values())

    def rows(self) -> list[Sequence[str]]:
        rows: list[Sequence[str]] = []
        for name, counter in self.outcomes.items():
            spread = Spread.of(self.seconds[name])
            times = [f"{spread.p50 * 1e3:,.0f}", f"{spread.p95 * 1e3:,.0f}"] if spread else ["-", "-"]
            found = (counter[kind] for kind in ("done", "cancelled", "late", "refused", ""))
            rows.append([name, str(counter.total()), *map(str, found), *times])
        return rows

    def json(self) -> dict[str, Any]:
        return {
            "outcomes": {name: dict(counter) for name, counter in self.outcomes.items()},
            "faults": dict(self.faults),
            "seconds_of_load": round(self.loaded, 1),
            "most": {"busy": self.most_busy, "waiting": self.most_waiting, "parked": self.most_parked},
        }


HEADERS = ("act", "times", "done", "cancelled", "late", "refused", "WRONG", "p50 ms", "p95 ms")


class Mixed:
    """The clients of one engine; what each does depends on ``seed`` and on its number."""

    def __init__(self, engine: Engine, sizes: Sizes, *, clients: int = CLIENTS, seed: int = 0) -> None:
        self.tally = Tally()
        self._engine = engine
        self._sizes = fitted(sizes, engine.info.context_length)
        self._acts = acts_of(engine)
        self._randoms = [random.Random(f"client {seed} {number}") for number in range(clients)]
        self._lock = threading.Lock()

    def once(self) -> None:
        """Every act once, one after another: what is at its first use is so now."""
        for act in self._acts:
            self._do(act, self._randoms[0])

    def run(self, seconds: float, say: Callable[[str], None]) -> None:
        """All clients for so long; returns when the last request has ended."""
        stop = time.monotonic() + seconds
        threads = [threading.Thread(target=self._client, args=(drawn, stop)) for drawn in self._randoms]
        before, earlier = self._engine.snapshot(), self.tally.loaded
        written, read = self._totals()
        began = time.monotonic()
        for thread in threads:
            thread.start()
        told = began
        while (now := time.monotonic()) < stop:
            time.sleep(min(LOOK_SECONDS, max(stop - now, 0.0)))
            seen = self._engine.snapshot()
            at = earlier + time.monotonic() - began
            self.tally.looks.append(
                (
                    at,
                    written + seen.tokens_generated - before.tokens_generated,
                    read + seen.tokens_prefilled - before.tokens_prefilled,
                )
            )
            self._note(seen)
            if now - told > 5.0:
                told = now
                say(f"mixed load: {self.tally.count:,} acts, {sum(self.tally.faults.values())} wrong")
        self.tally.loaded = earlier + time.monotonic() - began
        for thread in threads:
            thread.join(JOIN_SECONDS)
            if thread.is_alive():
                self.tally.faults["a client hangs"] += 1

    def _totals(self) -> tuple[int, int]:
        return self.tally.looks[-1][1:] if self.tally.looks else (0, 0)

    def _note(self, seen: EngineSnapshot) -> None:
        tally = self.tally
        tally.most_busy = max(tally.most_busy, sum(lane.state != "idle" for lane in seen.lanes))
        tally.most_waiting = max(tally.most_waiting, seen.queued_interactive + seen.queued_agent)
        tally.most_parked = max(tally.most_parked, len(seen.parked))

    def _client(self, drawn: random.Random, stop: float) -> None:
        while time.monotonic() < stop:
            (act,) = drawn.choices(self._acts, [act.weight for act in self._acts])
            self._do(act, drawn)

    def _do(self, act: Act, drawn: random.Random) -> None:
        began = time.monotonic()
        became, fault = outcome(act, Actor(self._engine, self._sizes, drawn))
        with self._lock:
            self.tally.outcomes[act.name][became] += 1
            self.tally.seconds[act.name].append(time.monotonic() - began)
            if fault:
                self.tally.faults[fault] += 1


def fitted(sizes: Sizes, context: int) -> Sizes:
    """Sizes whose longest prompt and answer fit a context."""
    long = min(sizes.long, context // 2)
    short = min(sizes.short, context // 16)
    return Sizes(short, long, min(sizes.answer, context // 4), sizes.side, min(sizes.log_lines, max(context // 64, 4)))


def rates(looks: Sequence[tuple[float, int, int]], window: float) -> list[tuple[float, float]]:
    """(tokens written, prompt tokens read) a second in each whole window."""
    found: list[tuple[float, float]] = []
    start = (0.0, 0, 0)
    for now in looks:
        if now[0] - start[0] >= window:
            taken = now[0] - start[0]
            found.append(((now[1] - start[1]) / taken, (now[2] - start[2]) / taken))
            start = now
    return found
