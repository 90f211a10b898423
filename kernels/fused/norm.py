"""What stands between two sublayers: the residual stream takes in a product, and its norm goes to the next."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.fused.activations import arrange_reference, fragment_position
from kernels.fused.launch import overlap, power_of_two
from kernels.fused.partial import Partial, load_sum
from kernels.norm import rms_norm
from kernels.registry import use_triton
from kernels.served import WIDEST


def add_rms_norm_reference(
    residual: Tensor,
    delta: Partial | None,
    scale: Tensor,
    eps: float,
    *,
    in_fragments: bool = False,
    dependent: bool = False,
) -> tuple[Tensor, Tensor]:
    """:func:`add_rms_norm` in plain torch."""
    _check(residual, delta, scale)
    total = residual.float()
    if delta is not None:
        total = total + delta.sum()
        residual.copy_(total)
    normed = rms_norm(total, scale, eps).to(residual.dtype)
    return residual, arrange_reference(normed, normed.shape[1], fragments=True) if in_fragments else normed


def add_rms_norm(
    residual: Tensor,
    delta: Partial | None,
    scale: Tensor,
    eps: float,
    *,
    in_fragments: bool = False,
    dependent: bool = False,
) -> tuple[Tensor, Tensor]:
    """residual + delta, and RMSNorm of it: one launch, one rounding of each.

    Args:
        residual: [N, H], any H up to 16,384; updated in place.
        delta: [N, H], a sublayer's output matrix's product; None where there is none yet.
        scale: float32 [H]: 1 + w for the zero-centred norms.
        in_fragments: store the norm in the order of :mod:`kernels.fused.activations`; H is then a multiple of 128.
        dependent: launched while the kernel before may still run (programmatic dependent launch).

    Returns:
        (residual, its norm [N, H] of the same type, taken before the sum was rounded).
    """
    if not use_triton(residual):
        return add_rms_norm_reference(residual, delta, scale, eps, in_fragments=in_fragments)
    _check(residual, delta, scale)
    count, hidden = residual.shape
    normed = torch.empty_like(residual)
    given = Partial(residual) if delta is None else delta
    _norm_kernel[(count,)](
        *given.arguments,
        residual,
        residual.stride(0),
        scale,
        normed,
        eps,
        H=hidden,
        LAYOUT=given.layout,
        ADD=delta is not None,
        FRAGMENTS=in_fragments,
        BLOCK=power_of_two(hidden),
        num_warps=min(32, max(1, power_of_two(hidden) // 256)),
        **overlap(dependent, residual),
    )
    return residual, normed


def _check(residual: Tensor, delta: Partial | None, scale: Tensor) -> None:
    hidden = residual.shape[-1]
    if residual.dim() != 2 or residual.stride(-1) != 1 or hidden > WIDEST:
        raise ValueError(
            f"A residual stream is [N, H], contiguous in H, H at most {WIDEST}, not {list(residual.shape)} with "
            f"strides {residual.stride()}."
        )
    if scale.shape != (hidden,) or (delta is not None and (delta.columns, delta.out_features) != tuple(residual.shape)):
        what = list(scale.shape) if delta is None else [delta.columns, delta.out_features]
        raise ValueError(
            f"A residual stream {list(residual.shape)} cannot take {what} and a scale {list(scale.shape)}."
        )


@triton.jit
def _norm_kernel(  # type: ignore[no-untyped-def]
    values,
    slot_stride,
    column_stride,
    residual,
    residual_stride,
    scale,
    normed,
    eps,
    H: tl.constexpr,
    LAYOUT: tl.constexpr,
    ADD: tl.constexpr,
    FRAGMENTS: tl.constexpr,
    BLOCK: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """One column."""
    column, c = tl.program_id(0), tl.arange(0, BLOCK)
    mask = c < H
    w = tl.load(scale + c, mask=mask, other=0.0)
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    at = residual + column.to(tl.int64) * residual_stride + c
    total = tl.load(at, mask=mask, other=0.0).to(tl.float32)
    if ADD:
        total += load_sum(values, slot_stride, column_stride, column.to(tl.int64), c, mask, H, LAYOUT)
        tl.store(at, total.to(residual.dtype.element_ty), mask=mask)
    y = total * tl.rsqrt(tl.sum(total * total) / H + eps) * w
    place = fragment_position(c) if FRAGMENTS else c
    tl.store(normed + column.to(tl.int64) * H + place, y.to(normed.dtype.element_ty), mask=mask)
