"""What every scenario has at hand."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ignis_desktop.bench.classes import HEADERS, ClassSummary, by_class
from ignis_desktop.bench.client import LoadClient, Outcome
from ignis_desktop.bench.load import lateness
from ignis_desktop.bench.process import Target
from ignis_desktop.bench.prompts import PromptMaker
from ignis_desktop.bench.report import ScenarioReport, milliseconds
from ignis_desktop.bench.stats import Spread
from ignis_desktop.bench.watch import EngineView, Watcher

WHOLE_CONTEXT = 4096
"""A context from which on every prompt has its full length; a shorter one shortens them all alike."""
SHORTEST = 64


@dataclass(frozen=True)
class Options:
    """What the command line sets."""

    seconds: float = 40.0
    """How long requests arrive, in scenarios that go by time."""
    rate: float = 1.0
    """Arrivals a second: of interactive requests in flood, of all in poisson."""
    agents: int = 12
    mix: float = 0.5
    """Share of agents' requests in poisson."""
    requests: int = 10_000
    """Of a soak."""
    trace: Path | None = None
    speed: float = 1.0
    """How many times faster than recorded a trace is played."""
    seed: int = 0


@dataclass(frozen=True)
class Bench:
    """A server that is ready, and the means to load it."""

    client: LoadClient
    target: Target
    maker: PromptMaker
    options: Options
    context: int
    """Tokens one lane may hold."""
    lanes: int
    say: Callable[[str], None]
    """Tells what is being done."""

    def rng(self, *names: object) -> random.Random:
        """A random state of its own for each thing that is drawn, the same for the same seed."""
        return random.Random(":".join(map(str, (self.options.seed, *names))))

    def scaled(self, tokens: int) -> int:
        """A prompt's length, shortened for models whose context is small."""
        if self.context >= WHOLE_CONTEXT:
            return tokens
        return max(min(tokens, SHORTEST), tokens * self.context // WHOLE_CONTEXT)


class Stopwatch:
    """Wall and processor time of a scenario: the generator's own share of the machine is part of the result."""

    def __init__(self) -> None:
        self._wall = time.monotonic()
        self._processor = time.process_time()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._wall

    @property
    def own_share(self) -> float:
        """Processors this process kept busy."""
        return (time.process_time() - self._processor) / max(self.seconds, 1e-9)


def load_report(
    name: str,
    title: str,
    outcomes: Sequence[Outcome],
    seconds: float,
    *,
    watch: Stopwatch,
    watcher: Watcher,
    before: EngineView,
    after: EngineView,
    by_clock: Sequence[Outcome] | None = None,
) -> tuple[ScenarioReport, dict[str, ClassSummary]]:
    """A table by class, the engine's counters, and how punctual the generator was.

    Args:
        seconds: over which rates are taken.
        by_clock: the outcomes whose requests were due at a time; None: all.
    """
    classes = by_class(outcomes, seconds)
    late = Spread.of(lateness(outcomes if by_clock is None else by_clock))
    grown = after.since(before)
    report = ScenarioReport(name, title, watch.seconds)
    report.tables.append((HEADERS, [summary.row() for summary in classes.values()]))
    facts: dict[str, Any] = {
        "classes": {key: summary.json() for key, summary in classes.items()},
        "generator": {"lateness_ms": late.json(1e3) if late else None, "processors": round(watch.own_share, 3)},
        "engine": {**watcher.json(), "counters": grown},
    }
    report.facts |= facts
    if late:
        report.notes.append(
            f"generator: late by {milliseconds(late.p50)} ms (median), {milliseconds(late.largest)} ms (most), "
            f"{watch.own_share:.0%} of a processor"
        )
    report.notes.append(engine_note(watcher, grown))
    report.notes += [f"{key}: {error}" for key, summary in classes.items() for error in summary.errors]
    return report, classes


def engine_note(watcher: Watcher, grown: dict[str, int]) -> str:
    """The engine's own account in one line."""
    parts = [
        f"{grown.get('tokens_prefilled', 0):,} prompt tokens read",
        f"{grown.get('tokens_generated', 0):,} written",
        f"{watcher.most_busy} lanes busy and {watcher.most_queued} requests waiting at most",
    ]
    if "parks" in grown:
        parts.append(f"{grown['parks']} parked, {grown['spills']} spilled")
    if "hits" in grown:
        parts.append(f"{grown['hits']} of {grown['hits'] + grown['misses']} prompts reused kept state")
    return "engine: " + ", ".join(parts)
