"""The decoding kernel for FP8 keys and values: as the plain one, with the keys as rows of the products.

Codes must become 16-bit values before they can be multiplied, and the way there decides the speed. Here keys (and
values, transposed) are the left operands, which matrix units take from registers: a code is read from shared memory
once, decoded where it is used, and never written back. Queries and softmax weights, which are small, are the right
operands. Weights carry the values' scales; so that FP16 holds them, they are relative to the largest scale so far.
"""

from __future__ import annotations

import triton
import triton.language as tl

from kernels.fused.dot import dot
from kernels.fused.fp8 import decode_pairs
from kernels.fused.splits import share


@triton.jit
def decode_fp8_kernel(  # type: ignore[no-untyped-def]
    q,
    k,
    v,
    k_scale,
    v_scale,
    row_stride,
    head_stride,
    scale_row_stride,
    scale_head_stride,
    table,
    table_stride,
    past,
    parts,
    sums,
    scale,
    SPLITS: tl.constexpr,
    HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    DIM: tl.constexpr,
    PAGE: tl.constexpr,
    TILE: tl.constexpr,
    INTERPRET: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """One KV head, one split, one lane; ``k`` and ``v`` point to pairs of codes, and so do their strides count."""
    HALF: tl.constexpr = DIM // 2
    head, split, lane = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    old = tl.load(past + lane)
    first, last = share(old + COLUMNS, split, SPLITS, TILE)
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
    if first >= last:
        return
    m = tl.arange(0, ROWS)
    d = tl.arange(0, HALF)
    there = m < COLUMNS * GROUP
    row_head = (lane * COLUMNS + m // GROUP) * HEADS + head * GROUP + m % GROUP
    sees = tl.where(there, old + m // GROUP, 0x7FFFFFFF)
    key = tl.arange(0, TILE)
    offsets = key[:, None] * row_stride + d[None, :]
    k += head * head_stride
    v += head * head_stride
    k_scale += head * scale_head_stride
    v_scale += head * scale_head_stride
    table += lane * table_stride
    if DEPENDENT:
        tl.extra.cuda.gdc_wait()
    at = q + row_head[:, None] * DIM + tl.arange(0, DIM)[None, :]
    queries = tl.load(at, mask=there[:, None], other=0.0).to(tl.float16)
    even, odd = tl.split(tl.reshape(queries, [ROWS, HALF, 2]))
    even, odd = even.T, odd.T
    best = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    out_even = tl.zeros([HALF, ROWS], tl.float32)
    out_odd = tl.zeros([HALF, ROWS], tl.float32)
    # The unit of the outputs: the largest scale so far, over 2¹⁴, so that weights fill the range of FP16.
    unit = 1e-37
    # Loaded one tile ahead: see the plain kernel.
    page = tl.load(table + first * TILE // PAGE)
    for tile in range(first, last):
        start = tile * TILE
        row = page.to(tl.int64) * PAGE + start % PAGE
        page = tl.load(table + (start + TILE) // PAGE, mask=tile + 1 < last, other=0)
        # Rows that nobody wrote may hold anything, NaN too.
        written = start + key <= old + (COLUMNS - 1)
        key_scales = tl.load(k_scale + (row + key) * scale_row_stride, mask=written, other=0.0)
        value_scales = tl.load(v_scale + (row + key) * scale_row_stride, mask=written, other=0.0)
        keys_even, keys_odd = decode_pairs(
            tl.load(k + row * row_stride + offsets, mask=written[:, None], other=0), INTERPRET
        )
        scores = dot(keys_even, even, tl.zeros([TILE, ROWS], tl.float32), INTERPRET)
        scores = dot(keys_odd, odd, scores, INTERPRET) * (key_scales * scale)[:, None]
        scores = tl.where(start + key[:, None] <= sees[None, :], scores, float("-inf"))
        higher = tl.maximum(best, tl.max(scores, 0))
        # A row may see none of a split's keys.
        base = tl.where(higher == float("-inf"), 0.0, higher)
        weights = tl.exp2(scores - base[None, :])
        shrink = tl.exp2(best - base)
        best = higher
        total = total * shrink + tl.sum(weights, 0)
        wider = tl.maximum(unit, tl.max(value_scales))
        shrink *= unit / wider
        unit = wider
        weights = (weights * (value_scales * (16384.0 / unit))[:, None]).to(tl.float16)
        pairs = tl.load(v + row * row_stride + offsets, mask=written[:, None], other=0)
        values_even, values_odd = decode_pairs(pairs.T, INTERPRET)
        out_even = dot(values_even, weights, out_even * shrink[None, :], INTERPRET)
        out_odd = dot(values_odd, weights, out_odd * shrink[None, :], INTERPRET)
    seen = total > 0
    factor = unit / 16384.0 / tl.where(seen, total, 1.0)
    to = row_head * SPLITS + split
    out_at = parts + to[None, :] * DIM + 2 * d[:, None]
    tl.store(out_at, out_even * factor[None, :], mask=there[None, :])
    tl.store(out_at + 1, out_odd * factor[None, :], mask=there[None, :])
    tl.store(sums + to, tl.where(seen, best + tl.log2(tl.where(seen, total, 1.0)), float("-inf")), mask=there)
