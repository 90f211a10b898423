"""Rotary embedding of a vision layer's queries and keys in Triton, with its gradient.

Both ways it is as fast as memory: what is read and written is qkv and nothing else. (Compiled from torch for any shape
it took 15 times as long: an index divided by sizes only known at run time, for every element, in 64 bits.)
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

ROWS = 64


@triton.jit(do_not_specialize=("rows", "patches"))
def rotate_kernel(
    source,
    out,
    cos,
    sin,
    rows,
    patches,
    SOURCE: tl.constexpr,
    OUT: tl.constexpr,
    HEADS: tl.constexpr,
    HALF: tl.constexpr,
    ROWS: tl.constexpr,
    BACK: tl.constexpr,
):
    """Every head of ROWS rows, SOURCE and OUT elements apart; row i stands at patch i mod ``patches``, whose angles are
    in cos, sin [patches, 2 · HALF] (both halves alike). ``BACK`` turns the other way."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    live = row[:, None] < rows
    d = tl.arange(0, HALF)[None, :]
    angle = (row % patches)[:, None] * (2 * HALF) + d
    c, s = tl.load(cos + angle, mask=live, other=0.0), tl.load(sin + angle, mask=live, other=0.0)
    if BACK:
        s = -s
    row = row[:, None].to(tl.int64)
    for head in tl.static_range(HEADS):
        at = source + row * SOURCE + head * (2 * HALF) + d
        x, y = tl.load(at, mask=live, other=0.0).to(tl.float32), tl.load(at + HALF, mask=live, other=0.0).to(tl.float32)
        to = out + row * OUT + head * (2 * HALF) + d
        tl.store(to, (x * c - y * s).to(out.dtype.element_ty), mask=live)
        tl.store(to + HALF, (y * c + x * s).to(out.dtype.element_ty), mask=live)


def suits(qkv: Tensor) -> bool:
    return qkv.dtype == torch.bfloat16 and qkv.shape[-1] in (32, 64, 128)


def _turn(source: Tensor, out: Tensor, cos: Tensor, sin: Tensor, back: bool) -> None:
    """source, out [B, P, H, D], the last two dimensions of both contiguous and rows evenly apart."""
    batch, patches, heads, dim = source.shape
    rows = batch * patches
    strides = {"SOURCE": source.stride(1), "OUT": out.stride(1)}
    sizes = {"HEADS": heads, "HALF": dim // 2, "ROWS": ROWS}
    rotate_kernel[(-(-rows // ROWS),)](source, out, cos, sin, rows, patches, **strides, **sizes, BACK=back)


class _Rotate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, qkv: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, ...]:
        qkv, cos, sin = qkv.contiguous(), cos.contiguous(), sin.contiguous()
        ctx.save_for_backward(cos, sin)
        turned = [torch.empty_like(qkv[:, :, part], memory_format=torch.contiguous_format) for part in range(2)]
        for part, out in enumerate(turned):
            _turn(qkv[:, :, part], out, cos, sin, back=False)
        return *turned, qkv[:, :, 2]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad = grads[0].new_empty(*grads[0].shape[:2], 3, *grads[0].shape[2:])
        for part in range(2):
            _turn(grads[part].contiguous(), grad[:, :, part], *ctx.saved_tensors, back=True)
        grad[:, :, 2] = grads[2]
        return grad, None, None


def rotate_heads(qkv: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, ...]:
    return _Rotate.apply(qkv, cos, sin)
