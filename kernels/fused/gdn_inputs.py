"""Convolution, SiLU and normalisation in front of the recurrence, for the columns of a round."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.causal_conv import causal_conv_chunk
from kernels.fused.gdn import MAX_COLUMNS, GdnLayer, GdnRecord, GdnState, silu
from kernels.fused.launch import overlap, power_of_two
from kernels.fused.partial import Partial, load_sum
from kernels.gated_delta import l2_normalise
from kernels.registry import use_triton


def gdn_inputs_reference(
    product: Partial,
    layer: GdnLayer,
    state: GdnState,
    slots: Tensor,
    *,
    rows: Tensor | None = None,
    record: GdnRecord | None = None,
    dependent: bool = False,
) -> Tensor:
    """:func:`gdn_inputs` in plain torch."""
    columns = _columns(product, layer, state, slots, record)
    x = product.sum()[:, : layer.channels].to(state.conv.dtype)
    if record is not None:
        record.inputs[: len(x)] = x
    parts = []
    for lane, slot in enumerate(slots.tolist()):
        y, after = causal_conv_chunk(x[lane * columns :][:columns].float(), layer.conv, state.conv[slot].float())
        parts.append(y)
        if record is None and (rows is None or rows[lane] >= 0):
            state.conv[slot] = after
    keys = layer.key_heads * layer.key_dim
    q, k, v = torch.cat(parts).split([keys, keys, layer.channels - 2 * keys], dim=-1)
    q = l2_normalise(q.unflatten(-1, (layer.key_heads, layer.key_dim)), layer.key_dim**-0.5)
    k = l2_normalise(k.unflatten(-1, (layer.key_heads, layer.key_dim)))
    return torch.cat([q.flatten(1), k.flatten(1), v], dim=-1)


def gdn_inputs(
    product: Partial,
    layer: GdnLayer,
    state: GdnState,
    slots: Tensor,
    *,
    rows: Tensor | None = None,
    record: GdnRecord | None = None,
    dependent: bool = False,
) -> Tensor:
    """q and k, convolved and normalised, and v, convolved, of B lanes × T columns.

    Args:
        product: [B · T, q ‖ k ‖ v ‖ z], lane after lane.
        state: its convolution is brought up to the column where T = 1 and nothing is recorded.
        slots: int32 [B], the lanes' slots.
        rows: int32 [B], the pool rows of the columns: the state of one with a negative row stays as it is. None: there
            is no such column.
        record: takes the inputs instead, to be settled by ``gdn_fold``; must be given where T > 1.
        dependent: launched while the kernel before may still run (programmatic dependent launch).

    Returns:
        float32 [B · T, C]; q carries the factor 1 / √Dk.
    """
    if not use_triton(product.values):
        return gdn_inputs_reference(product, layer, state, slots, rows=rows, record=record)
    columns = _columns(product, layer, state, slots, record)
    out = torch.empty(product.columns, layer.channels, dtype=torch.float32, device=product.values.device)
    grid = (2 * layer.key_heads + layer.value_heads, len(slots))
    arguments = (*product.arguments, layer.conv, state.conv, state.conv.stride(0), slots, out)
    constants = {"OUT": product.out_features, "LAYOUT": product.layout, "C": layer.channels}
    constants |= {"KEY_HEADS": layer.key_heads, "DK": layer.key_dim, "DV": layer.value_dim}
    constants |= {"D": max(layer.key_dim, layer.value_dim)}
    if record is None:
        written = slots if rows is None else rows  # no slot is negative
        _one_kernel[grid](*arguments, written, **constants, num_warps=1, **overlap(dependent, out))
    else:
        constants |= {"T": columns, "T_UP": power_of_two(columns)}
        _columns_kernel[grid](*arguments, record.inputs, **constants, num_warps=4, **overlap(dependent, out))
    return out


def _columns(product: Partial, layer: GdnLayer, state: GdnState, slots: Tensor, record: GdnRecord | None) -> int:
    """Columns of each lane."""
    layer.check(product.out_features, state)
    columns, rest = divmod(product.columns, len(slots))
    if rest or not 1 <= columns <= MAX_COLUMNS:
        raise ValueError(f"{product.columns} columns are not 1 to {MAX_COLUMNS} for each of {len(slots)} lanes.")
    if columns > 1 and record is None:
        raise ValueError(f"{columns} columns a lane must be recorded.")
    if record is not None and record.inputs.shape[0] < product.columns:
        raise ValueError(f"The record holds {record.inputs.shape[0]} columns, not {product.columns}.")
    return columns


@triton.jit
def _head(head, KEY_HEADS: tl.constexpr, DK: tl.constexpr, DV: tl.constexpr, D: tl.constexpr):  # type: ignore[no-untyped-def]
    """Channels of a head of q, k or v (D of them, those beyond its dimension masked) and what its norm is scaled by."""
    is_value = head >= 2 * KEY_HEADS
    d = tl.arange(0, D)
    c = tl.where(is_value, 2 * KEY_HEADS * DK + (head - 2 * KEY_HEADS) * DV, head * DK) + d
    return c, d < tl.where(is_value, DV, DK), tl.where(head < KEY_HEADS, DK**-0.5, 1.0)


@triton.jit
def _one_kernel(  # type: ignore[no-untyped-def]
    values,
    slot_stride,
    column_stride,
    weight,
    conv_state,
    state_stride,
    slots,
    out,
    rows,
    OUT: tl.constexpr,
    LAYOUT: tl.constexpr,
    C: tl.constexpr,
    KEY_HEADS: tl.constexpr,
    DK: tl.constexpr,
    DV: tl.constexpr,
    D: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """One head of q, k or v of the one column of a lane."""
    head, lane = tl.program_id(0), tl.program_id(1)
    c, mask, scale = _head(head, KEY_HEADS, DK, DV, D)
    w0 = tl.load(weight + c, mask=mask, other=0.0).to(tl.float32)
    w1 = tl.load(weight + C + c, mask=mask, other=0.0).to(tl.float32)
    w2 = tl.load(weight + 2 * C + c, mask=mask, other=0.0).to(tl.float32)
    w3 = tl.load(weight + 3 * C + c, mask=mask, other=0.0).to(tl.float32)
    row = conv_state + tl.load(slots + lane).to(tl.int64) * state_stride + c
    # Written a round ago, so it may be read before the wait.
    x0 = tl.load(row, mask=mask, other=0.0)
    x1 = tl.load(row + C, mask=mask, other=0.0)
    x2 = tl.load(row + 2 * C, mask=mask, other=0.0)
    written = mask & (tl.load(rows + lane) >= 0)
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    x3 = load_sum(values, slot_stride, column_stride, lane, c, mask, OUT, LAYOUT).to(conv_state.dtype.element_ty)
    # x3 is rounded as it will stand in the state: a token has the same inputs in every kind of round.
    y = x0.to(tl.float32) * w0 + x1.to(tl.float32) * w1 + x2.to(tl.float32) * w2 + x3.to(tl.float32) * w3
    y = silu(y)
    if head < 2 * KEY_HEADS:
        y = y * (tl.rsqrt(tl.sum(y * y) + 1e-6) * scale)
    tl.store(out + lane * C + c, y, mask=mask)
    tl.store(row, x1, mask=written)
    tl.store(row + C, x2, mask=written)
    tl.store(row + 2 * C, x3, mask=written)


@triton.jit
def _columns_kernel(  # type: ignore[no-untyped-def]
    values,
    slot_stride,
    column_stride,
    weight,
    conv_state,
    state_stride,
    slots,
    out,
    record,
    OUT: tl.constexpr,
    LAYOUT: tl.constexpr,
    C: tl.constexpr,
    KEY_HEADS: tl.constexpr,
    DK: tl.constexpr,
    DV: tl.constexpr,
    D: tl.constexpr,
    T: tl.constexpr,
    T_UP: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """One head of q, k or v of all columns of a lane, whose inputs are recorded."""
    head, lane = tl.program_id(0), tl.program_id(1)
    c, mask, scale = _head(head, KEY_HEADS, DK, DV, D)
    c, mask = c[None, :], mask[None, :]
    t = tl.arange(0, T_UP)[:, None]
    column, live = lane * T + t, mask & (t < T)
    row = conv_state + tl.load(slots + lane).to(tl.int64) * state_stride + c
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    x = load_sum(values, slot_stride, column_stride, column, c, live, OUT, LAYOUT).to(conv_state.dtype.element_ty)
    tl.store(record + column * C + c, x, mask=live)
    # Rounded as it will stand in the state: a token has the same inputs in every kind of round.
    x = x.to(tl.float32)
    y = x * tl.load(weight + 3 * C + c, mask=mask, other=0.0).to(tl.float32)
    for tap in tl.static_range(3):
        back = 3 - tap
        old = tl.load(row + (t - back + 3) * C, mask=live & (t < back), other=0.0).to(tl.float32)
        new = tl.gather(x, tl.broadcast_to(tl.maximum(t - back, 0), (T_UP, D)), axis=0)
        w = tl.load(weight + tap * C + c, mask=mask, other=0.0).to(tl.float32)
        y += tl.where(t < back, old, new) * w
    y = silu(y)
    if head < 2 * KEY_HEADS:
        y = y * (tl.rsqrt(tl.sum(y * y, axis=1) + 1e-6) * scale)[:, None]
    tl.store(out + column * C + c, y, mask=live)
