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


@triton.jit
def decode_fp8_rows_kernel(  # type: ignore[no-untyped-def]
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
    """As the kernel above, for more query rows: codes are the right operands, once decoded, of up to four pieces of 16
    rows. Pieces that small are multiplied by all warps side by side, each of which decodes codes of its own."""
    PIECES: tl.constexpr = (COLUMNS * GROUP + 15) // 16
    HALF: tl.constexpr = DIM // 2
    head, split, lane = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    old = tl.load(past + lane)
    first, last = share(old + COLUMNS, split, SPLITS, TILE)
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
    if first >= last:
        return
    d = tl.arange(0, HALF)
    key = tl.arange(0, TILE)
    offsets = key[:, None] * row_stride + d[None, :]
    k += head * head_stride
    v += head * head_stride
    k_scale += head * scale_head_stride
    v_scale += head * scale_head_stride
    table += lane * table_stride
    q += (lane * COLUMNS * HEADS + head * GROUP) * DIM
    if DEPENDENT:
        tl.extra.cuda.gdc_wait()
    even0, odd0, sees0, best0, total0, low0, high0 = _piece(q, 0, old, HEADS, GROUP, COLUMNS, DIM)
    if PIECES > 1:
        even1, odd1, sees1, best1, total1, low1, high1 = _piece(q, 1, old, HEADS, GROUP, COLUMNS, DIM)
    if PIECES > 2:
        even2, odd2, sees2, best2, total2, low2, high2 = _piece(q, 2, old, HEADS, GROUP, COLUMNS, DIM)
    if PIECES > 3:
        even3, odd3, sees3, best3, total3, low3, high3 = _piece(q, 3, old, HEADS, GROUP, COLUMNS, DIM)
    unit = 1e-37
    page = tl.load(table + first * TILE // PAGE)
    for tile in range(first, last):
        start = tile * TILE
        row = page.to(tl.int64) * PAGE + start % PAGE
        page = tl.load(table + (start + TILE) // PAGE, mask=tile + 1 < last, other=0)
        written = start + key <= old + (COLUMNS - 1)
        key_scales = tl.load(k_scale + (row + key) * scale_row_stride, mask=written, other=0.0) * scale
        value_scales = tl.load(v_scale + (row + key) * scale_row_stride, mask=written, other=0.0)
        wider = tl.maximum(unit, tl.max(value_scales))
        ratio = unit / wider
        unit = wider
        value_scales *= 16384.0 / unit
        pairs = tl.load(k + row * row_stride + offsets, mask=written[:, None], other=0)
        keys_even, keys_odd = decode_pairs(pairs.T, INTERPRET)
        weights0, best0, total0, shrink0 = _weigh(
            even0, odd0, keys_even, keys_odd, key_scales, value_scales, start + key, sees0, best0, total0, INTERPRET
        )
        if PIECES > 1:
            weights1, best1, total1, shrink1 = _weigh(
                even1, odd1, keys_even, keys_odd, key_scales, value_scales, start + key, sees1, best1, total1, INTERPRET
            )
        if PIECES > 2:
            weights2, best2, total2, shrink2 = _weigh(
                even2, odd2, keys_even, keys_odd, key_scales, value_scales, start + key, sees2, best2, total2, INTERPRET
            )
        if PIECES > 3:
            weights3, best3, total3, shrink3 = _weigh(
                even3, odd3, keys_even, keys_odd, key_scales, value_scales, start + key, sees3, best3, total3, INTERPRET
            )
        pairs = tl.load(v + row * row_stride + offsets, mask=written[:, None], other=0)
        values_even, values_odd = decode_pairs(pairs, INTERPRET)
        low0 = dot(weights0, values_even, low0 * (shrink0 * ratio)[:, None], INTERPRET)
        high0 = dot(weights0, values_odd, high0 * (shrink0 * ratio)[:, None], INTERPRET)
        if PIECES > 1:
            low1 = dot(weights1, values_even, low1 * (shrink1 * ratio)[:, None], INTERPRET)
            high1 = dot(weights1, values_odd, high1 * (shrink1 * ratio)[:, None], INTERPRET)
        if PIECES > 2:
            low2 = dot(weights2, values_even, low2 * (shrink2 * ratio)[:, None], INTERPRET)
            high2 = dot(weights2, values_odd, high2 * (shrink2 * ratio)[:, None], INTERPRET)
        if PIECES > 3:
            low3 = dot(weights3, values_even, low3 * (shrink3 * ratio)[:, None], INTERPRET)
            high3 = dot(weights3, values_odd, high3 * (shrink3 * ratio)[:, None], INTERPRET)
    parts += ((lane * COLUMNS * HEADS + head * GROUP) * SPLITS + split) * DIM
    sums += (lane * COLUMNS * HEADS + head * GROUP) * SPLITS + split
    unit /= 16384.0
    _leave(parts, sums, 0, low0, high0, best0, total0, unit, SPLITS, HEADS, GROUP, COLUMNS, DIM)
    if PIECES > 1:
        _leave(parts, sums, 1, low1, high1, best1, total1, unit, SPLITS, HEADS, GROUP, COLUMNS, DIM)
    if PIECES > 2:
        _leave(parts, sums, 2, low2, high2, best2, total2, unit, SPLITS, HEADS, GROUP, COLUMNS, DIM)
    if PIECES > 3:
        _leave(parts, sums, 3, low3, high3, best3, total3, unit, SPLITS, HEADS, GROUP, COLUMNS, DIM)


@triton.jit
def _piece(  # type: ignore[no-untyped-def]
    q, number, old, HEADS: tl.constexpr, GROUP: tl.constexpr, COLUMNS: tl.constexpr, DIM: tl.constexpr
):
    """Query rows 16 · number …: their even and odd dimensions, the last positions they see, and an empty softmax."""
    HALF: tl.constexpr = DIM // 2
    m = number * 16 + tl.arange(0, 16)
    there = m < COLUMNS * GROUP
    at = q + ((m // GROUP) * HEADS + m % GROUP)[:, None] * DIM + tl.arange(0, DIM)[None, :]
    rows = tl.load(at, mask=there[:, None], other=0.0).to(tl.float16)
    even, odd = tl.split(tl.reshape(rows, [16, HALF, 2]))
    sees = tl.where(there, old + m // GROUP, 0x7FFFFFFF)
    best = tl.full([16], float("-inf"), tl.float32)
    total = tl.zeros([16], tl.float32)
    return even, odd, sees, best, total, tl.zeros([16, HALF], tl.float32), tl.zeros([16, HALF], tl.float32)


@triton.jit
def _weigh(  # type: ignore[no-untyped-def]
    even, odd, keys_even, keys_odd, key_scales, value_scales, positions, sees, best, total, INTERPRET: tl.constexpr
):
    """The softmax's weights of a tile of keys, times their values' scales, in FP16; and the softmax after it."""
    scores = dot(even, keys_even, tl.zeros([16, keys_even.shape[1]], tl.float32), INTERPRET)
    scores = dot(odd, keys_odd, scores, INTERPRET) * key_scales[None, :]
    scores = tl.where(positions[None, :] <= sees[:, None], scores, float("-inf"))
    higher = tl.maximum(best, tl.max(scores, 1))
    base = tl.where(higher == float("-inf"), 0.0, higher)
    weights = tl.exp2(scores - base[:, None])
    shrink = tl.exp2(best - base)
    total = total * shrink + tl.sum(weights, 1)
    return (weights * value_scales[None, :]).to(tl.float16), higher, total, shrink


@triton.jit
def _leave(  # type: ignore[no-untyped-def]
    parts, sums, number, low, high, best, total, unit,
    SPLITS: tl.constexpr, HEADS: tl.constexpr, GROUP: tl.constexpr, COLUMNS: tl.constexpr, DIM: tl.constexpr,
):  # fmt: skip
    """A piece's output and the logarithm of its softmax sum."""
    m = number * 16 + tl.arange(0, 16)
    there = m < COLUMNS * GROUP
    to = ((m // GROUP) * HEADS + m % GROUP) * SPLITS
    seen = total > 0
    factor = unit / tl.where(seen, total, 1.0)
    out = tl.interleave(low, high) * factor[:, None]
    tl.store(parts + to[:, None] * DIM + tl.arange(0, DIM)[None, :], out, mask=there[:, None])
    tl.store(sums + to, tl.where(seen, best + tl.log2(tl.where(seen, total, 1.0)), float("-inf")), mask=there)
