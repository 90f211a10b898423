"""The recurrence of several columns of each lane of which it is not known yet how many will stand.

The state is read once and left in memory as it was. With decays G_t summed up over a lane's columns, what is written at
column t is u_t = β_t (v_t − e^(G_t) Sᵀk_t) − Σ_{j < t} β_t e^(G_t − G_j) (k_t · k_j) u_j, and o_t = e^(G_t) Sᵀq_t +
Σ_{j ≤ t} e^(G_t − G_j) (q_t · k_j) u_j. So u and o together solve one unit lower triangular system; its right side and
its matrix are two products of all the columns' k and q, with the state and with themselves. What ``gdn_fold`` needs to
bring the state up to any of the columns is recorded.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.fused.gdn import MAX_COLUMNS, GdnLayer, GdnRecord, GdnState, gates_reference, load_gates, precise_dot, silu
from kernels.fused.gdn_step import gated_norm_reference, split_heads
from kernels.fused.launch import overlap, power_of_two
from kernels.fused.partial import Partial, load_sum
from kernels.registry import interpreted, use_triton


def gdn_verify_reference(
    mixed: Tensor,
    product: Partial,
    ba: Tensor,
    layer: GdnLayer,
    state: GdnState,
    slots: Tensor,
    record: GdnRecord,
    *,
    dtype: torch.dtype = torch.bfloat16,
    dependent: bool = False,
) -> Tensor:
    """:func:`gdn_verify` in plain torch, column by column."""
    columns = _columns(mixed, product, ba, layer, state, slots, record)
    q, k, v = (x.unflatten(0, (len(slots), columns)) for x in split_heads(mixed, layer))
    beta, g = (x.unflatten(0, (len(slots), columns)) for x in gates_reference(ba, layer))
    s = state.recurrent[slots.long()]
    written, out = torch.empty_like(v), torch.empty_like(v)
    for t in range(columns):
        s = s * g[:, t].exp()[..., None, None]
        written[:, t] = beta[:, t, :, None] * (v[:, t] - torch.einsum("bhkv,bhk->bhv", s, k[:, t]))
        s = s + k[:, t, ..., None] * written[:, t, :, None]
        out[:, t] = torch.einsum("bhkv,bhk->bhv", s, q[:, t])
    count = product.columns
    record.keys[:count] = k.flatten(0, 1)[:, :: layer.value_heads // layer.key_heads]
    record.written[:count] = written.flatten(0, 1)
    record.decay[:count] = g.exp().flatten(0, 1)
    return gated_norm_reference(out.flatten(0, 1), product, layer, dtype)


def gdn_verify(
    mixed: Tensor,
    product: Partial,
    ba: Tensor,
    layer: GdnLayer,
    state: GdnState,
    slots: Tensor,
    record: GdnRecord,
    *,
    dtype: torch.dtype = torch.bfloat16,
    dependent: bool = False,
) -> Tensor:
    """T columns of each of B lanes, recorded.

    Args:
        mixed: float32 [B · T, C], of ``gdn_inputs`` with the same ``record``.
        product: [B · T, q ‖ k ‖ v ‖ z], of which z is read.
        ba: [B · T, b ‖ a], 2 Hv values of any float type.
        state: read, not changed.
        slots: int32 [B].
        record: what was written, into its first B · T columns.
        dtype: of the result.
        dependent: launched while the kernel before may still run (programmatic dependent launch).

    Returns:
        [B · T, Hv · Dv]: RMSNorm(Sᵀq / √Dk) · SiLU(z).
    """
    if not use_triton(mixed):
        return gdn_verify_reference(mixed, product, ba, layer, state, slots, record, dtype=dtype)
    columns = _columns(mixed, product, ba, layer, state, slots, record)
    out = torch.empty(product.columns, layer.value_heads * layer.value_dim, dtype=dtype, device=mixed.device)
    _verify_kernel[(layer.value_heads, len(slots))](
        mixed,
        *product.arguments,
        ba,
        layer.decay,
        layer.dt_bias,
        layer.norm,
        state.recurrent,
        state.recurrent.stride(0),
        slots,
        record.keys,
        record.written,
        record.decay,
        out,
        layer.eps,
        OUT=product.out_features,
        LAYOUT=product.layout,
        C=layer.channels,
        KEY_HEADS=layer.key_heads,
        HEADS=layer.value_heads,
        DK=layer.key_dim,
        DV=layer.value_dim,
        T=columns,
        T_UP=max(8, power_of_two(columns)),
        INTERPRET=interpreted(),
        num_warps=4,
        **overlap(dependent, out),
    )
    return out


def _columns(
    mixed: Tensor, product: Partial, ba: Tensor, layer: GdnLayer, state: GdnState, slots: Tensor, record: GdnRecord
) -> int:
    """Columns of each lane."""
    layer.check(product.out_features, state)
    columns, rest = divmod(product.columns, len(slots))
    if rest or not 1 <= columns <= MAX_COLUMNS:
        raise ValueError(f"{product.columns} columns are not 1 to {MAX_COLUMNS} for each of {len(slots)} lanes.")
    if record.keys.shape[0] < product.columns:
        raise ValueError(f"The record holds {record.keys.shape[0]} columns, not {product.columns}.")
    if mixed.shape != (product.columns, layer.channels) or ba.shape != (product.columns, 2 * layer.value_heads):
        raise ValueError(
            f"{product.columns} columns take {layer.channels} and {2 * layer.value_heads} values each, not "
            f"{list(mixed.shape)} and {list(ba.shape)}."
        )
    return columns


@triton.jit
def _verify_kernel(  # type: ignore[no-untyped-def]
    mixed,
    values,
    slot_stride,
    column_stride,
    ba,
    decay,
    dt_bias,
    norm,
    state,
    state_stride,
    slots,
    record_keys,
    record_written,
    record_decay,
    out,
    eps,
    OUT: tl.constexpr,
    LAYOUT: tl.constexpr,
    C: tl.constexpr,
    KEY_HEADS: tl.constexpr,
    HEADS: tl.constexpr,
    DK: tl.constexpr,
    DV: tl.constexpr,
    T: tl.constexpr,
    T_UP: tl.constexpr,
    INTERPRET: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """One value head of one lane."""
    head, lane = tl.program_id(0), tl.program_id(1)
    GROUP: tl.constexpr = HEADS // KEY_HEADS
    key_head = head // GROUP
    i, j = tl.arange(0, DK), tl.arange(0, DV)
    slot = tl.load(slots + lane).to(tl.int64)
    # Written a round ago, so it may be read before the wait.
    s = tl.load(state + slot * state_stride + head * (DK * DV) + i[:, None] * DV + j[None, :])
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    # Rows: the k (and u) of all columns, then their q (and o).
    r = tl.arange(0, 2 * T_UP)
    t, is_q = r % T_UP, r >= T_UP
    column, live = lane * T + t, t < T
    is_k = live & (r < T_UP)
    part = tl.where(is_q, 0, KEY_HEADS) + key_head
    kq = tl.load(mixed + column[:, None] * C + part[:, None] * DK + i[None, :], mask=live[:, None], other=0.0)
    value = mixed + column[:, None] * C + 2 * KEY_HEADS * DK + head * DV + j[None, :]
    v = tl.load(value, mask=is_k[:, None], other=0.0)
    beta, g = load_gates(ba, decay, dt_bias, column, head, live, HEADS)
    # In this order: in the other the compiler gives every warp the whole state and spills three quarters of it.
    products = precise_dot(kq, tl.trans(kq), tl.zeros((2 * T_UP, 2 * T_UP), tl.float32), INTERPRET)
    with_state = precise_dot(kq, s, tl.zeros((2 * T_UP, DV), tl.float32), INTERPRET)
    c = r[None, :]
    total = tl.sum(tl.where(c <= t[:, None], g[None, :], 0.0), axis=1)
    grown = tl.exp(total)
    left = tl.exp(tl.minimum(total[:, None] - total[None, :], 0.0))
    before = tl.where(is_q[:, None], c <= t[:, None], c < t[:, None])
    sign = tl.where(is_q, -1.0, beta)
    matrix = tl.where(before, products * left * sign[:, None], 0.0)
    x = beta[:, None] * v - (sign * grown)[:, None] * with_state
    for step in range(T):
        # Row ``step`` is settled; take its share off those after it.
        row = tl.sum(tl.where(r[:, None] == step, x, 0.0), axis=0)
        share = tl.sum(tl.where(c == step, matrix, 0.0), axis=1)
        x -= share[:, None] * row[None, :]
    at = (column[:, None] * HEADS + head) * DV + j[None, :]
    tl.store(record_written + at, x, mask=is_k[:, None])
    tl.store(record_decay + column * HEADS + head, tl.exp(g), mask=is_k)
    if head % GROUP == 0:
        tl.store(record_keys + (column[:, None] * KEY_HEADS + key_head) * DK + i[None, :], kq, mask=is_k[:, None])
    is_o = (live & is_q)[:, None]
    z = load_sum(values, slot_stride, column_stride, column[:, None], C + head * DV + j[None, :], is_o, OUT, LAYOUT)
    y = x * tl.rsqrt(tl.sum(x * x, axis=1) / DV + eps)[:, None] * tl.load(norm + j)[None, :] * silu(z)
    tl.store(out + at, y.to(out.dtype.element_ty), mask=is_o)
