"""What the host adds to a round: the engine's milliseconds a token beside the bare replay of its captured graph."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from engine.messages import EngineError
from engine.schedule.scheduler import Scheduler
from engine.stream import Stream
from engine.text.stream import TextStream
from ignis_desktop.bench.gpu import door
from ignis_desktop.bench.gpu.model import replayed
from ignis_desktop.bench.gpu.phases import Phases
from ignis_desktop.bench.gpu.watched import WatchedEngine
from ignis_desktop.bench.report import ScenarioReport, Verdict
from ignis_desktop.bench.stats import median

TITLE = "the engine's rounds beside the bare replay of their graph"
CONTEXT = 4096
GAP, HOST_MS = 0.03, 0.3
"""Share of a round and milliseconds that lie between two replays at most."""
WAITING = "waiting for the card"
DECODER = "decoder"
"""The phase that holds the pass itself: on a card its launch, on the CPU all of it."""


@dataclass(frozen=True)
class Gap:
    """Milliseconds of a round."""

    lanes: int
    context: int
    engine: float
    bare: float
    graph: bool
    """``bare`` is the replay of a captured graph; else the decoder's own time within the rounds."""
    phases: dict[str, float]

    @property
    def share(self) -> float:
        """Of the engine's round that is not the bare one."""
        return 1.0 - self.bare / self.engine

    def json(self) -> dict[str, Any]:
        return {**vars(self), "gap_ms": self.engine - self.bare, "gap_share": self.share}


def run(engine: WatchedEngine, *, seconds: float, say: Callable[[str], None]) -> ScenarioReport:
    """One lane and all lanes in turn, for about ``seconds`` in all."""
    began = time.monotonic()
    lanes = len(engine.snapshot().lanes)
    found = []
    for count in dict.fromkeys((1, lanes)):
        context, tokens = sizes(engine, count, seconds / 2)
        found.append(measure(engine, count, context, tokens, say))
    report = ScenarioReport("gap", TITLE, time.monotonic() - began)
    bare = "graph" if found[0].graph else "decoder"
    headers = ("lanes", "tokens each", f"{bare} ms", "engine ms", "gap ms", "gap", "tokens/s")
    report.tables.append((headers, [_row(gap) for gap in found]))
    names = sorted({name for gap in found for name in gap.phases}, key=lambda n: -found[-1].phases.get(n, 0.0))
    columns = [f"{_lanes(gap)} µs" for gap in found]
    rows: list[Sequence[str]] = [
        [name, *(f"{gap.phases.get(name, 0.0) * 1e3:,.0f}" for gap in found)] for name in names
    ]
    report.tables.append((("the host's time, a round", *columns), rows))
    report.facts["gaps"] = [gap.json() for gap in found]
    for gap in found:
        why = "" if gap.graph else "no round is captured here"
        report.verdicts += [
            Verdict(
                f"gap between rounds, {_lanes(gap)}",
                f"{gap.share:.1%}",
                f"≤ {GAP:.0%}",
                gap.share <= GAP if gap.graph else None,
                why,
            ),
            Verdict(
                f"host time between replays, {_lanes(gap)}",
                f"{gap.engine - gap.bare:.2f} ms",
                f"≤ {HOST_MS} ms",
                gap.engine - gap.bare <= HOST_MS if gap.graph else None,
                why,
            ),
        ]
    return report


def measure(engine: WatchedEngine, lanes: int, context: int, tokens: int, say: Callable[[str], None]) -> Gap:
    """So many rounds after ``context`` tokens on each lane: timed as they are, then once more with their phases, then
    the graph alone."""
    say(f"gap: {lanes} lanes after {context:,} tokens, {tokens} rounds")
    door.round_seconds(engine, lanes, context, min(tokens, 8), "warm")
    plain = median([_round_seconds(engine, lanes, context, tokens, turn) for turn in range(2)])
    phases = _phases(engine, lanes, context, tokens)
    bare = _bare(engine, lanes, context, tokens)
    if bare is None:  # what the decoder took, of the run in which it was timed
        return Gap(lanes, context, sum(phases.values()), phases.get(DECODER, 0.0), False, phases)
    return Gap(lanes, context, plain * 1e3, bare, True, phases)


def sizes(engine: WatchedEngine, lanes: int, seconds: float) -> tuple[int, int]:
    """(tokens of each prompt, tokens of each answer): what a card is judged at, or what ``seconds`` allow elsewhere."""
    context = engine.info.context_length
    if engine.on_thread(lambda scheduler: scheduler._network.device.type) == "cuda":
        length = min(CONTEXT, context // 2)
        rate = 120.0
    else:
        length = min(64, context // 4)
        trial = door.round_seconds(engine, lanes, length, 4, "trial")
        rate = 1.0 / max(trial, 1e-4)
    # Two plain runs and one with phases; what reading the prompts takes comes on top.
    return length, max(8, min(600, context - length - 1, int(rate * seconds / 4)))


@contextlib.contextmanager
def _noted(engine: WatchedEngine) -> Iterator[list[tuple[float, int]]]:
    """When each round began and how many lanes it had, while the block runs."""
    begun: list[tuple[float, int]] = []

    def note(scheduler: Scheduler) -> None:
        run = scheduler._round_buffers.run

        def noted(columns: Sequence[Any], *tokens: Any) -> Any:
            begun.append((time.perf_counter(), len(columns)))
            return run(columns, *tokens)

        scheduler._round_buffers.run = noted  # type: ignore[assignment,method-assign]

    engine.on_thread(note)
    try:
        yield begun
    finally:
        engine.on_thread(lambda scheduler: vars(scheduler._round_buffers).pop("run"))


def _ask(engine: WatchedEngine, lanes: int, context: int, tokens: int, seed: object) -> list[Stream]:
    prompts = [door.prompt(engine, f"gap {seed} {lane}", context) for lane in range(lanes)]
    return door.ask_all(engine, prompts, tokens)


def _round_seconds(engine: WatchedEngine, lanes: int, context: int, tokens: int, turn: int) -> float:
    """Seconds from one round's beginning to the next one's, while all lanes are decoding. Nobody reads the answers
    meanwhile: what is measured is the engine."""
    with _noted(engine) as begun:
        streams = _ask(engine, lanes, context, tokens, turn)
        door.rest(streams)
    for stream in streams:
        door.read(stream)
    times = [at for at, width in begun if width == lanes]
    if len(times) < 3:
        raise EngineError(f"Of {tokens} rounds {len(times)} were of all {lanes} lanes: longer answers are needed.")
    return (times[-1] - times[0]) / (len(times) - 1)


def _phases(engine: WatchedEngine, lanes: int, context: int, tokens: int) -> dict[str, float]:
    """Milliseconds a round, by what the engine's thread does while all lanes are decoding."""
    with _noted(engine) as begun, Phases(engine.on_thread(lambda _: threading.get_ident())) as phases:
        engine.on_thread(lambda scheduler: watch_rounds(phases, engine, scheduler))
        streams = _ask(engine, lanes, context, tokens, "phases")
        _wait_for_all(begun, lanes, streams)
        before, rounds, began = dict(phases.seconds), len(begun), time.perf_counter()
        door.rest(streams[:1])  # the first to begin is the first to end: until then all of them write
        wall, rounds = time.perf_counter() - began, len(begun) - rounds
        spent = {name: phases.seconds[name] - before.get(name, 0.0) for name in phases.seconds}
        door.rest(streams)
    for stream in streams:
        door.read(stream)
    spent["elsewhere"] = max(wall - sum(spent.values()), 0.0)
    return {name: 1e3 * value / max(rounds, 1) for name, value in spent.items() if value > 0}


def watch_rounds(phases: Phases, engine: WatchedEngine, scheduler: Scheduler) -> None:
    """Time what a round consists of, as far as it is there under these names."""
    rounds = scheduler._round_buffers
    for name, owner, attribute in (
        ("staging", rounds, "stage"),
        (DECODER, rounds, "run"),
        ("sampling", scheduler._sampler, "start"),
        ("sampling", scheduler._sampler, "finish"),
        ("text", TextStream, "push"),
        ("emitting", Stream, "put"),
        ("publishing", engine, "_publish"),
        ("admitting", scheduler, "_admit"),
        ("the step's rest", scheduler, "step"),
    ):
        phases.watch(name, owner, attribute)
    if torch.cuda.is_available():
        phases.watch(WAITING, torch.cuda.Stream, "synchronize")
        phases.watch(WAITING, torch.cuda.Event, "synchronize")


def _wait_for_all(begun: Sequence[tuple[float, int]], lanes: int, streams: Sequence[Stream]) -> None:
    """After the second round of all lanes the step that read the last prompt is over."""
    while sum(width == lanes for _, width in begun) < 2 and not streams[0].ended:
        time.sleep(door.PAUSE)


def _bare(engine: WatchedEngine, lanes: int, context: int, tokens: int) -> float | None:
    """Milliseconds of one replay of the columns staged last, of lanes that hold their pages: given back, all would be
    one page, which the card's cache has. It spoils the answers, which are given up. None where rounds are not captured.

    Raises:
        EngineError: the answers ended before.
    """
    captured = engine.on_thread(lambda scheduler: getattr(scheduler._round_buffers, "_graphs", {}).get(lanes))
    if captured is None:
        return None
    with _noted(engine) as begun:
        streams = _ask(engine, lanes, context, tokens, "bare")
        _wait_for_all(begun, lanes, streams)
        found = engine.on_thread(lambda _: None if streams[0].ended else replayed(captured.graph))
    for stream in streams:
        stream.cancel()
    door.rest(streams)
    if found is None:
        raise EngineError(f"{tokens} rounds were over before one could be replayed: longer answers are needed.")
    return found


def _lanes(gap: Gap) -> str:
    return f"{gap.lanes} lane{'s' * (gap.lanes > 1)}"


def _row(gap: Gap) -> list[str]:
    return [
        str(gap.lanes),
        f"{gap.context:,}",
        f"{gap.bare:.3f}",
        f"{gap.engine:.3f}",
        f"{gap.engine - gap.bare:.3f}",
        f"{gap.share:.1%}",
        f"{gap.lanes / gap.engine * 1e3:,.1f}",
    ]
