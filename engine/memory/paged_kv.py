"""The KV pool: keys and values of the full-attention layers in pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from engine.config import TextConfig
from engine.memory.lane_state import copy_between
from engine.memory.sizes import kv_row_bytes


class PagedRun(Protocol):
    """What the pool needs to know of a run (``engine.model.decoder.Run``)."""

    @property
    def length(self) -> int: ...
    @property
    def past(self) -> int: ...
    @property
    def pages(self) -> Sequence[int]: ...


class PagedKV:
    """Buffers for ``pages`` pages, reserved once and never grown.

    Kept in the compute type, or packed ("fp8"): then a row is bytes, the e4m3 codes of all heads and behind them a
    float32 scale a head.
    """

    def __init__(
        self,
        config: TextConfig,
        pages: int,
        page_size: int,
        device: torch.device,
        dtype: torch.dtype,
        kv_format: str = "compute",
    ) -> None:
        """``kv_format``: "fp8", or any other name for the compute type ``dtype``."""
        self.page_size = page_size
        self.packed = kv_format == "fp8"
        self._heads, self._dim = config.num_kv_heads, config.head_dim
        row = (kv_row_bytes("fp8", self._dim) * self._heads,) if self.packed else (self._heads, self._dim)
        shape = (len(config.full_layers), 2, pages * page_size, *row)
        # Not zeroed: nothing is read that was not written, and untouched memory costs no resident page on the host.
        self._rows = torch.empty(shape, dtype=torch.uint8 if self.packed else dtype, device=device)

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes

    @property
    def rows_in_all(self) -> int:
        """Tokens that the pool holds."""
        return self._rows.shape[2]

    @property
    def page_bytes(self) -> int:
        return self.page(0).nbytes if self._rows.numel() else 0

    @property
    def dtype(self) -> torch.dtype:
        """Of what :meth:`page` gives: the compute type, or uint8 where rows are packed."""
        return self._rows.dtype

    @property
    def is_cuda(self) -> bool:
        return self._rows.is_cuda

    def layer(self, layer: int) -> tuple[Tensor, Tensor]:
        """Keys and values [pool rows, Hkv, D] of full-attention layer number ``layer`` (views): as they are, or e4m3
        codes where rows are packed."""
        if not self.packed:
            return self._rows[layer, 0], self._rows[layer, 1]
        codes = self._rows[layer, :, :, : self._heads * self._dim].view(torch.float8_e4m3fn)
        codes = codes.unflatten(-1, (self._heads, self._dim))
        return codes[0], codes[1]

    def scales(self, layer: int) -> tuple[Tensor, Tensor] | None:
        """float32 [pool rows, Hkv] of a layer's keys and values (views); None where rows are not packed."""
        if not self.packed:
            return None
        scales = self._rows[layer].view(torch.float32)[..., self._heads * self._dim // 4 :]
        return scales[0], scales[1]

    def rows(self, runs: Sequence[PagedRun]) -> Tensor:
        """Pool rows of all new tokens of all runs, in order: int64 [T]."""
        size = self.page_size
        rows = [
            run.pages[position // size] * size + position % size
            for run in runs
            for position in range(run.past, run.past + run.length)
        ]
        return torch.tensor(rows, device=self._rows.device)

    def write(self, layer: int, rows: Tensor, keys: Tensor, values: Tensor) -> None:
        """Store keys and values [T, Hkv, D] of full-attention layer number ``layer`` at pool rows [T]. Not where rows
        are packed."""
        self._rows[layer, 0].index_copy_(0, rows, keys)
        self._rows[layer, 1].index_copy_(0, rows, values)

    def read(self, layer: int, pages: Sequence[int], length: int) -> tuple[Tensor, Tensor]:
        """Keys and values [length, Hkv, D] of a lane's first ``length`` tokens; a view where its pages stand side by
        side, a copy elsewhere."""
        size = self.page_size
        used = pages[: -(-length // size)]
        first = used[0]
        if used[-1] - first == len(used) - 1 and all(page == first + i for i, page in enumerate(used)):
            span = self._rows[layer, :, first * size : first * size + length]
            return span[0], span[1]
        index = torch.tensor(used, device=self._rows.device)
        paged = self._rows[layer].view(2, -1, size, *self._rows.shape[3:])
        whole = paged.index_select(1, index).flatten(1, 2)[:, :length]
        return whole[0], whole[1]

    def copy_page(self, source: int, target: int) -> None:
        """Copy one page in all layers: a page that two owners are about to write differently."""
        size = self.page_size
        self._rows[:, :, target * size : (target + 1) * size] = self._rows[:, :, source * size : (source + 1) * size]

    def page(self, page: int) -> Tensor:
        """View [full-attention layers, 2, page size, Hkv, D] of one page in all layers."""
        return self._rows[:, :, page * self.page_size : (page + 1) * self.page_size]

    def host_pages(self, count: int) -> Tensor:
        """Room for ``count`` pages in host memory [count, *page], page-locked when the pool is on a GPU. Not zeroed."""
        shape = (count, *self.page(0).shape)
        return torch.empty(shape, dtype=self._rows.dtype, pin_memory=self.is_cuda and count > 0)

    def copy_out(self, page: int, target: Tensor) -> None:
        """Copy a page's first tokens to ``target``, shaped like :meth:`page` with as many tokens as are wanted, on any
        device (on the current stream)."""
        copy_between(_parts(self.page(page)[:, :, : target.shape[2]]), _parts(target))

    def copy_in(self, source: Tensor, page: int) -> None:
        """Copy ``source``, shaped alike, into a page from its start."""
        copy_between(_parts(source), _parts(self.page(page)[:, :, : source.shape[2]]))


def _parts(page: Tensor) -> Tensor:
    """[layers · 2, tokens, Hkv, D], each part contiguous; always a view."""
    return page.view(-1, *page.shape[2:])
