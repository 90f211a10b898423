"""A weight matrix on the card, in one of three formats, and the product with it: x → x Wᵀ.

A few columns (a round) are bound by the bytes of the weights, which are read as they are stored. Many columns (a chunk
of prompts) are bound by arithmetic: the matrix is unpacked into scratch, at the speed of memory, and multiplied in BF16
by cuBLAS.
"""

from __future__ import annotations

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.memory.sizes import SCRATCH
from kernels.fused.dense_linear import dense_linear, fp8_linear, unpack_fp8
from kernels.fused.nvfp4_layout import NVFP4Weight
from kernels.fused.nvfp4_linear import nvfp4_linear, wants_fragments
from kernels.fused.nvfp4_unpack import nvfp4_matmul
from kernels.fused.nvfp4_w4a4 import multiplies_nvfp4, w4a4_matmul
from kernels.fused.partial import Partial

FEW = 128
"""Columns up to which weights are read in their own format: beyond that unpacking them costs less than reading them
again for every 64 columns."""


class Matrix(Protocol):
    """BF16 [N, in] → the product [N, out]."""

    @property
    def nbytes(self) -> int: ...

    def wants_fragments(self, columns: int) -> bool:
        """Whether so many columns are taken in the order of ``kernels.fused.activations``."""
        return False

    def __call__(self, x: Tensor, *, in_fragments: bool = False) -> Partial: ...


class Scratch:
    """Room for unpacked weights, shared by all matrices: reserved by the largest."""

    def __init__(self, device: torch.device) -> None:
        self.numbers = torch.empty(0, dtype=torch.bfloat16, device=device)

    @property
    def nbytes(self) -> int:
        return self.numbers.nbytes

    def reserve(self, size: int) -> None:
        """Room for ``size`` numbers, or for as many as are unpacked at a time; what was there is lost."""
        size = min(size, SCRATCH)
        if size > self.numbers.numel():
            device = self.numbers.device
            self.numbers = torch.empty(0, dtype=torch.bfloat16, device=device)
            self.numbers = torch.empty(size, dtype=torch.bfloat16, device=device)


class NVFP4Matrix(Matrix):
    """``input_scale`` is that of its activations, if the checkpoint publishes one: cards that multiply NVFP4 numbers do
    so with prompts then."""

    def __init__(self, weight: NVFP4Weight, scratch: Scratch, input_scale: float | None = None) -> None:
        self.weight = weight
        self._scratch = scratch
        self._input_scale = input_scale if multiplies_nvfp4(weight.words.device) else None
        scratch.reserve(weight.rows * weight.columns)

    @property
    def nbytes(self) -> int:
        return self.weight.nbytes

    def wants_fragments(self, columns: int) -> bool:
        return columns <= FEW and wants_fragments(self.weight, columns, self.weight.words.device)

    def __call__(self, x: Tensor, *, in_fragments: bool = False) -> Partial:
        if x.shape[0] <= FEW:
            return nvfp4_linear(x, self.weight, in_fragments=in_fragments, dependent=True)
        if self._input_scale is not None:
            return Partial.of(w4a4_matmul(x, self.weight, self._input_scale, self._scratch.numbers))
        return Partial.of(nvfp4_matmul(x, self.weight, self._scratch.numbers))


class FP8Matrix(Matrix):
    """float8_e4m3fn codes [out, in]; ``scale`` float32 [out], or one for each block of 128 × 128."""

    def __init__(self, codes: Tensor, scale: Tensor) -> None:
        self._codes = codes
        self._scale = scale

    @property
    def nbytes(self) -> int:
        return self._codes.nbytes + self._scale.nbytes

    def __call__(self, x: Tensor, *, in_fragments: bool = False) -> Partial:
        assert not in_fragments
        return Partial.of(self._product(x, torch.bfloat16))

    def logits(self, x: Tensor) -> Tensor:
        """float32 [N, out]."""
        return self._product(x, torch.float32)

    def _product(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        if x.shape[0] <= FEW:
            return fp8_linear(x, self._codes, self._scale, dtype, dependent=True)
        return F.linear(x, unpack_fp8(self._codes, self._scale)).to(dtype)


class DenseMatrix(Matrix):
    """BF16 [out, in]."""

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight

    @property
    def nbytes(self) -> int:
        return self.weight.nbytes

    def __call__(self, x: Tensor, *, in_fragments: bool = False) -> Partial:
        assert not in_fragments
        return Partial.of(dense_linear(x, self.weight, dependent=True))

    def logits(self, x: Tensor) -> Tensor:
        """float32 [N, out]."""
        return dense_linear(x, self.weight, torch.float32, dependent=True)
