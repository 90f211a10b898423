"""Percentiles of what was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` (0–1) of ``values`` lie, interpolated between the closest ranks.

    Raises ``ValueError`` when there are no values.
    """
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def median(values: Sequence[float]) -> float:
    return percentile(values, 0.5)


@dataclass(frozen=True)
class Spread:
    """How values lie: what tables and JSON show of them. All are in the values' unit."""

    count: int
    p50: float
    p95: float
    p99: float
    largest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """None when there are no values."""
        if not values:
            return None
        p50, p95, p99 = (percentile(values, share) for share in (0.5, 0.95, 0.99))
        return cls(len(values), p50, p95, p99, max(values))

    def json(self, scale: float = 1.0, digits: int = 3) -> dict[str, float | int]:
        parts = {"p50": self.p50, "p95": self.p95, "p99": self.p99, "max": self.largest}
        return {"count": self.count, **{name: round(value * scale, digits) for name, value in parts.items()}}


def overlap_rate(series: Sequence[Sequence[float]], weights: Sequence[float] | None = None) -> float:
    """Events a second of all series together while every one of them was running; 0 when they did not overlap.

    Args:
        series: times of each series' events, ascending, none of them empty.
        weights: what an event of each series counts for; None: one.
    """
    begin, end = max(times[0] for times in series), min(times[-1] for times in series)
    if end <= begin:
        return 0.0
    weights = [1.0] * len(series) if weights is None else weights
    inside = (
        weight * sum(begin < time <= end for time in times) for times, weight in zip(series, weights, strict=True)
    )
    return sum(inside) / (end - begin)
