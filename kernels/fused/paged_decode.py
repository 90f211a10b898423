"""Attention of a round: a few new tokens of each of a few lanes over the lanes' pages.

The keys of a lane are divided among *splits*, so that one lane alone can fill the card. A program takes one split of
one lane for one KV head, and all query heads and columns that share it: keys and values are read once. Each split
leaves its normalised output and the logarithm of its softmax sum; a second, small kernel joins the splits in their
order and applies the gate. How many splits there are is fixed with the launch, how many keys each takes is read from
``past`` on the card, so one captured graph serves every context.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.fused import card
from kernels.fused.dot import dot
from kernels.fused.launch import overlap, power_of_two
from kernels.fused.paged_decode_fp8 import decode_fp8_kernel, decode_fp8_rows_kernel
from kernels.fused.pool import LayerPool
from kernels.fused.splits import join_splits, share
from kernels.registry import interpreted, use_triton

MAX_TILE = 16384
"""Query rows (columns times the query heads of a KV head, up to a power of two) times head dimension of a program."""
MAX_FP8_ROWS = 64
MIN_FP8_DIM = 32


@dataclass(frozen=True)
class Plan:
    """How to launch: among how many programs a lane's keys are divided at most, keys in a step, warps, steps."""

    splits: int
    tile: int
    warps: int
    stages: int
    keys_first: bool = False
    """FP8 keys as the left operands of the products: :mod:`kernels.fused.paged_decode_fp8`."""


def paged_decode_reference(
    q: Tensor,
    gate: Tensor,
    pool: LayerPool,
    table: Tensor,
    past: Tensor,
    *,
    plan: Plan | None = None,
    dependent: bool = False,
) -> Tensor:
    """:func:`paged_decode` in plain torch."""
    lanes = _check(q, gate, pool, table, past)
    columns = len(q) // lanes
    starts = range(0, len(q), columns)
    return torch.cat(
        [
            plain_run(q[s : s + columns], gate[s : s + columns], pool, table[s // columns], int(past[s // columns]))
            for s in starts
        ]
    )


def plain_run(q: Tensor, gate: Tensor, pool: LayerPool, pages: Tensor, past: int) -> Tensor:
    """Consecutive tokens of one lane in plain torch, in float32: [T, Hq · D] in q's type."""
    columns, heads, dim = q.shape
    keys, values = (x.float() for x in pool.gather(pages, past + columns))
    own = q.float().view(columns, pool.heads, -1, dim)
    scores = torch.einsum("tkgd,skd->kgts", own, keys) * dim**-0.5
    seen = torch.arange(past + columns, device=q.device) <= past + torch.arange(columns, device=q.device)[:, None]
    weights = scores.masked_fill_(~seen, float("-inf")).softmax(-1)
    mixed = torch.einsum("kgts,skd->tkgd", weights, values).reshape(columns, heads * dim)
    return (mixed * gate.float().sigmoid()).to(q.dtype)


def paged_decode(
    q: Tensor,
    gate: Tensor,
    pool: LayerPool,
    table: Tensor,
    past: Tensor,
    *,
    plan: Plan | None = None,
    dependent: bool = False,
) -> Tensor:
    """Causal attention of B lanes × T columns, times sigmoid(gate).

    Column t of a lane sees the lane's first past + t + 1 positions; the new tokens' own keys and values stand in the
    pool already.

    Args:
        q: [B · T, Hq, D], lane by lane.
        gate: [B · T, Hq · D].
        pool: the layer's keys and values.
        table: int32 [B, P], each lane's pages in order; entries beyond a lane's tokens are not read.
        past: int32 [B], tokens before the round. Under dependent launch, ``table`` and ``past`` must have been written
            before the round's first kernel.
        plan: how to launch it; None: as :func:`decode_plan` says.
        dependent: launched while the kernel before may still run (programmatic dependent launch).

    Returns:
        [B · T, Hq · D] in q's type.

    Raises:
        ValueError: shapes that do not fit each other, or more columns than a program holds.
    """
    if not use_triton(q):
        return paged_decode_reference(q, gate, pool, table, past)
    lanes = _check(q, gate, pool, table, past)
    count, heads, dim = q.shape
    columns = count // lanes
    if plan is None:
        plan = decode_plan(lanes, columns, heads, pool, card.processors(q.device), roomy=card.roomy(q.device))
    splits, tile = plan.splits, min(plan.tile, pool.page)
    parts = torch.empty(count, heads, splits, dim, dtype=torch.float32, device=q.device)
    sums = torch.empty(count, heads, splits, dtype=torch.float32, device=q.device)
    y = torch.empty(count, heads * dim, dtype=q.dtype, device=q.device)
    launch = overlap(dependent, q)
    rows = _rows(columns, heads, pool)
    kernel = _decode_kernel
    if pool.packed:
        kernel = decode_fp8_kernel if plan.keys_first else decode_fp8_rows_kernel
    kernel[(pool.heads, splits, lanes)](
        q,
        *pool.arguments(torch.int16),
        table,
        table.stride(0),
        past,
        parts,
        sums,
        dim**-0.5 * 1.4426950408889634,
        SPLITS=splits,
        HEADS=heads,
        GROUP=heads // pool.heads,
        COLUMNS=columns,
        ROWS=rows,
        DIM=dim,
        PAGE=pool.page,
        TILE=tile,
        INTERPRET=interpreted(),
        num_warps=plan.warps,
        num_stages=plan.stages,
        **launch,
    )
    join_splits(parts, sums, gate, y, past, columns, tile, dependent=dependent)
    return y


def decode_plan(lanes: int, columns: int, heads: int, pool: LayerPool, processors: int, *, roomy: bool) -> Plan:
    """Programs for every multiprocessor, all at work at once, each with some steps in flight.

    ``roomy``: 227 KiB of shared memory a block, not 99.
    """
    rows = _rows(columns, heads, pool)
    if pool.packed:
        # Two programs to a multiprocessor: one decodes codes while the other waits for them.
        splits = max(1, 2 * processors // (lanes * pool.heads))
        if rows <= 16:
            return Plan(splits, 64, 4, 3, keys_first=True)
        return Plan(splits, 64 if rows <= 32 else 32, 4, 3)
    splits = max(1, processors // (lanes * pool.heads))
    room = 32768 if roomy and rows == 16 else 16384
    tile = max(16, min(64, room // (pool.dim * pool.k.element_size())))
    if rows > 64:
        return Plan(splits, tile, 8, 2)
    if roomy or rows <= 32:
        return Plan(splits, tile, 4, 3)
    return Plan(splits, tile, 8, 2)


def _check(q: Tensor, gate: Tensor, pool: LayerPool, table: Tensor, past: Tensor) -> int:
    """Lanes."""
    count, heads, dim = q.shape
    lanes = past.shape[0]
    if dim != pool.dim or heads % pool.heads or gate.shape != (count, heads * dim):
        raise ValueError(
            f"Queries {list(q.shape)} and gates {list(gate.shape)} do not fit {pool.heads} KV heads of {pool.dim}."
        )
    if table.shape[0] != lanes or count % lanes:
        raise ValueError(f"{count} columns, {lanes} lanes and {table.shape[0]} page lists do not fit each other.")
    rows = _rows(count // lanes, heads, pool)
    if rows * dim > MAX_TILE or (pool.packed and rows > MAX_FP8_ROWS):
        raise ValueError(
            f"{count // lanes} columns of {heads // pool.heads} query heads of dimension {dim} are too many for one "
            "program; attend to fewer columns at a time."
        )
    if pool.packed and dim < MIN_FP8_DIM:
        raise ValueError(f"FP8 keys need heads of {MIN_FP8_DIM} values or more, not {dim}.")
    if not (q.is_contiguous() and gate.is_contiguous() and table.stride(1) == 1):
        raise ValueError("Queries, gates and each lane's page list must be contiguous.")
    return lanes


def _rows(columns: int, heads: int, pool: LayerPool) -> int:
    """Of a program's query tile."""
    return max(16, power_of_two(columns * (heads // pool.heads)))


@triton.jit
def _decode_kernel(  # type: ignore[no-untyped-def]
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
    """One KV head, one split, one lane. Row m of a tile is query head m % GROUP of column m // GROUP."""
    head, split, lane = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    old = tl.load(past + lane)
    first, last = share(old + COLUMNS, split, SPLITS, TILE)
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
    if first >= last:
        return
    m = tl.arange(0, ROWS)
    d = tl.arange(0, DIM)
    there = m < COLUMNS * GROUP
    row_head = (lane * COLUMNS + m // GROUP) * HEADS + head * GROUP + m % GROUP
    sees = tl.where(there, old + m // GROUP, 0x7FFFFFFF)
    key = tl.arange(0, TILE)
    offsets = key[:, None] * row_stride + d[None, :]
    k += head * head_stride
    v += head * head_stride
    table += lane * table_stride
    if DEPENDENT:
        tl.extra.cuda.gdc_wait()
    queries = tl.load(q + row_head[:, None] * DIM + d[None, :], mask=there[:, None], other=0.0)
    queries = queries.to(k.dtype.element_ty)
    best = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    out = tl.zeros([ROWS, DIM], tl.float32)
    # Each tile's page is loaded one tile ahead: an address that depends on a load of the same turn would halve the
    # depth of the pipeline.
    page = tl.load(table + first * TILE // PAGE)
    for tile in range(first, last):
        start = tile * TILE
        row = page.to(tl.int64) * PAGE + start % PAGE
        page = tl.load(table + (start + TILE) // PAGE, mask=tile + 1 < last, other=0)
        # Rows that nobody wrote may hold anything, NaN too.
        written = start + key <= old + (COLUMNS - 1)
        keys = tl.load(k + row * row_stride + offsets, mask=written[:, None], other=0.0)
        scores = dot(queries, keys.T, tl.zeros([ROWS, TILE], tl.float32), INTERPRET) * scale
        scores = tl.where(start + key[None, :] <= sees[:, None], scores, float("-inf"))
        higher = tl.maximum(best, tl.max(scores, 1))
        # A row may see none of a split's keys.
        base = tl.where(higher == float("-inf"), 0.0, higher)
        weights = tl.exp2(scores - base[:, None])
        shrink = tl.exp2(best - base)
        best = higher
        total = total * shrink + tl.sum(weights, 1)
        values = tl.load(v + row * row_stride + offsets, mask=written[:, None], other=0.0)
        out = dot(weights.to(values.dtype), values, out * shrink[:, None], INTERPRET)
    seen = total > 0
    out = out / tl.where(seen, total, 1.0)[:, None]
    to = row_head * SPLITS + split
    tl.store(parts + to[:, None] * DIM + d[None, :], out, mask=there[:, None])
    tl.store(sums + to, tl.where(seen, best + tl.log2(tl.where(seen, total, 1.0)), float("-inf")), mask=there)
