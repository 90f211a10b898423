"""NVFP4, FP8 and INT8 weights: packed parts, packing and exact unpacking, in plain torch.

NVFP4: blocks of 16 columns, values in E2M1 (0, 0.5, 1, 1.5, 2, 3, 4, 6 and negatives) times an E4M3 block scale times
one float32 scale for the matrix. FP8: E4M3 values times a float32 scale for the matrix, for each row, or for blocks of
128 × 128. INT8: integers times a float32 scale for the matrix or for each row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

BLOCK = 16
FP8_BLOCK = 128
E2M1_MAX = 6.0
E4M3_MAX = 448.0
INT8_MAX = 127.0
E2M1 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0])
_PAIRS = torch.stack([E2M1[torch.arange(256) % 16], E2M1[torch.arange(256) // 16]], dim=-1)
"""Byte → (even column, odd column): the low nibble comes first."""
_SCALE_STEPS = range(-2, 9)
"""E4M3 codes tried around the one that maps a block's largest value to 6 (8 to an octave): clipping it a little, or
mapping it to 4 or 3, where values lie closer, often costs less. Steps beyond these were never chosen."""

ScaleKind = Literal["tensor", "row", "block"]


@dataclass(frozen=True)
class PackedNVFP4:
    """weight = e2m1 · block_scale · scale.

    ``codes`` uint8 [rows, columns / 2]; ``block_scale`` float8_e4m3fn [rows, columns / 16]; ``scale`` float32 scalar;
    ``input_scale`` is the publisher's activation scale for W4A4, if there is one.
    """

    codes: Tensor
    block_scale: Tensor
    scale: Tensor
    input_scale: float | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.codes.shape[0], 2 * self.codes.shape[1]


@dataclass(frozen=True)
class PackedFP8:
    """weight = codes · scale.

    ``codes`` float8_e4m3fn [rows, …]; ``scale`` float32: scalar, [rows] or [⌈rows / 128⌉, ⌈columns / 128⌉] by ``kind``.
    """

    codes: Tensor
    scale: Tensor
    kind: ScaleKind

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.codes.shape)


@dataclass(frozen=True)
class PackedInt8:
    """weight = codes · scale.

    ``codes`` int8 [rows, …]; ``scale`` float32: scalar or [rows].
    """

    codes: Tensor
    scale: Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.codes.shape)


Packed = PackedNVFP4 | PackedFP8 | PackedInt8


@dataclass(frozen=True)
class Fragments:
    """An NVFP4 matrix in the order in which the card's kernels read it (``kernels.fused.nvfp4_layout``).

    ``words`` int32 [out / 16, in / 512, 1024], ``scales`` int32 [out / 16, in / 512, 128], both sides padded; ``scale``
    float32 scalar; the matrix is [``rows``, ``columns``].
    """

    words: Tensor
    scales: Tensor
    scale: Tensor
    rows: int
    columns: int
    input_scale: float | None = None


def dequantize(packed: Packed) -> Tensor:
    """The weight in float32, in the shape of the unquantised matrix."""
    if isinstance(packed, PackedNVFP4):
        return _dequantize_nvfp4(packed)
    if isinstance(packed, PackedFP8) and packed.kind == "block":
        return _dequantize_blocks(packed)
    values = packed.codes.float()
    return values.mul_(packed.scale.view(-1, *(1,) * (values.dim() - 1)) if packed.scale.dim() else packed.scale)


def quantize_nvfp4(weight: Tensor) -> PackedNVFP4:
    """Round a matrix [rows, columns], columns a multiple of 16, choosing for each block the E4M3 scale of least squared
    error. ``scale`` is a power of two, so that the divisor which compressed-tensors stores is exact."""
    blocks = weight.float().reshape(weight.shape[0], -1, BLOCK)
    scale = nvfp4_scale(weight)
    block_scale = nvfp4_block_scale(blocks / scale)
    codes = encode_e2m1(blocks / (block_scale.float() * scale)[..., None])
    return PackedNVFP4(pack_nibbles(codes.reshape(weight.shape)), block_scale, scale)


def nvfp4_scale(weight: Tensor) -> Tensor:
    """Power of two that brings the largest block scale of a matrix into E4M3's top octave; float32 scalar."""
    largest = weight.abs().max().float().clamp(min=torch.finfo(torch.float32).tiny)
    return torch.exp2(torch.ceil(torch.log2(largest / (E2M1_MAX * E4M3_MAX))))


def nvfp4_block_scale(blocks: Tensor, importance: Tensor | None = None) -> Tensor:
    """E4M3 scale of least squared error for each block: float [..., 16] (already divided by the matrix scale) →
    float8_e4m3fn [...]. ``importance`` [16] weighs the columns' errors."""
    largest = (blocks.abs().amax(-1) / E2M1_MAX).clamp(max=E4M3_MAX)
    start = largest.to(torch.float8_e4m3fn).view(torch.uint8).int()
    best = torch.full_like(largest, float("inf"))
    chosen = torch.zeros_like(start)
    for step in _SCALE_STEPS:
        code = (start + step).clamp(1, 0x7E)  # 0x7E is 448, the largest finite value; 0 would erase the block
        scale = code.to(torch.uint8).view(torch.float8_e4m3fn).float()[..., None]
        error = (round_e2m1(blocks / scale) * scale - blocks).square()
        error = error.sum(-1) if importance is None else error @ importance
        better = error < best
        best = torch.where(better, error, best)
        chosen = torch.where(better, code, chosen)
    return chosen.to(torch.uint8).view(torch.float8_e4m3fn)


def round_e2m1(values: Tensor) -> Tensor:
    """Nearest E2M1 value of each; ties go to the even code, values beyond ±6 saturate."""
    magnitude = values.abs().clamp(max=E2M1_MAX)
    step = torch.where(magnitude < 2, 0.5, torch.where(magnitude < 4, 1.0, 2.0))
    return torch.copysign((magnitude / step).round() * step, values)


def encode_e2m1(values: Tensor) -> Tensor:
    """Code (uint8 0–15) of the nearest E2M1 value, as :func:`round_e2m1` rounds."""
    v = round_e2m1(values).abs()
    code = torch.where(v < 2, 2 * v, torch.where(v < 4, v + 2, v / 2 + 4)).to(torch.uint8)
    return code + 8 * torch.signbit(values).to(torch.uint8)


def pack_nibbles(codes: Tensor) -> Tensor:
    """[rows, columns] codes → uint8 [rows, columns / 2]: the even column is the low nibble."""
    pairs = codes.reshape(codes.shape[0], -1, 2)
    return pairs[..., 0] | (pairs[..., 1] << 4)


def quantize_fp8(weight: Tensor) -> PackedFP8:
    """Round to E4M3 with one scale a row (leading axis), the row's largest magnitude mapped to 448."""
    rows, scale = _by_row(weight, E4M3_MAX)
    return PackedFP8(rows.to(torch.float8_e4m3fn).reshape(weight.shape), scale, "row")


def quantize_int8(weight: Tensor) -> PackedInt8:
    """Round to integers with one scale a row (leading axis), the row's largest magnitude mapped to 127.

    At the same size a third of FP8's error on rows without outliers: seven bits of magnitude against E4M3's four.
    """
    rows, scale = _by_row(weight, INT8_MAX)
    return PackedInt8(rows.round().to(torch.int8).reshape(weight.shape), scale)


def _by_row(weight: Tensor, largest: float) -> tuple[Tensor, Tensor]:
    """(rows [rows, values] scaled to ±largest, their scales [rows])."""
    rows = weight.float().reshape(weight.shape[0], -1)
    scale = (rows.abs().amax(-1) / largest).clamp(min=torch.finfo(torch.float32).tiny)
    return rows / scale[:, None], scale


def _dequantize_nvfp4(packed: PackedNVFP4) -> Tensor:
    rows, columns = packed.shape
    values = _PAIRS[packed.codes.int()].view(rows, columns // BLOCK, BLOCK)
    values *= (packed.block_scale.float() * packed.scale)[..., None]
    return values.view(rows, columns)


def _dequantize_blocks(packed: PackedFP8) -> Tensor:
    rows, columns = packed.shape
    scale = packed.scale.repeat_interleave(FP8_BLOCK, 0)[:rows].repeat_interleave(FP8_BLOCK, 1)[:, :columns]
    return packed.codes.float().mul_(scale)
