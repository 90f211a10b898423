"""One kernel at one shape: is it right, and how near is it to what the card could do?"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from kernels.fused.partial import Partial

Written = Tensor | Partial
Launch = Callable[[], Written | Sequence[Written]]
"""Runs the kernel once on buffers that stand still and returns what it wrote (the same tensors every time; partial sums
are added up to be looked at, but not when they are timed)."""


@dataclass(frozen=True)
class Case:
    """What to launch, what is right, and what must move."""

    area: str
    """"linear", "attention", …: what ``--only`` names."""
    name: str
    make: Callable[[int], tuple[Launch, Callable[[], Sequence[Tensor]]]]
    """Variant number → (launch, float64 reference of everything the launch returns). Variants differ in their inputs:
    correctness is looked at for variant 0, time is taken over all, so that no input stays in the card's cache. State
    that a launch changes in place must not change what it returns: the reference is taken before the first launch."""
    limit: float
    """Largest relative error ‖out − ref‖ / ‖ref‖ of any of the outputs."""
    bytes: int = 0
    """That must move through the card's memory, each input read and each output written once."""
    flops: int = 0
    variants: int = 1
    per_round: float = 0.0
    """How often the 27B does this in a round; 0 where the shape is not of a round."""
    hot: bool = True
    """Timed; else only checked."""
    note: str = field(default="", compare=False)


@dataclass(frozen=True)
class Result:
    area: str
    name: str
    error: float
    limit: float
    microseconds: float | None
    bytes: int
    flops: int
    per_round: float
    fault: str = ""

    @property
    def right(self) -> bool:
        return not self.fault and self.error <= self.limit


def run_case(case: Case, *, timed: bool = True) -> Result:
    """Check, and time if wanted; a fault is a result too."""
    try:
        error, time = _measure(case, timed and case.hot)
    except Exception as fault:  # whatever one kernel does, the table goes on
        text = f"{type(fault).__name__}: {fault}".replace("\n", " ")
        return Result(
            case.area, case.name, float("nan"), case.limit, None, case.bytes, case.flops, case.per_round, text[:600]
        )
    return Result(case.area, case.name, error, case.limit, time, case.bytes, case.flops, case.per_round)


def relative_error(out: Tensor, expected: Tensor) -> float:
    """‖out − expected‖ / ‖expected‖ in float64; NaN counts as infinite."""
    out, expected = out.double(), expected.double().to(out.device)
    if out.shape != expected.shape:
        raise ValueError(f"the kernel returned {list(out.shape)}, the reference {list(expected.shape)}")
    scale = expected.norm().item() or 1.0
    error: float = (out - expected).norm().item() / scale
    return error if error == error else float("inf")


def _measure(case: Case, timed: bool) -> tuple[float, float | None]:
    made = [case.make(variant) for variant in range(case.variants if timed else 1)]
    launch, reference = made[0]
    expected = [value.clone() for value in reference()]
    out = _as_list(launch())
    torch.cuda.synchronize()
    error = max(relative_error(a, b) for a, b in zip(out, expected, strict=True))
    time = _graph_time([launch for launch, _ in made]) if timed else None
    return error, time


def _as_list(value: Written | Sequence[Written]) -> list[Tensor]:
    values = [value] if isinstance(value, Written) else value
    return [value.sum() if isinstance(value, Partial) else value for value in values]


def _graph_time(launches: Sequence[Launch], repeats: int = 7, goal: float = 4e3) -> float:
    """Microseconds of one launch: the median of graph replays that hold each of ``launches`` equally often."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for launch in launches:
            launch()
    torch.cuda.synchronize()
    once = _replay_time(_capture(launches, 1), 3) / len(launches)
    rounds = max(1, min(200, int(goal / max(once * len(launches), 1e-3))))
    return _replay_time(_capture(launches, rounds), repeats) / (rounds * len(launches))


def _capture(launches: Sequence[Launch], rounds: int) -> torch.cuda.CUDAGraph:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(rounds):
            for launch in launches:
                launch()
    return graph


def _replay_time(graph: torch.cuda.CUDAGraph, repeats: int) -> float:
    """Median microseconds of one replay."""
    graph.replay()
    times = []
    for _ in range(repeats):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e3)
    return statistics.median(times)
