"""One layer's share of the KV pool, as the attention kernels address it.

A pool is pages of ``page`` rows; a row holds one token's keys (or values) of all KV heads. Position p of a lane stands
in row ``table[lane, p // page] · page + p % page``. Rows are BF16 (or, in tests, float32), or FP8: e4m3 codes with one
float32 scale per row and KV head. Keys and values are views of a larger pool, so their rows and heads may stand at any
stride; within a head values are contiguous.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.fused.fp8 import FP8, unpack
from kernels.served import HEAD_DIMS


@dataclass(frozen=True)
class LayerPool:
    """Keys and values of one attention layer.

    ``k``, ``v``: [rows, Hkv, D] with the same strides; ``k_scale``, ``v_scale``: float32 [rows, Hkv], likewise, where
    the type is FP8, else None.
    """

    k: Tensor
    v: Tensor
    k_scale: Tensor | None = None
    v_scale: Tensor | None = None
    page: int = 64

    def __post_init__(self) -> None:
        if self.k.dim() != 3 or self.k.shape != self.v.shape or self.k.stride() != self.v.stride():
            raise ValueError(
                f"Keys {list(self.k.shape)} and values {list(self.v.shape)} must be alike, [rows, heads, dim]."
            )
        if self.k.stride(2) != 1:
            raise ValueError(f"A head's values must be contiguous, not {self.k.stride(2)} elements apart.")
        if self.dim not in HEAD_DIMS:
            raise ValueError(f"Attention kernels serve head dimensions {HEAD_DIMS}, not {self.dim}.")
        if self.page < 16 or self.page & (self.page - 1):
            raise ValueError(f"A page must hold a power of two of rows, 16 or more, not {self.page}.")
        if self.packed and (self.k_scale is None or self.v_scale is None):
            raise ValueError("FP8 keys and values need their scales.")

    @property
    def packed(self) -> bool:
        return self.k.dtype == FP8

    @property
    def heads(self) -> int:
        return self.k.shape[1]

    @property
    def dim(self) -> int:
        return self.k.shape[2]

    def arguments(
        self, codes: torch.dtype = torch.uint8
    ) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None, int, int, int, int]:
        """What a kernel takes: k, v, their scales, and the strides of a row and a head of values and of scales.

        FP8 codes come as ``codes``, a type of as many bytes as a kernel reads at a time; strides count in it.
        """
        scale = self.k_scale
        k, v = (self.k.view(codes), self.v.view(codes)) if self.packed else (self.k, self.v)
        scale_strides = (0, 0) if scale is None else (scale.stride(0), scale.stride(1))
        return k, v, scale, self.v_scale, k.stride(0), k.stride(1), *scale_strides

    def gather(self, pages: Tensor, length: int) -> tuple[Tensor, Tensor]:
        """Keys and values [length, Hkv, D] of a lane's first ``length`` tokens, float32 where packed (reference)."""
        rows = lane_rows(pages, torch.arange(length, device=pages.device), self.page)
        return unpack(self.k, self.k_scale, rows), unpack(self.v, self.v_scale, rows)


def lane_rows(pages: Tensor, positions: Tensor, page: int) -> Tensor:
    """Pool rows of a lane's ``positions``: int64 [n]; ``pages``: its pages in order."""
    return pages.long()[positions // page] * page + positions % page
