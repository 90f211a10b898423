"""Attention of a chunk of prompts: runs of many new tokens, each over its lane's pages.

A program takes one query head and a tile of consecutive tokens of one run, and goes over the run's keys once with an
online softmax: first those that every token of the tile sees, then the tile's own, masked. Tiles with the most keys go
first, so that the card does not end with one of them. Where there are too few tiles to fill the card, as with a short
question after a long context, a tile's keys are divided among several programs (:mod:`kernels.fused.splits`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.fused import card
from kernels.fused.dot import dot
from kernels.fused.fp8 import load_rows
from kernels.fused.launch import ceil_div, overlap
from kernels.fused.paged_decode import plain_run
from kernels.fused.pool import LayerPool
from kernels.fused.splits import join_splits
from kernels.registry import interpreted, use_triton

MAX_SPLITS = 16


@dataclass(frozen=True)
class Plan:
    """How to launch: tokens of a tile, keys in a step, warps, steps in flight, programs that share a tile's keys."""

    rows: int
    tile: int
    warps: int
    stages: int
    splits: int = 1


def paged_prefill_reference(
    q: Tensor,
    gate: Tensor,
    pool: LayerPool,
    table: Tensor,
    past: Tensor,
    starts: Tensor,
    *,
    longest: int,
    plan: Plan | None = None,
    dependent: bool = False,
) -> Tensor:
    """:func:`paged_prefill` in plain torch, run by run in float32."""
    _check(q, gate, pool, table, past, starts)
    y = torch.zeros(len(q), q.shape[1] * q.shape[2], dtype=q.dtype, device=q.device)
    for run, (start, end) in enumerate(pairwise(starts.tolist())):
        if end > start:
            y[start:end] = plain_run(q[start:end], gate[start:end], pool, table[run], int(past[run]))
    return y


def paged_prefill(
    q: Tensor,
    gate: Tensor,
    pool: LayerPool,
    table: Tensor,
    past: Tensor,
    starts: Tensor,
    *,
    longest: int,
    plan: Plan | None = None,
    dependent: bool = False,
) -> Tensor:
    """Causal attention of R packed runs, times sigmoid(gate).

    Token t of a run sees the first past + t + 1 positions of its lane; the new tokens' own keys and values stand in the
    pool already.

    Args:
        q: [N, Hq, D], run by run.
        gate: [N, Hq · D].
        pool: the layer's keys and values.
        table: int32 [R, P], each run's pages in order; entries beyond a run's tokens are not read.
        past: int32 [R], tokens before the run.
        starts: int32 [R + 1], run r is columns [starts[r], starts[r + 1]). Columns from starts[R] on belong to no run;
            their result is 0.
        longest: no run has more columns. How the keys are divided depends on it, not on the runs.
        plan: how to launch it; None: as :func:`prefill_plan` says.
        dependent: launched while the kernel before may still run; ``table``, ``past`` and ``starts`` must have been
            written before the chunk's first kernel.

    Returns:
        [N, Hq · D] in q's type.

    Raises:
        ValueError: shapes that do not fit each other.
    """
    if not use_triton(q):
        return paged_prefill_reference(q, gate, pool, table, past, starts, longest=longest)
    runs = _check(q, gate, pool, table, past, starts)
    count, heads, dim = q.shape
    if plan is None:
        plan = prefill_plan(pool, roomy=card.roomy(q.device))
        programs = heads * runs * ceil_div(longest, plan.rows)
        plan = replace(plan, splits=max(1, min(MAX_SPLITS, card.processors(q.device) // programs)))
    parts = sums = None
    # Where one program has all keys of its columns, it writes no others.
    make = torch.zeros if plan.splits == 1 else torch.empty
    y = make(count, heads * dim, dtype=q.dtype, device=q.device)
    if plan.splits > 1:
        parts = torch.empty(count, heads, plan.splits, dim, dtype=torch.float32, device=q.device)
        sums = torch.empty(count, heads, plan.splits, dtype=torch.float32, device=q.device)
    _prefill_kernel[(heads, ceil_div(longest, plan.rows), runs * plan.splits)](
        q,
        *pool.arguments(),
        table,
        table.stride(0),
        past,
        starts,
        gate,
        y,
        parts,
        sums,
        dim**-0.5 * 1.4426950408889634,
        HEADS=heads,
        GROUP=heads // pool.heads,
        ROWS=plan.rows,
        DIM=dim,
        PAGE=pool.page,
        TILE=min(plan.tile, pool.page),
        PACKED=pool.packed,
        SPLITS=plan.splits,
        INTERPRET=interpreted(),
        num_warps=plan.warps,
        num_stages=plan.stages,
        **overlap(dependent, q),
    )
    if parts is not None and sums is not None:
        join_splits(parts, sums, gate, y, starts=starts, dependent=dependent)
    return y


def prefill_plan(pool: LayerPool, *, roomy: bool) -> Plan:
    """``roomy``: 227 KiB of shared memory a block, not 99."""
    if interpreted():
        return Plan(16, 16, 4, 1)
    if pool.k.element_size() == 4:
        return Plan(32, 16, 4, 1)
    if not roomy:
        return Plan(64, 32, 8, 2) if pool.dim == 256 else Plan(128, 64, 8, 2)
    if pool.dim == 256:
        return Plan(128, 32, 8, 3) if pool.packed else Plan(128, 64, 8, 2)
    return Plan(128, 64, 8, 3)


def _check(q: Tensor, gate: Tensor, pool: LayerPool, table: Tensor, past: Tensor, starts: Tensor) -> int:
    """Runs."""
    count, heads, dim = q.shape
    runs = past.shape[0]
    if dim != pool.dim or heads % pool.heads or gate.shape != (count, heads * dim):
        raise ValueError(
            f"Queries {list(q.shape)} and gates {list(gate.shape)} do not fit {pool.heads} KV heads of {pool.dim}."
        )
    if table.shape[0] != runs or starts.shape != (runs + 1,):
        raise ValueError(f"{runs} runs need as many page lists and one start more, not {len(table)} and {len(starts)}.")
    if not (q.is_contiguous() and gate.is_contiguous() and table.stride(1) == 1):
        raise ValueError("Queries, gates and each run's page list must be contiguous.")
    return runs


@triton.jit
def _prefill_kernel(  # type: ignore[no-untyped-def]
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
    starts,
    gate,
    y,
    parts,
    sums,
    scale,
    HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    DIM: tl.constexpr,
    PAGE: tl.constexpr,
    TILE: tl.constexpr,
    PACKED: tl.constexpr,
    SPLITS: tl.constexpr,
    INTERPRET: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """One query head, one split of one tile of one run."""
    head, block = tl.program_id(0), tl.num_programs(1) - 1 - tl.program_id(1)
    run, split = tl.program_id(2) // SPLITS, tl.program_id(2) % SPLITS
    begin = tl.load(starts + run)
    length = tl.load(starts + run + 1) - begin
    old = tl.load(past + run)
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
    if block * ROWS >= length:
        return
    if DEPENDENT:
        tl.extra.cuda.gdc_wait()
    m = tl.arange(0, ROWS)
    d = tl.arange(0, DIM)
    token = block * ROWS + m
    there = (token < length)[:, None]
    at = ((begin + token).to(tl.int64) * HEADS + head)[:, None] * DIM + d[None, :]
    queries = tl.load(q + at, mask=there, other=0.0)
    key_head = head // GROUP
    k += key_head * head_stride
    v += key_head * head_stride
    if PACKED:
        queries = queries.to(tl.float16)
        k_scale += key_head * scale_head_stride
        v_scale += key_head * scale_head_stride
    else:
        queries = queries.to(k.dtype.element_ty)
    table += run * table_stride
    best = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    out = tl.zeros([ROWS, DIM], tl.float32)
    # The unit of the output where values are packed: the largest of their scales so far, over 2¹⁴, so that weights
    # times scales fill the range of FP16.
    unit = 1e-37
    sees = old + token
    # Every token of the tile sees all keys of the first tiles; the last are masked.
    open_tiles = (old + block * ROWS + 1) // TILE
    tiles = tl.cdiv(old + tl.minimum((block + 1) * ROWS, length), TILE)
    first, last = 0, tiles
    if SPLITS > 1:
        each = tl.cdiv(tiles, SPLITS)
        first, last = tl.minimum(split * each, tiles), tl.minimum((split + 1) * each, tiles)
    middle = tl.minimum(tl.maximum(open_tiles, first), last)
    out, best, total, unit = _walk(
        queries, out, best, total, unit, sees, first, middle,
        k, v, k_scale, v_scale, row_stride, scale_row_stride, table, scale, old + length,
        ROWS, DIM, PAGE, TILE, PACKED, SPLITS, INTERPRET, False,
    )  # fmt: skip
    out, best, total, unit = _walk(
        queries, out, best, total, unit, sees, middle, last,
        k, v, k_scale, v_scale, row_stride, scale_row_stride, table, scale, old + length,
        ROWS, DIM, PAGE, TILE, PACKED, SPLITS, INTERPRET, True,
    )  # fmt: skip
    factor = unit / 16384.0 if PACKED else 1.0
    if SPLITS > 1:
        seen = total > 0
        to = ((begin + token) * HEADS + head) * SPLITS + split
        out *= (factor / tl.where(seen, total, 1.0))[:, None]
        tl.store(parts + to.to(tl.int64)[:, None] * DIM + d[None, :], out, mask=there)
        logarithm = tl.where(seen, best * scale + tl.log2(tl.where(seen, total, 1.0)), float("-inf"))
        tl.store(sums + to, logarithm, mask=token < length)
    else:
        opened = tl.sigmoid(tl.load(gate + at, mask=there, other=0.0).to(tl.float32))
        tl.store(y + at, (out * (factor / total)[:, None] * opened).to(y.dtype.element_ty), mask=there)


@triton.jit
def _walk(  # type: ignore[no-untyped-def]
    queries, out, best, total, unit, sees, first, last,
    k, v, k_scale, v_scale, row_stride, scale_row_stride, table, scale, written,
    ROWS: tl.constexpr, DIM: tl.constexpr, PAGE: tl.constexpr, TILE: tl.constexpr, PACKED: tl.constexpr,
    SPLITS: tl.constexpr, INTERPRET: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """The online softmax over key tiles [first, last)."""
    key = tl.arange(0, TILE)
    offsets = key[:, None] * row_stride + tl.arange(0, DIM)[None, :]
    # Loaded one tile ahead: see the decoding kernel.
    page = tl.load(table + first * TILE // PAGE, mask=first < last, other=0)
    for tile in range(first, last):
        start = tile * TILE
        row = page.to(tl.int64) * PAGE + start % PAGE
        page = tl.load(table + (start + TILE) // PAGE, mask=tile + 1 < last, other=0)
        # Rows that nobody wrote may hold anything, NaN too.
        exists = start + key < written
        keys = load_rows(k + row * row_stride + offsets, exists[:, None], MASKED, PACKED, INTERPRET)
        scores = dot(queries, keys.T, tl.zeros([ROWS, TILE], tl.float32), INTERPRET)
        if PACKED:
            scores *= load_rows(k_scale + (row + key) * scale_row_stride, exists, MASKED, False, INTERPRET)[None, :]
        if MASKED:
            scores = tl.where(start + key[None, :] <= sees[:, None], scores, float("-inf"))
        higher = tl.maximum(best, tl.max(scores, 1))
        base = higher
        if SPLITS > 1:
            # A token may see none of a split's keys; of all keys, it sees the first.
            base = tl.where(higher == float("-inf"), 0.0, higher)
        weights = tl.exp2(scores * scale - (base * scale)[:, None])
        shrink = tl.exp2((best - base) * scale)
        best = higher
        total = total * shrink + tl.sum(weights, 1)
        if PACKED:
            value_scales = load_rows(v_scale + (row + key) * scale_row_stride, exists, MASKED, False, INTERPRET)
            wider = tl.maximum(unit, tl.max(value_scales))
            shrink *= unit / wider
            unit = wider
            weights *= (value_scales * (16384.0 / unit))[None, :]
        values = load_rows(v + row * row_stride + offsets, exists[:, None], MASKED, PACKED, INTERPRET)
        out = dot(weights.to(values.dtype), values, out * shrink[:, None], INTERPRET)
    return out, best, total, unit
