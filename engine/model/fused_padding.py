"""Short chunks of one run, padded to one of a few sizes: all that they read lies in buffers that stand still.

A prompt of 20 tokens is some hundred kernels long and each does little: launching them takes longer than running them.
Padded, every chunk of a size is the same kernels on the same addresses, whatever its length, its lane and its context,
so that they can be captured once and replayed (``engine.model.fused_graphs``). Chunks are padded whether they are
replayed or launched kernel by kernel: both give the same bits.

Columns beyond the run are nobody's. Kernels take the run's bounds from the device; what would write state leaves such
columns out, and no other kernel lets one column touch another.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from engine.config import TextConfig
from engine.memory.paged_kv import PagedKV
from engine.memory.sizes import PADDED
from engine.model.decoder import Run
from kernels.fused.pool import LayerPool

# Where the int32 numbers of a chunk stand, each on a boundary of 16 bytes.
_STARTS, _SLOT, _PAST, _LAST, _ROWS = 0, 4, 8, 12, 16
_TABLE = _ROWS + PADDED[-1]


def padded_size(columns: int) -> int | None:
    """Columns that a run of so many is padded to; None where it is read as it is."""
    return next((size for size in PADDED if columns <= size), None)


class PaddedInputs:
    """The inputs of a chunk of one run, and the queries that readouts may ask of it."""

    def __init__(self, text: TextConfig, kv: PagedKV, device: torch.device, dtype: torch.dtype) -> None:
        most = PADDED[-1]
        self._page = kv.page_size
        self._x = torch.zeros(most, text.hidden_size, dtype=dtype, device=device)
        self._positions = torch.zeros(3, most, dtype=torch.int64, device=device)
        self._numbers = torch.zeros(_TABLE + kv.rows_in_all // kv.page_size, dtype=torch.int32, device=device)
        queries = len(text.full_layers), text.num_heads, text.head_dim
        self._queries = torch.zeros(queries, dtype=dtype, device=device)
        self._numbered = {layer: number for number, layer in enumerate(text.full_layers)}

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in (self._x, self._positions, self._numbers, self._queries))

    def stage(self, x: Tensor, positions: Tensor, run: Run, *, padding: float = 0.0) -> int:
        """Bring a run's columns to their place: x [N, hidden], positions int64 [3, N]. Returns the size they are padded
        to, with columns of ``padding``."""
        count, size = run.length, padded_size(run.length)
        if size is None or len(x) != count:
            raise ValueError(f"A chunk of {len(x)} columns and a run of {count} cannot be padded to {PADDED}.")
        pages = np.asarray(run.pages, np.int32)
        at = np.arange(run.past, run.past + count)
        numbers = np.zeros(_TABLE + len(pages), np.int32)
        numbers[_STARTS + 1] = count
        numbers[_SLOT], numbers[_PAST], numbers[_LAST] = run.slot, run.past, count - 1
        numbers[_ROWS:_TABLE] = -1
        numbers[_ROWS : _ROWS + count] = pages[at // self._page] * self._page + at % self._page
        numbers[_TABLE:] = pages
        # From memory that is not page-locked: it may go as soon as this returns.
        self._numbers[: len(numbers)].copy_(torch.from_numpy(numbers), non_blocking=True)
        self._positions[:, :count].copy_(positions)
        self._x[:count].copy_(x)
        if count < size:
            self._x[count:size].fill_(padding)
        return size

    def x(self, columns: int) -> Tensor:
        """The residual stream of the first columns: what was staged, and what the layers make of it."""
        return self._x[:columns]

    def positions(self, columns: int) -> Tensor:
        return self._positions[:, :columns]

    @property
    def starts(self) -> Tensor:
        """int32 [2]: 0 and the run's length."""
        return self._numbers[_STARTS : _STARTS + 2]

    @property
    def slots(self) -> Tensor:
        """int32 [1], like :attr:`past`."""
        return self._numbers[_SLOT : _SLOT + 1]

    @property
    def past(self) -> Tensor:
        return self._numbers[_PAST : _PAST + 1]

    def rows(self, columns: int) -> Tensor:
        """int32 [N]: pool rows; -1 for a column that is nobody's."""
        return self._numbers[_ROWS : _ROWS + columns]

    @property
    def table(self) -> Tensor:
        """int32 [1, pages of the pool]: the run's pages, and behind them anything."""
        return self._numbers[_TABLE:][None]

    def read(self, layer: int, q: Tensor, pool: LayerPool, table: Tensor) -> None:
        """Keep the queries of the run's last column, for readouts once all layers have passed: its keys stay."""
        number = self._numbered[layer]
        torch.index_select(q, 0, self._numbers[_LAST : _LAST + 1], out=self._queries[number : number + 1])

    def queries(self, layer: int) -> Tensor:
        """[1, Hq, D] of the run's last column."""
        number = self._numbered[layer]
        return self._queries[number : number + 1]
