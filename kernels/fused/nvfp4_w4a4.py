"""Prompts' products with activations in NVFP4 too, on cards that multiply such numbers (SM120).

Checkpoints calibrated for it publish a scale for the activations of each matrix. Blocks of 16 activations of a column
are then rounded as the weights are: E2M1 codes, an E4M3 scale for the block, the published scale for all. The matrix is
put back in its natural order in scratch, in nine sixteenths of a byte a weight where :mod:`kernels.fused.nvfp4_unpack`
writes two bytes; the product is several times as fast as one in BF16, and accumulates in float32.
"""

from __future__ import annotations

from itertools import pairwise

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.fused.launch import ceil_div
from kernels.fused.nvfp4_layout import ROWS, NVFP4Weight, _decode_pairs, decode_scales, decode_words
from kernels.registry import use_triton

_E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def multiplies_nvfp4(device: torch.device) -> bool:
    """Whether the card has instructions for products of block-scaled four-bit numbers that Triton uses."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device)[0] == 12


def w4a4_matmul(x: Tensor, weight: NVFP4Weight, input_scale: float, scratch: Tensor) -> Tensor:
    """x [N, in] bfloat16, rounded to NVFP4, · weightᵀ → bfloat16 [N, out].

    Args:
        input_scale: the published scale of the activations.
        scratch: any type, flat, 16-byte aligned, for 64 rows of the matrix at least: 9 / 16 bytes a weight.
    """
    room = scratch.view(torch.uint8)
    k = weight.columns
    step = min(room.numel() // (k * 9 // 16) // ROWS * ROWS, weight.rows)
    if step == 0:
        raise ValueError(
            f"{ROWS} rows of {k} columns take a scratch of {ROWS * k * 9 // 16} bytes, not {room.numel()}."
        )
    codes, scales = quantize_activations(x, input_scale, k)
    out = torch.empty(x.shape[0], weight.out_features, dtype=torch.bfloat16, device=x.device)
    for start in range(0, weight.out_features, step):
        rows = min(step, weight.rows - start)
        part = weight.rows_from(start)
        natural = natural_nvfp4(part, room[: rows * k * 9 // 16], rows)
        _product(codes, scales, *natural, part.factors, input_scale, out[:, start : start + rows])
    return out


def quantize_activations(x: Tensor, input_scale: float, columns: int) -> tuple[Tensor, Tensor]:
    """x [N, in] → (codes uint8 [N, columns / 2], the even column in the low nibble; block scales float8_e4m3fn
    [N, columns / 16]), zero beyond ``in``. A block's largest value becomes a 6, ties go to the even code."""
    if not use_triton(x):
        return quantize_activations_reference(x, input_scale, columns)
    codes = torch.empty(x.shape[0], columns // 2, dtype=torch.uint8, device=x.device)
    scales = torch.empty(x.shape[0], columns // 16, dtype=torch.float8_e4m3fn, device=x.device)
    _quantize_kernel[(x.shape[0], ceil_div(columns, 1024))](
        x, codes, scales, x.stride(0), x.shape[1], columns, 1.0 / (6.0 * input_scale), 1.0 / input_scale
    )
    return codes, scales


def quantize_activations_reference(x: Tensor, input_scale: float, columns: int) -> tuple[Tensor, Tensor]:
    """:func:`quantize_activations` in plain torch."""
    blocks = torch.nn.functional.pad(x.float(), (0, columns - x.shape[1])).view(x.shape[0], -1, 16)
    scales = (blocks.abs().amax(-1) * (1.0 / (6.0 * input_scale))).clamp(max=448.0).to(torch.float8_e4m3fn)
    divisor = scales.float()[..., None]
    values = torch.where(divisor > 0, blocks * (1.0 / input_scale) / divisor, 0.0)
    size = values.abs()
    code = torch.zeros_like(size, dtype=torch.uint8)
    for low, high in pairwise(_E2M1):
        middle = (low + high) / 2
        code += (size > middle if _E2M1.index(low) % 2 == 0 else size >= middle).to(torch.uint8)
    code += 8 * (values < 0).to(torch.uint8)
    pairs = code.view(x.shape[0], -1, 2)
    return pairs[..., 0] | (pairs[..., 1] << 4), scales


def natural_nvfp4(weight: NVFP4Weight, room: Tensor, rows: int) -> tuple[Tensor, Tensor]:
    """The first ``rows`` (a multiple of 16) in a checkpoint's order, in ``room``: (codes uint8 [rows, columns / 2],
    block scales float8_e4m3fn [rows, columns / 16])."""
    k = weight.columns
    codes = room[: rows * k // 2].view(rows, k // 2)
    scales = room[rows * k // 2 : rows * k * 9 // 16].view(rows, k // 16)
    if use_triton(room):
        _natural_kernel[(rows // 16 * (k // 512),)](weight.words, weight.scales, codes.view(torch.int32), scales, k)
    else:
        natural = natural_nvfp4_reference(weight, rows)
        codes.copy_(natural[0])
        scales.copy_(natural[1].view(torch.uint8))
    return codes, scales.view(torch.float8_e4m3fn)


def natural_nvfp4_reference(weight: NVFP4Weight, rows: int) -> tuple[Tensor, Tensor]:
    """:func:`natural_nvfp4` in plain torch."""
    k = weight.columns
    pairs = decode_words(weight.words[: rows * k // 8])
    # The patterns' sign and three bits of magnitude are the code.
    nibbles = pairs.view(torch.int16).view(-1, k // 512, 4, 2, 8, 4, 2, 2, 8)  # T k c b g t r w 2j + i
    nibbles = ((nibbles >> 6) & 7) | ((nibbles >> 12) & 8)
    nibbles = nibbles.permute(0, 6, 4, 1, 2, 3, 5, 7, 8).reshape(rows, k // 2, 2).to(torch.uint8)
    scales = decode_scales(weight.scales[: rows * k // 64], k).float() * 2.0**-81
    return nibbles[..., 0] | (nibbles[..., 1] << 4), scales.to(torch.float8_e4m3fn)


def _product(
    codes: Tensor,
    scales: Tensor,
    weight: Tensor,
    weight_scales: Tensor,
    factors: Tensor,
    input_scale: float,
    out: Tensor,
) -> None:
    """out [N, ≤ rows] = (codes · scales) · (weight · weight_scales)ᵀ · factor of the row · input_scale · 2⁻⁴⁵."""
    if not use_triton(out):
        x = _values(codes, scales)
        whole = x @ _values(weight, weight_scales).T
        factor = (factors * (input_scale * 2.0**-45)).repeat_interleave(16)[: out.shape[1]]
        out.copy_(whole[:, : out.shape[1]] * factor)
        return
    n, rows, k = out.shape[0], out.shape[1], 2 * codes.shape[1]
    grid = (ceil_div(n, 128), ceil_div(rows, 128))
    _product_kernel[grid](
        codes, scales, weight, weight_scales, factors, out, n, rows, k, out.stride(0), input_scale * 2.0**-45,
        N=128, ROWS=128, K=128, num_warps=8, num_stages=3,
    )  # fmt: skip


def _values(codes: Tensor, scales: Tensor) -> Tensor:
    """float32 [rows, columns] of codes · scales."""
    table = torch.tensor([*_E2M1, *(-value for value in _E2M1)], device=codes.device)
    pairs = torch.stack([codes & 15, codes >> 4], dim=-1).int()
    values = table[pairs].view(codes.shape[0], -1, 16) * scales.float()[..., None]
    return values.view(codes.shape[0], -1)


@triton.jit
def _quantize_kernel(x, codes, scales, stride, width, columns, to_scale, to_unit):  # type: ignore[no-untyped-def]
    """1024 activations of one column, as pairs of even and odd ones."""
    row = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1) * 64 + tl.arange(0, 64)
    pair = block[:, None] * 8 + tl.arange(0, 8)[None, :]
    even = tl.load(x + row * stride + 2 * pair, mask=2 * pair < width, other=0.0).to(tl.float32)
    odd = tl.load(x + row * stride + 2 * pair + 1, mask=2 * pair + 1 < width, other=0.0).to(tl.float32)
    largest = tl.max(tl.maximum(tl.abs(even), tl.abs(odd)), axis=1)
    scale = tl.minimum(largest * to_scale, 448.0).to(tl.float8e4nv)
    divisor = scale.to(tl.float32)
    factor = tl.where(divisor > 0, to_unit / tl.where(divisor > 0, divisor, 1.0), 0.0)[:, None]
    code = _encode(even * factor) | (_encode(odd * factor) << 4)
    inside = block < columns // 16
    tl.store(codes + row * (columns // 2) + pair, code.to(tl.uint8), mask=inside[:, None])
    tl.store(scales + row * (columns // 16) + block, scale, mask=inside)


@triton.jit
def _encode(values):  # type: ignore[no-untyped-def]
    """The code of the nearest E2M1 number, ties to the even code."""
    size = tl.abs(values)
    code = (size > 0.25).to(tl.int32) + (size >= 0.75).to(tl.int32) + (size > 1.25).to(tl.int32)
    code += (size >= 1.75).to(tl.int32) + (size > 2.5).to(tl.int32) + (size >= 3.5).to(tl.int32)
    return code + (size > 5.0).to(tl.int32) + (values < 0).to(tl.int32) * 8


@triton.jit
def _natural_kernel(words, scales, codes, natural, k):  # type: ignore[no-untyped-def]
    """One fragment of 16 rows × 512 columns; ``codes`` as int32 [rows, columns / 8]."""
    fragment = tl.program_id(0).to(tl.int64)
    tile = fragment // (k // 512)
    left = (fragment - tile * (k // 512)) * 512
    i = tl.arange(0, 1024)
    word = tl.load(words + fragment * 1024 + i)
    row = tile * 16 + ((i >> 1) & 1) * 8 + ((i >> 4) & 7)
    column = left + (i >> 8) * 128 + ((i >> 7) & 1) * 64 + ((i >> 2) & 3) * 16 + (i & 1) * 8
    pair0, pair1, pair2, pair3 = _decode_pairs(word)
    eight = _nibbles(pair0) | (_nibbles(pair1) << 8) | (_nibbles(pair2) << 16) | (_nibbles(pair3) << 24)
    tl.store(codes + row * (k // 8) + column // 8, eight)
    i = tl.arange(0, 128)
    word = tl.load(scales + fragment * 128 + i)
    row = tile * 16 + (i & 1) * 8 + ((i >> 3) & 7)
    column = left + (i >> 6) * 256 + ((i >> 1) & 3) * 16
    for byte in tl.static_range(4):
        small = (word >> (8 * byte)) & 0xFF
        # m · 2⁻⁹ below the least normal number: what was its exponent becomes its leading digit again.
        subnormal = tl.where(small < 64, 1, tl.where(small < 72, (small - 56) // 4, (small - 64) // 2))
        bit = tl.where(small < 80, subnormal, small - 72)
        at = column + (byte >> 1) * 128 + (byte & 1) * 64
        tl.store(natural + row * (k // 16) + at // 16, bit.to(tl.uint8))


@triton.jit
def _nibbles(pair):  # type: ignore[no-untyped-def]
    """A pair of patterns → the codes of half 0 and half 1 in a byte."""
    low = ((pair >> 6) & 7) | ((pair >> 12) & 8)
    return low | (((pair >> 22) & 7) << 4) | (((pair >> 28) & 8) << 4)


@triton.jit
def _product_kernel(  # type: ignore[no-untyped-def]
    codes, scales, weight, weight_scales, factors, out, n, rows, k, stride, factor,
    N: tl.constexpr, ROWS: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """One tile of the product. Rows beyond the last repeat it, so that loads need no masks."""
    column, row = tl.program_id(0) * N + tl.arange(0, N), tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    a_row, b_row = tl.minimum(column, n - 1).to(tl.int64), tl.minimum(row, rows - 1).to(tl.int64)
    i, block = tl.arange(0, K // 2), tl.arange(0, K // 16)
    a_at, b_at = codes + a_row[:, None] * (k // 2) + i[None, :], weight + b_row[:, None] * (k // 2) + i[None, :]
    a_scale_at = scales + a_row[:, None] * (k // 16) + block[None, :]
    b_scale_at = weight_scales + b_row[:, None] * (k // 16) + block[None, :]
    total = tl.zeros([N, ROWS], tl.float32)
    for start in range(0, k, K):
        a, b = tl.load(a_at + start // 2), tl.load(b_at + start // 2)
        a_scale, b_scale = tl.load(a_scale_at + start // 16), tl.load(b_scale_at + start // 16)
        total = tl.dot_scaled(a, a_scale, "e2m1", b.T, b_scale, "e2m1", total)
    total *= (tl.load(factors + b_row // 16) * factor)[None, :]
    at = out + column[:, None].to(tl.int64) * stride + row[None, :]
    tl.store(at, total.to(tl.bfloat16), mask=(column < n)[:, None] & (row < rows)[None, :])
