"""Activations in the order in which NVFP4 fragments count their columns.

Lane t of a fragment holds 16 consecutive columns of 64, while ``wgmma`` gives it k = 2t, 2t + 1 of every eight. With
the bits of a column written as (b, t, w, j, i), t and j of two bits, its value therefore stands at (b, w, j, t, i).
Whoever writes activations that are multiplied with nine columns or more can store them so at no cost;
:func:`arrange` does it for those who do not.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.fused.launch import ceil_div, overlap
from kernels.registry import use_triton


@triton.jit
def fragment_position(column):  # type: ignore[no-untyped-def]
    """Where the value of ``column`` stands. On integers and torch's tensors as ``fragment_position.fn``."""
    return (column & ~0x3E) | ((column & 0x0E) << 2) | ((column & 0x30) >> 3)


@triton.jit
def fragment_column(position):  # type: ignore[no-untyped-def]
    """The inverse: whose value stands at ``position``."""
    return (position & ~0x3E) | ((position & 0x38) >> 2) | ((position & 0x06) << 3)


def arrange(x: Tensor, columns: int, *, fragments: bool, dependent: bool = False) -> Tensor:
    """x [N, K] as [N, ``columns``], with zeros beyond K; in the fragments' order if asked."""
    rows, width = x.shape
    if not use_triton(x):
        return arrange_reference(x, columns, fragments=fragments)
    out = torch.empty(rows, columns, dtype=x.dtype, device=x.device)
    block = 1024
    _arrange_kernel[(rows, ceil_div(columns, block))](
        x, out, x.stride(0), width, columns, FRAGMENTS=fragments, BLOCK=block, **overlap(dependent, x)
    )
    return out


def arrange_reference(x: Tensor, columns: int, *, fragments: bool) -> Tensor:
    padded = torch.nn.functional.pad(x, (0, columns - x.shape[1]))
    return padded[:, fragment_column.fn(torch.arange(columns, device=x.device))] if fragments else padded


def natural(x: Tensor) -> Tensor:
    """[N, K] in the fragments' order → in the columns' own."""
    return x[:, fragment_position.fn(torch.arange(x.shape[1], device=x.device))]


@triton.jit
def _arrange_kernel(  # type: ignore[no-untyped-def]
    x, out, stride, width, columns, FRAGMENTS: tl.constexpr, BLOCK: tl.constexpr, DEPENDENT: tl.constexpr
):
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    row = tl.program_id(0)
    position = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    column = fragment_column(position) if FRAGMENTS else position
    value = tl.load(x + row * stride + column, mask=column < width, other=0.0)
    tl.store(out + row * columns + position, value, mask=position < columns)
