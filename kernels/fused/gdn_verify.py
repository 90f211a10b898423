"""The recurrence of several columns of each lane of which it is not known yet how many will stand.

The state is read once and left as it is. With decays G_t summed up over a lane's columns, what is written at column t
is u_t = β_t (v_t − e^(G_t) Sᵀk_t − Σ_{j < t} e^(G_t − G_j) (k_t · k_j) u_j): all products with the state are one
product with 2 T rows, through which it streams, and the rest is T × T. What ``gdn_fold`` needs to bring the state up to
any of the columns is recorded.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.fused.gdn import MAX_COLUMNS, GdnLayer, GdnRecord, GdnState, gates_reference, load_gates, silu
from kernels.fused.gdn_step import gated_norm_reference, split_heads
from kernels.fused.launch import overlap
from kernels.fused.partial import Partial, load_sum
from kernels.registry import use_triton

LAUNCH: dict[str, int] = {"num_warps": 4, "num_stages": 3}


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
    record.decay[:count] = g.cumsum(1).flatten(0, 1)
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
        BK=min(32, layer.key_dim),
        **LAUNCH,
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
    BK: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """One value head of one lane."""
    head, lane = tl.program_id(0), tl.program_id(1)
    GROUP: tl.constexpr = HEADS // KEY_HEADS
    key_head = head // GROUP
    j = tl.arange(0, DV)
    t = tl.arange(0, 16)
    live = t < T
    column = lane * T + t
    slot = tl.load(slots + lane).to(tl.int64)
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    # Rows 0–15 are q, 16–31 k. Three TF32 products stand for one in float32.
    both = tl.arange(0, 32)
    line = mixed + (lane * T + both % 16) * C + (both // 16 * KEY_HEADS + key_head) * DK
    s_rows = state + slot * state_stride + head * (DK * DV) + j[None, :]
    with_state = tl.zeros((32, DV), tl.float32)
    with_keys = tl.zeros((32, 16), tl.float32)
    for block in range(DK // BK):
        i = block * BK + tl.arange(0, BK)
        s = tl.load(s_rows + i[:, None] * DV)
        qk = tl.load(line[:, None] + i[None, :], mask=(both % 16 < T)[:, None], other=0.0)
        key = mixed + column[None, :] * C + (KEY_HEADS + key_head) * DK + i[:, None]
        keys = tl.load(key, mask=live[None, :], other=0.0)
        with_state = tl.dot(qk, s, acc=with_state, input_precision="tf32x3")
        with_keys = tl.dot(qk, keys, acc=with_keys, input_precision="tf32x3")
        if head % GROUP == 0:
            to = record_keys + (column[None, :] * KEY_HEADS + key_head) * DK + i[:, None]
            tl.store(to, keys, mask=live[None, :])
    q_state, k_state = tl.split(tl.permute(tl.reshape(with_state, (2, 16, DV)), (1, 2, 0)))
    q_keys, k_keys = tl.split(tl.permute(tl.reshape(with_keys, (2, 16, 16)), (1, 2, 0)))
    beta, g = load_gates(ba, decay, dt_bias, column, head, live, HEADS)
    total = tl.cumsum(g, axis=0)
    grown = tl.exp(total)
    between = tl.exp(tl.minimum(total[:, None] - total[None, :], 0.0))
    system = tl.where(t[:, None] > t[None, :], k_keys * between * beta[:, None], 0.0)
    inverse = tl.where(t[:, None] == t[None, :], 1.0, 0.0)
    for step in range(1, T):
        is_row = t[:, None] == step
        row = tl.sum(tl.where(is_row, system, 0.0), axis=0)
        inverse -= tl.where(is_row, tl.sum(row[:, None] * inverse, axis=0)[None, :], 0.0)
    value = mixed + column[:, None] * C + 2 * KEY_HEADS * DK + head * DV + j[None, :]
    v = tl.load(value, mask=live[:, None], other=0.0)
    u = tl.dot(inverse * beta[None, :], v - grown[:, None] * k_state, input_precision="tf32x3")
    within = tl.where(t[:, None] >= t[None, :], q_keys * between, 0.0)
    o = tl.dot(within, u, acc=grown[:, None] * q_state, input_precision="tf32x3")
    at = (column[:, None] * HEADS + head) * DV + j[None, :]
    tl.store(record_written + at, u, mask=live[:, None])
    tl.store(record_decay + column * HEADS + head, total, mask=live)
    gate = C + head * DV + j[None, :]
    z = load_sum(values, slot_stride, column_stride, column[:, None], gate, live[:, None], OUT, LAYOUT)
    y = o * tl.rsqrt(tl.sum(o * o, axis=1) / DV + eps)[:, None] * tl.load(norm + j)[None, :] * silu(z)
    tl.store(out + at, y.to(out.dtype.element_ty), mask=live[:, None])
