"""The attention readout of a chunk on the card: scores of named heads at the last columns of runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.model.decoder import Readout, Run
from kernels.fused.pool import LayerPool
from kernels.fused.readout import pick_peaks, read_scores


class Reading:
    """What a chunk is asked to read. Results stay on the device until :meth:`finish`, so that no layer waits."""

    def __init__(self, readouts: Sequence[Readout], runs: Sequence[Run], device: torch.device) -> None:
        self._readouts = [_One(readout, runs[readout.run], device) for readout in readouts]

    def read(self, layer: int, q: Tensor, pool: LayerPool, table: Tensor) -> None:
        """Read what is wanted of ``layer``: q [N, Hq, D] of the chunk's columns, the keys that stand in the pool."""
        for one in self._readouts:
            one.read(layer, q, pool, table)

    def finish(self) -> None:
        """Bring the results to the host."""
        for one in self._readouts:
            one.finish()


@dataclass(frozen=True)
class _Wanted:
    """Heads of one layer, and the rows of their scores: int32, on the device."""

    heads: Tensor
    rows: Tensor


class _One:
    def __init__(self, readout: Readout, run: Run, device: torch.device) -> None:
        span = readout.span
        cells = span.end - span.start
        self._readout = readout
        self._span = span.start, span.end
        self._column = run.start + run.length - 1
        self._extra = torch.tensor(span.extra, dtype=torch.int32, device=device)
        self._nothing = self._extra[:0]
        self._heads = _by_layer(span.heads, device)
        self._peaks = _by_layer(span.peaks, device)
        self._scores = torch.full((len(span.heads), cells + len(span.extra)), float("nan"), device=device)
        self._cells = torch.full((len(span.peaks), cells), float("nan"), device=device)

    def read(self, layer: int, q: Tensor, pool: LayerPool, table: Tensor) -> None:
        pages = table[self._readout.run]
        for wanted, extra, out in (
            (self._heads.get(layer), self._extra, self._scores),
            (self._peaks.get(layer), self._nothing, self._cells),
        ):
            if wanted is not None:
                read_scores(q, self._column, wanted.heads, wanted.rows, pool, pages, self._span, extra, out)

    def finish(self) -> None:
        readout, columns = self._readout, self._readout.span.columns
        readout.scores = self._scores.cpu()
        best = torch.zeros(len(self._cells), dtype=torch.int64, device=self._cells.device)
        around = torch.full((len(self._cells), 5), float("nan"), device=self._cells.device)
        if len(self._cells):
            pick_peaks(self._cells, columns, best, around)
        readout.cells, readout.peaks = best.cpu(), around.cpu()


def _by_layer(heads: Sequence[tuple[int, int]], device: torch.device) -> dict[int, _Wanted]:
    found: dict[int, list[tuple[int, int]]] = {}
    for row, (layer, head) in enumerate(heads):
        found.setdefault(layer, []).append((head, row))
    if not found:
        return {}
    # One copy for all layers. Each list begins on a boundary of 16 bytes: kernels are compiled for that.
    places, size = dict[int, slice](), 0
    for layer, pairs in found.items():
        places[layer] = slice(size, size + len(pairs))
        size += -(-len(pairs) // 4) * 4
    numbers = torch.zeros(2, size, dtype=torch.int32)
    for layer, pairs in found.items():
        numbers[:, places[layer]] = torch.tensor(pairs, dtype=torch.int32).T
    head, row = numbers.to(device, non_blocking=True)
    return {layer: _Wanted(head[place], row[place]) for layer, place in places.items()}
