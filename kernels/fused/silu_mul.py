"""The gate of the feed-forward network on the product of both its input matrices."""

from __future__ import annotations

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from kernels.fused.activations import arrange_reference, fragment_position
from kernels.fused.gdn import silu
from kernels.fused.launch import ceil_div, overlap
from kernels.fused.partial import Partial, load_sum
from kernels.registry import use_triton


def silu_mul_reference(
    gate_up: Partial, *, dtype: torch.dtype = torch.bfloat16, in_fragments: bool = False, dependent: bool = False
) -> Tensor:
    """:func:`silu_mul` in plain torch."""
    _check(gate_up)
    gate, up = gate_up.sum().chunk(2, dim=-1)
    product = (F.silu(gate) * up).to(dtype)
    return arrange_reference(product, product.shape[1], fragments=True) if in_fragments else product


def silu_mul(
    gate_up: Partial, *, dtype: torch.dtype = torch.bfloat16, in_fragments: bool = False, dependent: bool = False
) -> Tensor:
    """SiLU(gate) · up.

    Args:
        gate_up: [N, gate ‖ up], 2 I values.
        dtype: of the result; it is rounded once.
        in_fragments: store it in the order of :mod:`kernels.fused.activations`; I is then a multiple of 128.
        dependent: launched while the kernel before may still run (programmatic dependent launch).

    Returns:
        [N, I].
    """
    if not use_triton(gate_up.values):
        return silu_mul_reference(gate_up, dtype=dtype, in_fragments=in_fragments)
    _check(gate_up)
    count, width = gate_up.columns, gate_up.out_features // 2
    out = torch.empty(count, width, dtype=dtype, device=gate_up.values.device)
    # Few columns: many small programs, so that the slots are read with all the card's requests in flight.
    block, warps = (256, 2) if count <= 4 else (512, 4) if count <= 64 else (1024, 4)
    _silu_mul_kernel[(ceil_div(width, block), count)](
        *gate_up.arguments,
        out,
        OUT=2 * width,
        LAYOUT=gate_up.layout,
        FRAGMENTS=in_fragments,
        BLOCK=block,
        num_warps=warps,
        **overlap(dependent, out),
    )
    return out


def _check(gate_up: Partial) -> None:
    if gate_up.out_features % 2:
        raise ValueError(f"Gate and up are equally wide; their product has {gate_up.out_features} values a column.")


@triton.jit
def _silu_mul_kernel(  # type: ignore[no-untyped-def]
    values,
    slot_stride,
    column_stride,
    out,
    OUT: tl.constexpr,
    LAYOUT: tl.constexpr,
    FRAGMENTS: tl.constexpr,
    BLOCK: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    WIDTH: tl.constexpr = OUT // 2
    column = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    gate = load_sum(values, slot_stride, column_stride, column, row, row < WIDTH, OUT, LAYOUT)
    up = load_sum(values, slot_stride, column_stride, column, WIDTH + row, row < WIDTH, OUT, LAYOUT)
    place = fragment_position(row) if FRAGMENTS else row
    tl.store(out + column * WIDTH + place, (silu(gate) * up).to(out.dtype.element_ty), mask=row < WIDTH)
