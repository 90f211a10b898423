"""A round that was launched and whose tokens are still to be chosen."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Many
from dataclasses import dataclass

from torch import Tensor

from engine.schedule.job import Sequence
from engine.schedule.lanes import Lanes


@dataclass(frozen=True)
class Flight:
    """Between two steps of the loop at most one is under way. What the host knows of its sequences (tokens written,
    tokens in the state) is as it will be when the round is done, so that any of them may end, be cancelled or be parked
    meanwhile: whatever that takes of the device is queued behind the round."""

    sequences: Many[Sequence]
    logits: Tensor
    """float32 [B, vocabulary], a row for each, valid until the next round is launched."""

    def among(self, lanes: Lanes) -> Flight | None:
        """Without those that gave their lanes back meanwhile; None when nobody is left."""
        return self._only([row for row, sequence in enumerate(self.sequences) if sequence in lanes])

    def without(self, sequence: Sequence) -> Flight | None:
        """Leave ``sequence`` out, which takes its logits along: its next token is chosen from them later."""
        if sequence not in self.sequences:
            return self
        row = self.sequences.index(sequence)
        sequence.logits = self.logits[row : row + 1].clone()
        return self._only([other for other in range(len(self.sequences)) if other != row])

    def _only(self, rows: list[int]) -> Flight | None:
        if len(rows) == len(self.sequences):
            return self
        return Flight([self.sequences[row] for row in rows], self.logits[rows]) if rows else None


class Attempt:
    """To launch a round before the tokens of the last one are told: a fault is that of those that go on, once they were
    told of these tokens."""

    def __init__(self) -> None:
        self.flight: Flight | None = None
        self._fault: Exception | None = None

    def make(self, launch: Callable[[], Flight]) -> None:
        try:
            self.flight = launch()
        except Exception as fault:
            self._fault = fault

    def check(self) -> None:
        """Raises what went wrong, if anything did."""
        if self._fault is not None:
            raise self._fault
