"""Products of prompts: an NVFP4 matrix is unpacked to BF16 in scratch, some rows at a time, and multiplied by cuBLAS.

A chunk of thousands of columns is bound by arithmetic, which no kernel here does better than cuBLAS; unpacking costs
the time of writing two bytes a weight.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.fused.launch import ceil_div, overlap
from kernels.fused.nvfp4_layout import BLOCK, ROWS, TILE, NVFP4Weight, _decode_pairs, dequantize
from kernels.registry import use_triton


def nvfp4_matmul(x: Tensor, weight: NVFP4Weight, scratch: Tensor, *, dependent: bool = False) -> Tensor:
    """x [N, in] bfloat16 · weightᵀ → bfloat16 [N, out].

    Args:
        scratch: bfloat16, flat, for at least 64 rows of the matrix: more rows mean fewer, larger products.
    """
    k = weight.in_features
    step = min(scratch.numel() // k // ROWS * ROWS, weight.out_features)
    if step == 0:
        raise ValueError(f"Unpacking {ROWS} rows of {k} columns takes a scratch of {ROWS * k}, not {scratch.numel()}.")
    out = torch.empty(x.shape[0], weight.out_features, dtype=torch.bfloat16, device=x.device)
    for start in range(0, weight.out_features, step):
        rows = min(step, weight.out_features - start)
        part = unpack_nvfp4(weight, scratch[: rows * k].view(rows, k), start, dependent=dependent)
        torch.mm(x, part.T, out=out[:, start : start + rows])
    return out


def unpack_nvfp4(weight: NVFP4Weight, out: Tensor, start: int = 0, *, dependent: bool = False) -> Tensor:
    """Write rows ``start`` … to ``out``, bfloat16 [rows, in], and return it. Each weight is rounded once, after its
    matrix's scale. Raises ``ValueError`` where ``start`` is no multiple of 64 or there are no such rows."""
    rows = out.shape[0]
    if (
        out.shape != (rows, weight.in_features)
        or start % ROWS
        or start + rows > weight.out_features
        or not out.is_contiguous()
    ):
        raise ValueError(
            f"Rows {start} to {start + rows} of {out.shape[1]} columns do not stand in a matrix "
            f"[{weight.out_features}, {weight.in_features}] from a multiple of {ROWS} rows on."
        )
    if not use_triton(out):
        return unpack_nvfp4_reference(weight, out, start)
    blocks = weight.columns // BLOCK
    grid = (ceil_div(rows, TILE) * blocks,)
    parts = weight.rows_from(start)
    flags = overlap(dependent, out)
    _unpack_kernel[grid](
        parts.words, parts.scales, parts.factors, out, rows, out.shape[1], blocks, num_warps=4, **flags
    )
    return out


def unpack_nvfp4_reference(weight: NVFP4Weight, out: Tensor, start: int = 0) -> Tensor:
    """:func:`unpack_nvfp4` in plain torch."""
    return out.copy_(dequantize(weight.rows_from(start))[: out.shape[0]])


@triton.jit
def _unpack_kernel(words, scales, factors, out, rows, columns, blocks, DEPENDENT: tl.constexpr):  # type: ignore[no-untyped-def]
    """One fragment of 16 rows × 512 columns."""
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
    fragment = tl.program_id(0).to(tl.int64)
    tile = fragment // blocks
    # 1024 words as the words' order has them: c 4, b 2, g 8, t 4, r 2, w 2.
    i = tl.arange(0, 1024)
    word = tl.load(words + fragment * 1024 + i)
    lane = (i >> 2) & 31
    c, b, r, w = i >> 8, (i >> 7) & 1, (i >> 1) & 1, i & 1
    scale = tl.load(scales + fragment * 128 + (c >> 1) * 64 + lane * 2 + r)
    scale = ((scale >> (8 * (2 * (c & 1) + b))) & 0xFF) * 16 + 0x6000
    scale = (scale << 16).to(tl.float32, bitcast=True)
    factor = tl.load(factors + tile)
    pair0, pair1, pair2, pair3 = _decode_pairs(word)
    even = tl.join(tl.join(_low(pair0), _low(pair2)), tl.join(_low(pair1), _low(pair3)))
    odd = tl.join(tl.join(_high(pair0), _high(pair2)), tl.join(_high(pair1), _high(pair3)))
    values = tl.reshape(tl.join(even, odd), [1024, 8]) * scale[:, None] * factor
    row = tile * 16 + r * 8 + (lane >> 2)
    column = (fragment - tile * blocks) * 512 + c * 128 + b * 64 + (lane & 3) * 16 + w * 8
    if DEPENDENT:
        tl.extra.cuda.gdc_wait()
    at = out + (row * columns + column)[:, None] + tl.arange(0, 8)[None, :]
    tl.store(at, values.to(tl.bfloat16), mask=((row < rows) & (column < columns))[:, None])


@triton.jit
def _low(pair):  # type: ignore[no-untyped-def]
    """The value of half 0, a bfloat16 number, in float32."""
    return (pair << 16).to(tl.float32, bitcast=True)


@triton.jit
def _high(pair):  # type: ignore[no-untyped-def]
    return (pair & -65536).to(tl.float32, bitcast=True)
