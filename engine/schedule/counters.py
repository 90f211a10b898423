"""What the engine has done so far, and how fast it is going."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

_WINDOW = 2.0
"""Seconds over which tokens per second are averaged."""
_KEPT = 0.9
"""What a new measurement leaves of the weight of those before it."""


@dataclass
class Counters:
    """Totals since the model was loaded."""

    rounds: int = 0
    tokens_generated: int = 0
    tokens_prefilled: int = 0
    finished: int = 0
    failed: int = 0
    cancelled: int = 0


class Rate:
    """Tokens per second over the last moments."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()

    def add(self, now: float, tokens: int) -> None:
        self._samples.append((now, tokens))

    def value(self, now: float) -> float:
        while self._samples and self._samples[0][0] < now - _WINDOW:
            self._samples.popleft()
        return sum(tokens for _, tokens in self._samples) / _WINDOW


class Pace:
    """Seconds a unit of work takes, for estimates: a running mean that forgets slowly."""

    def __init__(self) -> None:
        self._units = 0.0
        self._seconds = 0.0

    def add(self, units: int, seconds: float) -> None:
        self._units = self._units * _KEPT + units
        self._seconds = self._seconds * _KEPT + seconds

    def seconds(self, units: int) -> float:
        """What ``units`` will take; 0 as long as nothing was measured."""
        return units * self._seconds / self._units if self._units else 0.0
