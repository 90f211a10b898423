"""Choosing tokens on a card: two launches and one wait a round, whatever its rows ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from engine.messages import SamplingParams

GREEDY = 1e-5
"""Temperatures below this are greedy: dividing by them would overflow."""
MOST = 128
"""Candidates that the card looks at: ``kernels.fused.sampling.CANDIDATES``' largest."""


class Row(Protocol):
    """What a row asks for."""

    @property
    def params(self) -> SamplingParams: ...
    @property
    def uniform(self) -> float: ...
    @property
    def repetition(self) -> bool: ...
    @property
    def additive(self) -> bool: ...


@dataclass(frozen=True)
class Drawn:
    """One row's token; where ``decided`` is false it is only the most likely one, and the row is to be drawn elsewhere:
    nothing bounds it, or its cuts keep more than the card looks at."""

    token: int
    best: float
    """The largest logit after penalties and mask."""
    decided: bool


class CardSampler:
    """Stages settings at fixed addresses and launches ``kernels.fused.sampling``."""

    def __init__(self, divisor: Tensor, reduction: Tensor, bits: Tensor) -> None:
        """The buffers of penalties float32 [lanes, V] and of masks int32 [lanes, words] that rows refer to."""
        lanes, device = len(divisor), divisor.device
        pinned = device.type == "cuda"
        self._divisor, self._reduction, self._bits = divisor, reduction, bits
        self._numbers_staged = torch.zeros(lanes, 5, dtype=torch.float64, pin_memory=pinned)
        self._places_staged = torch.zeros(2, lanes, dtype=torch.int32, pin_memory=pinned)
        self._numbers = torch.zeros(lanes, 5, dtype=torch.float64, device=device)
        self._places = torch.zeros(2, lanes, dtype=torch.int32, device=device)
        self._results = torch.zeros(lanes, 4, dtype=torch.float64, pin_memory=pinned)
        self._done = torch.cuda.Event() if pinned else None

    def launch(self, logits: Tensor, lanes: Sequence[int], rows: Sequence[Row], masked: Sequence[bool]) -> Tensor:
        """Begin to choose one token for each row of logits float32 [B, V]; ``masked`` says whose mask counts. One draw
        at a time: :meth:`collect` comes before the next.

        Returns:
            int64 [B] on the card: the tokens of rows that turn out decided.
        """
        from kernels.fused.sampling import CANDIDATES, DIVISOR, MASK, REDUCTION, Settings, sample

        count, vocabulary = logits.shape
        flags = [
            DIVISOR * row.repetition | REDUCTION * row.additive | MASK * held
            for row, held in zip(rows, masked, strict=True)
        ]
        numbers = [_numbers(row, vocabulary) for row in rows]
        # What was staged for the draw before has been taken: its results were waited for.
        self._numbers_staged[:count] = torch.tensor(numbers, dtype=torch.float64)
        self._places_staged[:, :count] = torch.tensor([list(lanes), flags], dtype=torch.int32)
        self._numbers.copy_(self._numbers_staged, non_blocking=True)
        self._places.copy_(self._places_staged, non_blocking=True)
        widest = max(int(limit) for _, _, _, limit, _ in numbers)
        candidates = next((size for size in CANDIDATES if size >= widest), CANDIDATES[-1])
        settings = Settings(
            self._numbers[:count],
            self._places[0, :count],
            self._places[1, :count],
            self._divisor,
            self._reduction,
            self._bits.index_select(0, self._places[0, :count]),
        )
        chosen = sample(logits, settings, candidates=candidates)
        results = torch.cat([chosen.ids[:, None].double(), chosen.report.double()], dim=1)
        self._results[:count].copy_(results, non_blocking=True)
        if self._done is not None:
            self._done.record()
        return chosen.ids

    def collect(self, count: int) -> list[Drawn]:
        """What became of the ``count`` rows of the last :meth:`launch`. Waits for the draw, not for what was queued
        behind it."""
        if self._done is not None:
            self._done.synchronize()
        return [Drawn(int(token), best, done != 0) for token, best, _, done in self._results[:count].tolist()]


def _numbers(row: Row, vocabulary: int) -> tuple[float, float, float, float, float]:
    """As ``kernels.fused.sampling.Settings.numbers``."""
    params = row.params
    if params.temperature < GREEDY:
        return 1.0, 1.0, 0.0, 1.0, 0.0
    top_k = params.top_k if 0 < params.top_k < vocabulary else vocabulary
    return params.temperature, params.top_p, params.min_p, top_k, row.uniform
