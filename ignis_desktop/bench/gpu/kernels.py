"""The kernels' table: every case checked and timed, and what a round's kernels add up to."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ignis_desktop.bench.gpu.card import Card
from ignis_desktop.bench.gpu.case import Case, Result, run_case
from ignis_desktop.bench.report import table

AREAS = ("linear", "attention", "deltanet", "elementwise", "sampling")
HEADERS = ("kernel", "error", "limit", "µs", "TB/s", "TFLOP/s", "× floor", "")


def cases(areas: Sequence[str], quick: bool) -> Iterator[Case]:
    """The cases of the areas, each from the module of its name."""
    for area in areas:
        module = importlib.import_module(f"ignis_desktop.bench.gpu.{area}")
        yield from module.cases(quick)


def run_kernels(areas: Sequence[str], quick: bool, timed: bool, say: Callable[[str], None]) -> list[Result]:
    results = []
    for case in cases(areas, quick):
        say(f"{case.area}: {case.name}")
        results.append(run_case(case, timed=timed))
    return results


def floor_microseconds(result: Result, card: Card) -> float:
    """What the bytes or the operations take at least, whichever is longer."""
    return max(result.bytes / card.read_bytes, result.flops / card.matrix_flops) * 1e6


def kernels_table(results: Sequence[Result], card: Card) -> str:
    rows = []
    for result in results:
        time = result.microseconds
        floor = floor_microseconds(result, card)
        rows.append(
            [
                f"{result.area}: {result.name}",
                f"{result.error:.1e}",
                f"{result.limit:.0e}",
                "" if time is None else f"{time:,.1f}",
                "" if time is None or not result.bytes else f"{result.bytes / time / 1e6:.2f}",
                "" if time is None or not result.flops else f"{result.flops / time / 1e6:.0f}",
                "" if time is None or not floor else f"{time / floor:.2f}",
                "" if result.right else "WRONG",
            ]
        )
    faults = [f"  {result.area}: {result.name}: {result.fault}" for result in results if result.fault]
    return "\n".join([table(HEADERS, rows), *faults])


def kernels_json(results: Sequence[Result], card: Card) -> list[dict[str, Any]]:
    return [
        {
            "area": result.area,
            "name": result.name,
            "error": result.error,
            "limit": result.limit,
            "right": result.right,
            "microseconds": result.microseconds,
            "floor_microseconds": round(floor_microseconds(result, card), 3),
            "bytes": result.bytes,
            "flops": result.flops,
            "per_round": result.per_round,
            "fault": result.fault or None,
        }
        for result in results
    ]
