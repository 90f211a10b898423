"""The recurrence of several columns of each lane of which it is not known yet how many will stand.

The state is read once, goes through the columns in registers, by the same operations in the same order as column by
column in ``gdn_step``, and is left in memory as it was. What ``gdn_fold`` needs to bring it up to any of the columns is
recorded.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.fused.gdn import MAX_COLUMNS, GdnLayer, GdnRecord, GdnState, gates_reference, load_gates, silu
from kernels.fused.gdn_step import advance, gated_norm_reference, split_heads
from kernels.fused.launch import overlap
from kernels.fused.partial import Partial, load_sum
from kernels.registry import use_triton

LAUNCH: dict[str, int] = {"num_warps": 4}


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
        torch.empty(out.shape, dtype=torch.float32, device=out.device),
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
        T_UP=triton.next_power_of_2(columns),
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
    scratch,
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
    for t in range(T):
        column = lane * T + t
        key = mixed + column * C + key_head * DK + i
        q, k = tl.load(key), tl.load(key + KEY_HEADS * DK)
        v = tl.load(mixed + column * C + 2 * KEY_HEADS * DK + head * DV + j)
        beta, g = load_gates(ba, decay, dt_bias, column, head, True, HEADS)
        left = tl.exp(g)
        s, u, o = advance(s, q, k, v, beta, left)
        at = (column * HEADS + head) * DV + j
        tl.store(record_written + at, u)
        tl.store(scratch + at, o)
        tl.store(record_decay + column * HEADS + head, left)
        if head % GROUP == 0:
            tl.store(record_keys + (column * KEY_HEADS + key_head) * DK + i, k)
    tl.debug_barrier()
    t = tl.arange(0, T_UP)[:, None]
    column, live = lane * T + t, t < T
    at = (column * HEADS + head) * DV + j[None, :]
    o = tl.load(scratch + at, mask=live, other=0.0)
    z = load_sum(values, slot_stride, column_stride, column, C + head * DV + j[None, :], live, OUT, LAYOUT)
    y = o * tl.rsqrt(tl.sum(o * o, axis=1) / DV + eps)[:, None] * tl.load(norm + j)[None, :] * silu(z)
    tl.store(out + at, y.to(out.dtype.element_ty), mask=live)
