"""The recurrence of one column of each lane, its state updated in place, and the gated norm on what it gives."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.fused.gdn import GdnLayer, GdnState, gates_reference, load_gates, silu
from kernels.fused.launch import overlap
from kernels.fused.partial import Partial, load_sum
from kernels.norm import rms_norm_gated
from kernels.registry import use_triton


def gdn_step_reference(
    mixed: Tensor,
    product: Partial,
    ba: Tensor,
    layer: GdnLayer,
    state: GdnState,
    slots: Tensor,
    *,
    rows: Tensor | None = None,
    dtype: torch.dtype = torch.bfloat16,
    dependent: bool = False,
) -> Tensor:
    """:func:`gdn_step` in plain torch."""
    _check(mixed, product, ba, layer, state, slots)
    q, k, v = split_heads(mixed, layer)
    beta, g = gates_reference(ba, layer)
    where = slots.long()
    s = state.recurrent[where] * g.exp()[..., None, None]
    u = beta[..., None] * (v - torch.einsum("bhkv,bhk->bhv", s, k))
    s += k[..., None] * u[..., None, :]
    written = slice(None) if rows is None else rows >= 0
    state.recurrent[where[written]] = s[written]
    return gated_norm_reference(torch.einsum("bhkv,bhk->bhv", s, q), product, layer, dtype)


def split_heads(mixed: Tensor, layer: GdnLayer) -> tuple[Tensor, Tensor, Tensor]:
    """q, k, v [N, Hv, D] per value head of what ``gdn_inputs`` gives."""
    keys, share = layer.key_heads * layer.key_dim, layer.value_heads // layer.key_heads
    q, k, v = mixed.split([keys, keys, mixed.shape[1] - 2 * keys], dim=-1)
    q, k = (x.unflatten(-1, (layer.key_heads, -1)).repeat_interleave(share, dim=1) for x in (q, k))
    return q, k, v.unflatten(-1, (layer.value_heads, -1))


def gated_norm_reference(out: Tensor, product: Partial, layer: GdnLayer, dtype: torch.dtype) -> Tensor:
    """[N, Hv, Dv] → rms_norm(out) · SiLU(z) [N, Hv · Dv], z from the inputs' product."""
    z = product.sum()[:, layer.channels :].unflatten(-1, (layer.value_heads, -1))
    return rms_norm_gated(out, z, layer.norm, layer.eps).flatten(1).to(dtype)


def gdn_step(
    mixed: Tensor,
    product: Partial,
    ba: Tensor,
    layer: GdnLayer,
    state: GdnState,
    slots: Tensor,
    *,
    rows: Tensor | None = None,
    dtype: torch.dtype = torch.bfloat16,
    dependent: bool = False,
) -> Tensor:
    """One column of each of B lanes; one read and one write of their states.

    Args:
        mixed: float32 [B, C], of ``gdn_inputs``.
        product: [B, q ‖ k ‖ v ‖ z], of which z is read.
        ba: [B, b ‖ a], 2 Hv values of any float type.
        state: its recurrence is updated in place.
        slots: int32 [B], no slot twice.
        rows: int32 [B], the pool rows of the columns: the state of one with a negative row stays as it is. None: there
            is no such column.
        dtype: of the result.
        dependent: launched while the kernel before may still run (programmatic dependent launch).

    Returns:
        [B, Hv · Dv]: RMSNorm(Sᵀq / √Dk) · SiLU(z), what the layer's output matrix takes.
    """
    if not use_triton(mixed):
        return gdn_step_reference(mixed, product, ba, layer, state, slots, rows=rows, dtype=dtype)
    _check(mixed, product, ba, layer, state, slots)
    out = torch.empty(len(slots), layer.value_heads * layer.value_dim, dtype=dtype, device=mixed.device)
    _step_kernel[(layer.value_heads, len(slots))](
        mixed,
        *product.arguments,
        ba,
        layer.decay,
        layer.dt_bias,
        layer.norm,
        state.recurrent,
        state.recurrent.stride(0),
        slots,
        slots if rows is None else rows,  # no slot is negative
        out,
        layer.eps,
        OUT=product.out_features,
        LAYOUT=product.layout,
        C=layer.channels,
        KEY_HEADS=layer.key_heads,
        HEADS=layer.value_heads,
        DK=layer.key_dim,
        DV=layer.value_dim,
        # 212 registers: two programs on a multiprocessor, so that one loads while the other stores.
        num_warps=4,
        **overlap(dependent, out),
    )
    return out


def _check(mixed: Tensor, product: Partial, ba: Tensor, layer: GdnLayer, state: GdnState, slots: Tensor) -> None:
    layer.check(product.out_features, state)
    shapes = (list(mixed.shape), product.columns, list(ba.shape))
    if shapes != ([len(slots), layer.channels], len(slots), [len(slots), 2 * layer.value_heads]):
        raise ValueError(
            f"A step of {len(slots)} lanes takes {layer.channels} and {2 * layer.value_heads} values a lane, not "
            f"{shapes[0]} and {shapes[2]} beside a product of {shapes[1]} columns."
        )


@triton.jit
def _step_kernel(  # type: ignore[no-untyped-def]
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
    rows,
    out,
    eps,
    OUT: tl.constexpr,
    LAYOUT: tl.constexpr,
    C: tl.constexpr,
    KEY_HEADS: tl.constexpr,
    HEADS: tl.constexpr,
    DK: tl.constexpr,
    DV: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """One value head of one lane, its state in registers."""
    head, lane = tl.program_id(0), tl.program_id(1)
    i, j = tl.arange(0, DK), tl.arange(0, DV)
    slot = tl.load(slots + lane).to(tl.int64)
    where = state + slot * state_stride + head * (DK * DV) + i[:, None] * DV + j[None, :]
    # The state is on its way while the kernels before still run: nothing has written it since the last round.
    s = tl.load(where)
    w = tl.load(norm + j)
    row = tl.load(rows + lane)
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    key = mixed + lane * C + head // (HEADS // KEY_HEADS) * DK + i
    q, k = tl.load(key), tl.load(key + KEY_HEADS * DK)
    v = tl.load(mixed + lane * C + 2 * KEY_HEADS * DK + head * DV + j)
    beta, g = load_gates(ba, decay, dt_bias, lane, head, True, HEADS)
    z = load_sum(values, slot_stride, column_stride, lane, C + head * DV + j, j < DV, OUT, LAYOUT)
    s *= tl.exp(g)
    # o = (S + k ⊗ u)ᵀ q = Sᵀq + (k · q) u: both products with the state before it changes, so neither waits.
    u = beta * (v - tl.sum(s * k[:, None], axis=0))
    o = tl.sum(s * q[:, None], axis=0) + tl.sum(k * q) * u
    tl.store(where, s + k[:, None] * u[None, :], mask=row >= 0)
    y = o * tl.rsqrt(tl.sum(o * o) / DV + eps) * w * silu(z)
    tl.store(out + (lane * HEADS + head) * DV + j, y.to(out.dtype.element_ty))
