"""Attention of the vision tower: every patch of a picture to every other, heads of any dimension.

A head of 72 values is no tile of a matrix unit. It is taken as 64 and 8 (of 16): the two parts' products are added into
the same scores, and their outputs are two accumulators. That costs 80 values' work instead of the 128 that the next
power of two would.

Queries and keys of a picture are known before the softmax, and with them the largest score that a query can have: its
length times that of the longest key. Where that bound B is moderate, the softmax needs no running maximum: with
2^(s − B + 90) for every score s, nothing overflows (at most 2⁹⁰ a key) and nothing is lost (s ≥ −B, so at least 2⁻¹²⁶
for B ≤ 108). Tiles with a longer query keep the running maximum.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.attention import full_attention
from kernels.fused import card
from kernels.fused.dot import dot
from kernels.fused.launch import ceil_div, power_of_two
from kernels.registry import interpreted, use_triton
from kernels.rotary import rotate

MAX_DIM = 256


@dataclass(frozen=True)
class Plan:
    """How to launch: queries of a tile, keys in a step, warps, steps in flight, registers a thread at most."""

    rows: int
    tile: int
    warps: int
    stages: int
    registers: int | None = None


def vision_attention_reference(
    product: Tensor, cos: Tensor, sin: Tensor, heads: int, *, plan: Plan | None = None
) -> Tensor:
    """:func:`vision_attention` in plain torch."""
    _check(product, cos, heads)
    q, k, v = product.view(len(product), 3, heads, -1).unbind(1)
    cos, sin = cos.to(product.dtype), sin.to(product.dtype)
    return full_attention(rotate(q, cos, sin), rotate(k, cos, sin), v).reshape(len(product), -1)


def vision_attention(product: Tensor, cos: Tensor, sin: Tensor, heads: int, *, plan: Plan | None = None) -> Tensor:
    """Rotary embedding and full attention of one picture.

    Args:
        product: [N, 3 · H · D], queries, keys and values of N patches, contiguous. Overwritten: queries and keys are
            rotated where they stand.
        cos, sin: [N, D / 2], any float type; dimension j turns with dimension j + D / 2.
        heads: H.
        plan: how to launch it; None: as :func:`vision_plan` says.

    Returns:
        [N, H · D] in the product's type.

    Raises:
        ValueError: sizes that do not fit each other, or heads of more than 256 values.
    """
    if not use_triton(product):
        return vision_attention_reference(product, cos, sin, heads)
    dim = _check(product, cos, heads)
    count = len(product)
    out = torch.empty(count, heads * dim, dtype=product.dtype, device=product.device)
    if not count:
        return out
    plan = plan or vision_plan(dim, product.element_size(), roomy=card.roomy(product.device))
    block = 16
    lengths = torch.empty(2 * heads, count, dtype=torch.float32, device=product.device)
    _turn_kernel[(ceil_div(count, block), 2 * heads)](
        product,
        cos,
        sin,
        lengths,
        count,
        HEADS=heads,
        DIM=dim,
        HALF=power_of_two(dim // 2),
        BLOCK=block,
        num_warps=4,
    )
    longest = lengths[heads:].amax(1)
    first, rest = _parts(dim)
    # Two launches, since two loops in one kernel would have their shared memory side by side. Every tile leaves one of
    # them at once.
    for running in (False, True):
        _vision_kernel[(ceil_div(count, plan.rows), heads)](
            product,
            out,
            lengths,
            longest,
            count,
            # The softmax in powers of two.
            dim**-0.5 * 1.4426950408889634,
            HEADS=heads,
            DIM=dim,
            FIRST=first,
            REST=rest,
            ROWS=plan.rows,
            TILE=plan.tile,
            RUNNING=running,
            INTERPRET=interpreted(),
            num_warps=plan.warps,
            num_stages=plan.stages,
            maxnreg=plan.registers,
        )
    return out


def vision_plan(dim: int, element: int, *, roomy: bool) -> Plan:
    """``element``: bytes of a value; ``roomy``: 227 KiB of shared memory a block, not 99."""
    if interpreted():
        return Plan(16, 16, 4, 1)
    if element == 4:
        return Plan(32, 16, 4, 1)
    if dim > 128:
        return Plan(64, 32, 8, 2)
    if not roomy:
        return Plan(128, 32, 8, 3)
    # Two programs to a multiprocessor: while one multiplies, the other takes exponentials.
    return Plan(128, 64, 8, 3, 128 if dim <= 96 else None)


def _parts(dim: int) -> tuple[int, int]:
    """A head dimension as two powers of two, the second (or 0) with room to spare."""
    first: int = power_of_two(dim)
    if first == dim or dim < 32:
        return max(first, 16), 0
    first //= 2
    return first, max(16, power_of_two(dim - first))


def _check(product: Tensor, cos: Tensor, heads: int) -> int:
    """The head dimension."""
    dim, left = divmod(product.shape[1], 3 * heads)
    if left or dim % 2 or dim > MAX_DIM or product.numel() >= 1 << 31 or not product.is_contiguous():
        raise ValueError(
            f"{list(product.shape)} is no contiguous product of queries, keys and values of {heads} heads of an even "
            f"dimension of at most {MAX_DIM}, below 2³¹ values in all."
        )
    if cos.shape != (len(product), dim // 2) or not cos.is_contiguous():
        raise ValueError(f"Angles {list(cos.shape)} do not fit {len(product)} patches with heads of {dim}.")
    return dim


@triton.jit
def _turn_kernel(  # type: ignore[no-untyped-def]
    product,
    cos,
    sin,
    lengths,
    count,
    HEADS: tl.constexpr,
    DIM: tl.constexpr,
    HALF: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Some patches of one head of the queries or keys: turned, and how long they are."""
    head = tl.program_id(1)
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    j = tl.arange(0, HALF)[None, :]
    there = (n < count) & (j < DIM // 2)
    c = tl.load(cos + n * (DIM // 2) + j, mask=there, other=0.0).to(tl.float32)
    s = tl.load(sin + n * (DIM // 2) + j, mask=there, other=0.0).to(tl.float32)
    at = product + n * (3 * HEADS * DIM) + head * DIM + j
    a = tl.load(at, mask=there, other=0.0).to(tl.float32)
    b = tl.load(at + DIM // 2, mask=there, other=0.0).to(tl.float32)
    first = (a * c - b * s).to(product.dtype.element_ty)
    second = (b * c + a * s).to(product.dtype.element_ty)
    tl.store(at, first, mask=there)
    tl.store(at + DIM // 2, second, mask=there)
    first, second = first.to(tl.float32), second.to(tl.float32)
    length = tl.sqrt(tl.sum(first * first + second * second, 1))[:, None]
    tl.store(lengths + head * count + n, length, mask=n < count)


@triton.jit
def _vision_kernel(  # type: ignore[no-untyped-def]
    product,
    out,
    lengths,
    longest,
    count,
    scale,
    HEADS: tl.constexpr,
    DIM: tl.constexpr,
    FIRST: tl.constexpr,
    REST: tl.constexpr,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
    RUNNING: tl.constexpr,
    INTERPRET: tl.constexpr,
):
    """One head, a tile of queries."""
    STRIDE: tl.constexpr = 3 * HEADS * DIM
    head = tl.program_id(1)
    m = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    # Lengths are rounded: a little more is surely enough.
    bound = tl.load(lengths + head * count + m, mask=m < count, other=0.0) * tl.load(longest + head) * scale * 1.001
    if (tl.max(bound) > 108.0) != RUNNING:
        return
    shift = bound - 90.0
    there = (m < count)[:, None]
    d = tl.arange(0, FIRST)[None, :]
    q_at = product + m[:, None] * STRIDE + head * DIM
    q = tl.load(q_at + d, mask=there & (d < DIM), other=0.0)
    best = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    acc = tl.zeros([ROWS, FIRST], tl.float32)
    if REST > 0:
        e = FIRST + tl.arange(0, REST)[None, :]
        q_rest = tl.load(q_at + e, mask=there & (e < DIM), other=0.0)
        acc_rest = tl.zeros([ROWS, REST], tl.float32)
    keys_at = product + (HEADS + head) * DIM + tl.arange(0, TILE)[:, None] * STRIDE
    for start in range(0, count, TILE):
        exists = start + tl.arange(0, TILE) < count
        at = keys_at + start * STRIDE
        keys = tl.load(at + d, mask=exists[:, None] & (d < DIM), other=0.0)
        scores = dot(q, keys.T, tl.zeros([ROWS, TILE], tl.float32), INTERPRET)
        if REST > 0:
            keys_rest = tl.load(at + e, mask=exists[:, None] & (e < DIM), other=0.0)
            scores = dot(q_rest, keys_rest.T, scores, INTERPRET)
        if start + TILE > count:
            scores = tl.where(exists[None, :], scores, float("-inf"))
        if RUNNING:
            higher = tl.maximum(best, tl.max(scores, 1))
            shrink = tl.exp2((best - higher) * scale)
            best = higher
            shift = higher * scale
            total = total * shrink
            acc = acc * shrink[:, None]
            if REST > 0:
                acc_rest = acc_rest * shrink[:, None]
        weights = tl.exp2(scores * scale - shift[:, None])
        total += tl.sum(weights, 1)
        at += HEADS * DIM
        values = tl.load(at + d, mask=exists[:, None] & (d < DIM), other=0.0)
        acc = dot(weights.to(values.dtype), values, acc, INTERPRET)
        if REST > 0:
            values_rest = tl.load(at + e, mask=exists[:, None] & (e < DIM), other=0.0)
            acc_rest = dot(weights.to(values.dtype), values_rest, acc_rest, INTERPRET)
    out_at = out + m[:, None] * (HEADS * DIM) + head * DIM
    tl.store(out_at + d, (acc / total[:, None]).to(out.dtype.element_ty), mask=there & (d < DIM))
    if REST > 0:
        tl.store(out_at + e, (acc_rest / total[:, None]).to(out.dtype.element_ty), mask=there & (e < DIM))
