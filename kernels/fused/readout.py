"""The attention readout on the card: scores of named heads at one column, through the page table, into given rows.

A layer's launch writes its heads' scores into a buffer that all layers share; where only the best of a picture's cells
is wanted, one launch after the last layer picks it for all heads.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.attention import read_scores as plain_scores
from kernels.fused.dot import dot
from kernels.fused.fp8 import load_rows
from kernels.fused.launch import ceil_div, power_of_two
from kernels.fused.pool import LayerPool, lane_rows
from kernels.registry import interpreted, use_triton


def read_scores_reference(
    q: Tensor,
    column: int,
    heads: Tensor,
    rows: Tensor,
    pool: LayerPool,
    pages: Tensor,
    span: tuple[int, int],
    extra: Tensor,
    out: Tensor,
) -> None:
    """:func:`read_scores` in plain torch."""
    _check(q, heads, rows, pool, span, extra, out)
    positions = torch.cat([torch.arange(*span, device=extra.device), extra])
    where = lane_rows(pages, positions, pool.page)
    keys = pool.k.view(torch.uint8)[where].view(pool.k.dtype) if pool.packed else pool.k[where]
    scales = None if pool.k_scale is None else pool.k_scale[where]
    out[rows.long()] = plain_scores(q[column], keys, heads.long(), scales)


def read_scores(
    q: Tensor,
    column: int,
    heads: Tensor,
    rows: Tensor,
    pool: LayerPool,
    pages: Tensor,
    span: tuple[int, int],
    extra: Tensor,
    out: Tensor,
) -> None:
    """q · k / √D of ``heads`` at one column, before any softmax.

    Args:
        q: [N, Hq, D], rotated.
        column: which of the N is asked.
        heads: integer [n], query heads of this layer.
        rows: integer [n], where each head's scores go.
        pool: the layer's keys.
        pages: int32 [P], the pages of the column's lane, in order.
        span: positions [start, end) that are asked about, and after them
        extra: integer [E], single positions.
        out: float32 [any, end − start + E], written at ``rows``.

    Raises:
        ValueError: shapes that do not fit each other.
    """
    if not use_triton(q):
        read_scores_reference(q, column, heads, rows, pool, pages, span, extra, out)
        return
    size = _check(q, heads, rows, pool, span, extra, out)
    if not size or not len(heads):
        return
    block = 16 if interpreted() else 64
    _scores_kernel[(ceil_div(size, block), pool.heads)](
        q[column],
        heads,
        rows,
        len(heads),
        *pool.arguments(),
        pages,
        span[0],
        span[1] - span[0],
        extra,
        size,
        out,
        out.stride(0),
        pool.dim**-0.5,
        GROUP=q.shape[1] // pool.heads,
        HEADS=max(16, power_of_two(len(heads))),
        DIM=pool.dim,
        PAGE=pool.page,
        BLOCK=block,
        PACKED=pool.packed,
        INTERPRET=interpreted(),
        num_warps=4,
    )


def pick_peaks_reference(scores: Tensor, columns: int, best: Tensor, around: Tensor) -> None:
    """:func:`pick_peaks` in plain torch."""
    _check_peaks(scores, columns, best, around)
    cell = scores.argmax(-1)
    column = cell % columns
    near = torch.stack([cell, cell - 1, cell + 1, cell - columns, cell + columns], -1)
    there = (near >= 0) & (near < scores.shape[1])
    there[:, 1] &= column > 0
    there[:, 2] &= column < columns - 1
    best.copy_(cell)
    around.copy_(scores.gather(-1, near.clamp(0, scores.shape[1] - 1)).masked_fill_(~there, float("-inf")))


def pick_peaks(scores: Tensor, columns: int, best: Tensor, around: Tensor) -> None:
    """Each head's best cell and its neighbours, where the keys are a picture's cells, row by row.

    Args:
        scores: float32 [n, S], S a multiple of ``columns`` and not 0.
        columns: cells in a row.
        best: int64 [n], written: the best cell, the first of equals.
        around: float32 [n, 5], written: the scores of it and of the cells to its left, to its right, above and below
            it; -inf beyond the picture's edge.

    Raises:
        ValueError: shapes that do not fit each other.
    """
    if not use_triton(scores):
        pick_peaks_reference(scores, columns, best, around)
        return
    _check_peaks(scores, columns, best, around)
    if len(scores):
        # One block for pictures of any size, so that none has to wait for a compiler.
        _peaks_kernel[(len(scores),)](
            scores, scores.stride(0), scores.shape[1], columns, best, around, BLOCK=2048, num_warps=8
        )


def _check(
    q: Tensor, heads: Tensor, rows: Tensor, pool: LayerPool, span: tuple[int, int], extra: Tensor, out: Tensor
) -> int:
    """How many keys are asked about."""
    size = span[1] - span[0] + len(extra)
    if q.shape[2] != pool.dim or q.shape[1] % pool.heads:
        raise ValueError(f"Queries {list(q.shape)} do not fit {pool.heads} KV heads of {pool.dim}.")
    if len(heads) != len(rows) or out.shape[1] != size or out.stride(1) != 1 or span[0] < 0 or span[1] < span[0]:
        raise ValueError(
            f"Scores {list(out.shape)} cannot take {len(heads)} heads at {len(rows)} rows over the positions {span} "
            f"and {len(extra)} more."
        )
    return size


def _check_peaks(scores: Tensor, columns: int, best: Tensor, around: Tensor) -> None:
    count, size = scores.shape
    if size == 0 or columns < 1 or size % columns:
        raise ValueError(f"{size} cells are no rows of {columns}.")
    if best.shape != (count,) or around.shape != (count, 5) or scores.stride(1) != 1:
        raise ValueError(f"Peaks of {count} heads do not fit {list(best.shape)} and {list(around.shape)}.")


@triton.jit(do_not_specialize=["count", "span_start", "span_size", "size", "out_stride"])
def _scores_kernel(  # type: ignore[no-untyped-def]
    q,
    heads,
    rows,
    count,
    k,
    v,
    k_scale,
    v_scale,
    row_stride,
    head_stride,
    scale_row_stride,
    scale_head_stride,
    pages,
    span_start,
    span_size,
    extra,
    size,
    out,
    out_stride,
    scale,
    GROUP: tl.constexpr,
    HEADS: tl.constexpr,
    DIM: tl.constexpr,
    PAGE: tl.constexpr,
    BLOCK: tl.constexpr,
    PACKED: tl.constexpr,
    INTERPRET: tl.constexpr,
):
    """One KV head and a block of keys, for all of the named heads that share it."""
    key_head = tl.program_id(1)
    n = tl.arange(0, HEADS)
    head = tl.load(heads + n, mask=n < count, other=-1)
    mine = (n < count) & (head // GROUP == key_head)
    if tl.sum(mine.to(tl.int32)) == 0:
        return
    d = tl.arange(0, DIM)
    key = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    alone = (key >= span_size) & (key < size)
    position = tl.where(alone, tl.load(extra + key - span_size, mask=alone, other=0), span_start + key).to(tl.int32)
    asked = key < size
    row = tl.load(pages + position // PAGE, mask=asked, other=0).to(tl.int64) * PAGE + position % PAGE
    queries = tl.load(q + head[:, None] * DIM + d[None, :], mask=mine[:, None], other=0.0)
    where = k + key_head * head_stride + row[:, None] * row_stride + d[None, :]
    keys = load_rows(where, asked[:, None], True, PACKED, INTERPRET)
    scores = dot(queries.to(keys.dtype), keys.T, tl.zeros([HEADS, BLOCK], tl.float32), INTERPRET) * scale
    if PACKED:
        scores *= tl.load(k_scale + key_head * scale_head_stride + row * scale_row_stride, mask=asked, other=0.0)[
            None, :
        ]
    to = tl.load(rows + n, mask=mine, other=0).to(tl.int64)
    tl.store(out + to[:, None] * out_stride + key[None, :], scores, mask=mine[:, None] & asked[None, :])


@triton.jit(do_not_specialize=["stride", "size", "columns"])
def _peaks_kernel(scores, stride, size, columns, best, around, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """One head."""
    head = tl.program_id(0)
    scores += head.to(tl.int64) * stride
    highest = float("-inf")
    cell = tl.full([], 0, tl.int32)
    for start in range(0, size, BLOCK):
        at = start + tl.arange(0, BLOCK)
        values = tl.load(scores + at, mask=at < size, other=float("-inf"))
        value, index = tl.max(values, 0, return_indices=True, return_indices_tie_break_left=True)
        cell = tl.where(value > highest, start + index, cell)
        highest = tl.maximum(value, highest)
    tl.store(best + head, cell.to(tl.int64))
    near = tl.arange(0, 8)
    across = tl.where(near == 1, -1, tl.where(near == 2, 1, 0))
    down = tl.where(near == 3, -1, tl.where(near == 4, 1, 0))
    column = cell % columns + across
    other = cell + across + down * columns
    there = (column >= 0) & (column < columns) & (other >= 0) & (other < size)
    values = tl.load(scores + other, mask=there, other=float("-inf"))
    tl.store(around + head * 5 + near, values, mask=near < 5)
