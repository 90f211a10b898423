"""The attention readout of a chunk on the card: scores of named heads at the last columns of runs."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.model.decoder import Readout, Run
from kernels.attention import read_peaks, read_scores
from kernels.fused.fp8 import unpack
from kernels.fused.pool import LayerPool, lane_rows


class Reading:
    """What a chunk is asked to read. Results stay on the device until :meth:`finish`, so that no layer waits."""

    def __init__(self, readouts: Sequence[Readout], runs: Sequence[Run], device: torch.device) -> None:
        self._readouts = [_One(readout, runs[readout.run], device) for readout in readouts]

    def read(self, layer: int, q: Tensor, pool: LayerPool, table: Tensor) -> None:
        """Read what is wanted of ``layer``: q [N, Hq, D] of the chunk's columns, the keys that stand in the pool."""
        for one in self._readouts:
            if layer in one.layers:
                one.read(layer, q, pool, table)

    def finish(self) -> None:
        """Bring the results to the host."""
        for one in self._readouts:
            one.finish()


class _One:
    def __init__(self, readout: Readout, run: Run, device: torch.device) -> None:
        span = readout.span
        self.layers = frozenset(span.layers)
        self._readout = readout
        self._last = run.start + run.length - 1
        self._positions = torch.tensor([*range(span.start, span.end), *span.extra]).to(device)
        self._cells = span.end - span.start
        wide = len(self._positions)
        self._scores = torch.full((len(span.heads), wide), float("nan"), device=device)
        self._best = torch.zeros(len(span.peaks), dtype=torch.int64, device=device)
        self._peaks = torch.full((len(span.peaks), 5), float("nan"), device=device)

    def read(self, layer: int, q: Tensor, pool: LayerPool, table: Tensor) -> None:
        span = self._readout.span
        keys = unpack(pool.k, pool.k_scale, lane_rows(table[self._readout.run], self._positions, pool.page))
        query = q[self._last].to(keys.dtype)
        rows, heads = _at_layer(span.heads, layer, q.device)
        if rows:
            self._scores[rows] = read_scores(query, keys, heads)
        rows, heads = _at_layer(span.peaks, layer, q.device)
        if rows:
            self._best[rows], self._peaks[rows] = read_peaks(query, keys[: self._cells], heads, span.columns)

    def finish(self) -> None:
        readout = self._readout
        readout.scores, readout.cells, readout.peaks = self._scores.cpu(), self._best.cpu(), self._peaks.cpu()


def _at_layer(heads: Sequence[tuple[int, int]], layer: int, device: torch.device) -> tuple[list[int], Tensor]:
    """Which of ``heads`` are of this layer: their places in the list, and their numbers within the layer."""
    chosen = [(row, head) for row, (at, head) in enumerate(heads) if at == layer]
    return [row for row, _ in chosen], torch.tensor([head for _, head in chosen], device=device)
