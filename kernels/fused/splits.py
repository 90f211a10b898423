"""Attention over a context that is divided among programs: who takes what, and how their results are joined.

Every split leaves its normalised output and the logarithm (to base 2) of its softmax sum, -inf where it saw nothing.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from kernels.fused.launch import overlap, power_of_two


def join_splits(
    parts: Tensor,
    sums: Tensor,
    gate: Tensor,
    y: Tensor,
    past: Tensor | None = None,
    columns: int = 0,
    tile: int = 0,
    starts: Tensor | None = None,
    *,
    dependent: bool,
) -> None:
    """The splits' outputs by their softmax sums, in the order of the splits, times sigmoid(gate).

    Args:
        parts: float32 [N, Hq, splits, D].
        sums: float32 [N, Hq, splits].
        gate: [N, Hq · D].
        y: [N, Hq · D], written.
        past, columns, tile: of a round, where splits beyond a lane's keys have written nothing: int32 [B], the columns
            of each lane, and the keys of a step. Without ``past``, every split has left its sums.
        starts: of a chunk, int32 [R + 1]: columns from starts[R] on belong to no run, and become 0.
        dependent: as for the kernel before.
    """
    count, heads, splits, dim = parts.shape
    block = power_of_two(splits)
    part = min(dim, 64, max(16, 8192 // block))
    _join_kernel[(heads, dim // part, count)](
        parts,
        sums,
        gate,
        past,
        starts,
        y,
        RUNS=0 if starts is None else len(starts) - 1,
        SPLITS=splits,
        SPLITS_BLOCK=block,
        HEADS=heads,
        COLUMNS=columns,
        DIM=dim,
        PART=part,
        TILE=tile,
        num_warps=4,
        **overlap(dependent, y),
    )


@triton.jit
def share(length, split, SPLITS: tl.constexpr, TILE: tl.constexpr):  # type: ignore[no-untyped-def]
    """Tiles [first, last) of ``split`` among those of ``length`` keys."""
    tiles = tl.cdiv(length, TILE)
    each = tl.cdiv(tiles, SPLITS)
    return split * each, tl.minimum((split + 1) * each, tiles)


@triton.jit
def _join_kernel(  # type: ignore[no-untyped-def]
    parts,
    sums,
    gate,
    past,
    starts,
    y,
    RUNS: tl.constexpr,
    SPLITS: tl.constexpr,
    SPLITS_BLOCK: tl.constexpr,
    HEADS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DIM: tl.constexpr,
    PART: tl.constexpr,
    TILE: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """One query head of one column, a part of its dimensions: the splits' outputs by their softmax sums, gated."""
    head, part, column = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    if COLUMNS > 0:
        tiles = tl.cdiv(tl.load(past + column // COLUMNS) + COLUMNS, TILE)
        used = tl.cdiv(tiles, tl.cdiv(tiles, SPLITS))
    else:
        used = SPLITS
    row = (column * HEADS + head).to(tl.int64)
    d = part * PART + tl.arange(0, PART)
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    if RUNS > 0:  # known while compiling, unlike the other  # noqa: SIM102
        if column >= tl.load(starts + RUNS):
            tl.store(y + row * DIM + d, tl.zeros([PART], y.dtype.element_ty))
            return
    # The gate is no older than the queries: the kernel that writes it may have run until the decoding kernel began.
    opened = tl.sigmoid(tl.load(gate + row * DIM + d).to(tl.float32))
    # All splits at once: one after the other, each would wait for memory.
    split = tl.arange(0, SPLITS_BLOCK)
    sums = tl.load(sums + row * SPLITS + split, mask=split < used, other=float("-inf"))
    at = (row * SPLITS + split)[:, None] * DIM + d[None, :]
    outs = tl.load(parts + at, mask=(sums > float("-inf"))[:, None], other=0.0)
    weights = tl.exp2(sums - tl.max(sums))
    out = tl.sum(weights[:, None] * outs, 0) / tl.sum(weights)
    tl.store(y + row * DIM + d, (out * opened).to(y.dtype.element_ty))
