"""What follows attention's input projection: norms of q and k, rotary embedding, and the writing of keys and values."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.fused.fp8 import FP8_MAX, pack, round_to_code
from kernels.fused.launch import overlap
from kernels.fused.partial import Partial, load_sum
from kernels.fused.pool import LayerPool
from kernels.registry import interpreted, use_triton


def split_qkv_reference(
    product: Partial,
    q_scale: Tensor,
    k_scale: Tensor,
    cos: Tensor,
    sin: Tensor,
    rows: Tensor,
    pool: LayerPool,
    eps: float,
    *,
    dtype: torch.dtype = torch.bfloat16,
    dependent: bool = False,
) -> tuple[Tensor, Tensor]:
    """:func:`split_qkv` in plain torch, in float32 until the results are rounded."""
    heads, dim, kv_heads = _heads(product, q_scale, cos, pool), pool.dim, pool.heads
    whole = product.sum()
    query, key, value = whole.split([heads * 2 * dim, kv_heads * dim, kv_heads * dim], dim=-1)
    q, gate = query.view(-1, heads, 2 * dim).chunk(2, dim=-1)
    q = _norm_rotate(q, q_scale, cos, sin, eps)
    k = _norm_rotate(key.view(-1, kv_heads, dim), k_scale, cos, sin, eps)
    kept = rows >= 0
    where = rows[kept].long()
    for x, target, scales in (
        (k, pool.k, pool.k_scale),
        (value.view(-1, kv_heads, dim), pool.v, pool.v_scale),
    ):
        if scales is None:
            target[where] = x[kept].to(target.dtype)
        else:
            codes, scale = pack(x[kept])
            target.view(torch.uint8)[where] = codes.view(torch.uint8)
            scales[where] = scale
    return q.to(dtype), gate.reshape(len(rows), -1).to(dtype)


def _norm_rotate(x: Tensor, scale: Tensor, cos: Tensor, sin: Tensor, eps: float) -> Tensor:
    """float32 [N, heads, D] → the same, normalised and rotated."""
    x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * scale
    half = cos.shape[1]
    cos, sin = cos[:, None].float(), sin[:, None].float()
    a, b = x[..., :half], x[..., half : 2 * half]
    return torch.cat([a * cos - b * sin, b * cos + a * sin, x[..., 2 * half :]], dim=-1)


def split_qkv(
    product: Partial,
    q_scale: Tensor,
    k_scale: Tensor,
    cos: Tensor,
    sin: Tensor,
    rows: Tensor,
    pool: LayerPool,
    eps: float,
    *,
    dtype: torch.dtype = torch.bfloat16,
    dependent: bool = False,
) -> tuple[Tensor, Tensor]:
    """Take the q, gate, k, v product of N columns apart: one launch, one rounding.

    Args:
        product: [N, Hq · (D query ‖ D gate) ‖ Hkv · D keys ‖ Hkv · D values].
        q_scale, k_scale: float32 [D], the scales of the norms (1 + w).
        cos, sin: [N, R], float32 or BF16; dimension j < R of a head turns with dimension j + R, those from 2R on stay.
        rows: integer [N], the pool row of each column; a column with a negative row is not written.
        pool: keys and values are written here, packed where the pool is.
        eps: of the norms.
        dtype: of what is returned.
        dependent: launched while the kernel before may still run (programmatic dependent launch).

    Returns:
        q [N, Hq, D], normalised and rotated, and the gate as it is [N, Hq · D].

    Raises:
        ValueError: sizes that do not fit each other.
    """
    if not use_triton(product.values):
        return split_qkv_reference(product, q_scale, k_scale, cos, sin, rows, pool, eps, dtype=dtype)
    heads, dim, count = _heads(product, q_scale, cos, pool), pool.dim, product.columns
    q = torch.empty(count, heads, dim, dtype=dtype, device=product.values.device)
    gate = torch.empty(count, heads * dim, dtype=dtype, device=product.values.device)
    if count:
        _split_qkv_kernel[(heads + 2 * pool.heads, count)](
            *product.arguments,
            q_scale,
            k_scale,
            cos,
            sin,
            cos.stride(0),
            rows,
            *pool.arguments(),
            q,
            gate,
            eps,
            OUT=product.out_features,
            LAYOUT=product.layout,
            HEADS=heads,
            KV_HEADS=pool.heads,
            DIM=dim,
            HALF=cos.shape[1],
            PACKED=pool.packed,
            CODE_MAX=FP8_MAX,
            INTERPRET=interpreted(),
            num_warps=1 if dim <= 64 else 2,
            **overlap(dependent, q),
        )
    return q, gate


def _heads(product: Partial, q_scale: Tensor, cos: Tensor, pool: LayerPool) -> int:
    """Query heads, by the product's size."""
    heads, rest = divmod(product.out_features - 2 * pool.heads * pool.dim, 2 * pool.dim)
    if heads < 1 or rest or heads % pool.heads:
        raise ValueError(
            f"{product.out_features} outputs are no queries, gates, keys and values of {pool.heads} KV heads of "
            f"dimension {pool.dim}."
        )
    if q_scale.shape != (pool.dim,) or 2 * cos.shape[1] > pool.dim or cos.stride(1) != 1:
        raise ValueError(
            f"Norm scales {list(q_scale.shape)} and rotary angles {list(cos.shape)} do not fit heads of {pool.dim}."
        )
    return heads


@triton.jit
def _split_qkv_kernel(  # type: ignore[no-untyped-def]
    values,
    slot_stride,
    column_stride,
    q_scale,
    k_scale,
    cos,
    sin,
    angle_stride,
    rows,
    k_pool,
    v_pool,
    k_pool_scale,
    v_pool_scale,
    row_stride,
    head_stride,
    scale_row_stride,
    scale_head_stride,
    q,
    gate,
    eps,
    OUT: tl.constexpr,
    LAYOUT: tl.constexpr,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    DIM: tl.constexpr,
    HALF: tl.constexpr,
    PACKED: tl.constexpr,
    CODE_MAX: tl.constexpr,
    INTERPRET: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """One head of one column: first the query heads with their gates, then keys, then values."""
    job, column = tl.program_id(0), tl.program_id(1)
    d = tl.arange(0, DIM)
    # The dimension that d turns with, the angle of the pair, and the sign of its sine.
    other = tl.where(d < HALF, d + HALF, d - HALF)
    turns = d < 2 * HALF
    angle = column * angle_stride + tl.where(d < HALF, d, d - HALF)
    c = tl.load(cos + angle, mask=turns, other=1.0).to(tl.float32)
    s = tl.load(sin + angle, mask=turns, other=0.0).to(tl.float32)
    s = tl.where(d < HALF, -s, s)
    row = tl.load(rows + column).to(tl.int64)
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    if job < HEADS:
        at = job * 2 * DIM
        x = load_sum(values, slot_stride, column_stride, column, at + d, d < DIM, OUT, LAYOUT)
        pair = load_sum(values, slot_stride, column_stride, column, at + other, turns, OUT, LAYOUT)
        g = load_sum(values, slot_stride, column_stride, column, at + DIM + d, d < DIM, OUT, LAYOUT)
        norm = tl.rsqrt(tl.sum(x * x) / DIM + eps)
        w, w_pair = tl.load(q_scale + d), tl.load(q_scale + other, mask=turns, other=0.0)
        x = x * norm * w * c + pair * norm * w_pair * s
        to = (column * HEADS + job).to(tl.int64) * DIM + d
        tl.store(q + to, x.to(q.dtype.element_ty))
        tl.store(gate + to, g.to(gate.dtype.element_ty))
    else:
        head = (job - HEADS) % KV_HEADS
        at = HEADS * 2 * DIM + (job - HEADS) * DIM
        x = load_sum(values, slot_stride, column_stride, column, at + d, d < DIM, OUT, LAYOUT)
        to = row * row_stride + head * head_stride + d
        scale_to = row * scale_row_stride + head * scale_head_stride
        if row >= 0:
            if job < HEADS + KV_HEADS:
                pair = load_sum(values, slot_stride, column_stride, column, at + other, turns, OUT, LAYOUT)
                norm = tl.rsqrt(tl.sum(x * x) / DIM + eps)
                w, w_pair = tl.load(k_scale + d), tl.load(k_scale + other, mask=turns, other=0.0)
                x = x * norm * w * c + pair * norm * w_pair * s
                _store_row(x, k_pool, to, k_pool_scale, scale_to, PACKED, CODE_MAX, INTERPRET)
            else:
                _store_row(x, v_pool, to, v_pool_scale, scale_to, PACKED, CODE_MAX, INTERPRET)


@triton.jit
def _store_row(x, pool, to, scales, scale_to, PACKED: tl.constexpr, CODE_MAX: tl.constexpr, INTERPRET: tl.constexpr):  # type: ignore[no-untyped-def]
    """One head of one row, as :func:`kernels.fused.pool.pack` packs it where the pool is packed."""
    if PACKED:
        scale = tl.max(tl.abs(x)) / CODE_MAX
        # A row of zeros has the scale 0; the bound keeps its inverse finite.
        x = x * (1.0 / tl.maximum(scale, 1e-37))
        x = tl.minimum(tl.maximum(x, -CODE_MAX), CODE_MAX)
        if INTERPRET:
            x = round_to_code(x)
        tl.store(scales + scale_to, scale)
        tl.store(pool + to, x.to(tl.float8e4nv).to(tl.uint8, bitcast=True))
    else:
        tl.store(pool + to, x.to(pool.dtype.element_ty))
