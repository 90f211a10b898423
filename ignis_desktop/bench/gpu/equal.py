"""Whether a round replayed as a graph and one launched kernel by kernel choose the same tokens with the same bits."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from engine.schedule.scheduler import Scheduler
from ignis_desktop.bench.gpu import door
from ignis_desktop.bench.gpu.watched import WatchedEngine

TOKENS, LOGPROBS = 24, 5
SHORT, LONG = 40, 1500
"""Tokens of prompts that are read together in one chunk, so that all their rounds have one width, and of one alone."""


@dataclass(frozen=True)
class Equal:
    graph: bool
    """Rounds are captured here; else both runs launch kernel by kernel, and only repeat each other."""
    equal: bool
    digest: str
    """Of every token and log probability: the same later on, if nothing has been written over."""


def graph_and_eager(engine: WatchedEngine) -> Equal:
    """Fixed prompts on one lane, on three and on all, answered both ways. To be called while nothing else is asked."""
    lanes = len(engine.snapshot().lanes)
    widths = sorted({1, min(3, lanes), lanes})
    graph = engine.on_thread(lambda scheduler: bool(_graphs(scheduler)))
    replayed = [_written(engine, width) for width in widths]
    kept = engine.on_thread(_take_graphs)
    try:
        launched = [_written(engine, width) for width in widths]
    finally:
        engine.on_thread(lambda scheduler: _graphs(scheduler).update(kept))
    digest = hashlib.sha256(repr(replayed).encode()).hexdigest()[:16]
    return Equal(graph, replayed == launched, digest)


def _written(engine: WatchedEngine, width: int) -> list[tuple[object, ...]]:
    context = engine.info.context_length
    length = min(LONG, context // 2) if width == 1 else min(SHORT, context // 8)
    prompts = [door.prompt(engine, f"equal {lane}", length) for lane in range(width)]
    streams = door.ask_all(engine, prompts, TOKENS, logprobs=LOGPROBS)
    answers = [door.read(stream) for stream in streams]
    return [(answer.ids, answer.logprobs) for answer in answers]


def _graphs(scheduler: Scheduler) -> dict[int, object]:
    """The captured rounds by width, to be changed in place."""
    graphs: dict[int, object] = scheduler._round_buffers._graphs  # type: ignore[assignment]
    return graphs


def _take_graphs(scheduler: Scheduler) -> dict[int, object]:
    kept = dict(_graphs(scheduler))
    _graphs(scheduler).clear()
    return kept
