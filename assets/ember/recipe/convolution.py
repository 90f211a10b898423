"""The causal depthwise convolution of four taps and its SiLU in Triton, with gradients.

A sequence stands behind its left context (three positions, or zeros): joined position j is context where j < 3 and
x[j - 3] behind it, so that output t is the sum of the taps over joined positions t … t + 3. Forward reads x and writes
the output; back, the sums before the SiLU are computed again, each position's four times, from what lies in the first
cache: memory sees x, the output's gradient and x's gradient once.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

TAPS, ROWS, CHANNELS = 4, 32, 64
ANY = {"do_not_specialize": ("length", "tiles"), "do_not_specialize_on_alignment": ("weight",)}
"""One compiled form for every length and every layer's taps, which lie anywhere among the weights."""


@triton.jit
def _joined(x, left, batch, j, c, live, length, C: tl.constexpr, CONTEXT: tl.constexpr):
    """Joined positions j of channels c, in float32; zeros before the context and behind the end."""
    at = batch * length * C
    found = tl.load(x + at + (j - 3) * C + c, mask=live & (j >= 3) & (j < length + 3), other=0.0).to(tl.float32)
    if CONTEXT:
        before = tl.load(left + batch * (3 * C) + j * C + c, mask=live & (j >= 0) & (j < 3), other=0.0)
        found += before.to(tl.float32)
    return found


@triton.jit(**ANY)
def conv_kernel(
    x,
    left,
    weight,
    out,
    length,
    tiles,
    C: tl.constexpr,
    CONTEXT: tl.constexpr,
    ROWS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """ROWS outputs of CHANNELS channels. x, out [B, length, C]; left [B, 3, C]; weight [C, 4]."""
    batch, tile = (tl.program_id(0) // tiles).to(tl.int64), tl.program_id(0) % tiles
    t = tile * ROWS + tl.arange(0, ROWS)[:, None]
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    live = c < C
    total = tl.zeros((ROWS, CHANNELS), tl.float32)
    for tap in tl.static_range(4):
        w = tl.load(weight + c * 4 + tap, mask=live, other=0.0).to(tl.float32)
        total += w * _joined(x, left, batch, t + tap, c, live, length, C, CONTEXT)
    total *= tl.sigmoid(total)
    tl.store(out + batch * length * C + t * C + c, total.to(out.dtype.element_ty), mask=live & (t < length))


@triton.jit(**ANY)
def conv_back_kernel(
    x,
    left,
    weight,
    grad_out,
    grad_x,
    grad_left,
    grad_weight,
    length,
    tiles,
    C: tl.constexpr,
    CONTEXT: tl.constexpr,
    ROWS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """Gradients of ROWS joined positions of CHANNELS channels, and this tile's share of the taps': grad_weight [B ·
    tiles, 4, C]."""
    batch, tile = (tl.program_id(0) // tiles).to(tl.int64), tl.program_id(0) % tiles
    j = tile * ROWS + tl.arange(0, ROWS)[:, None]
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    live = c < C
    w0 = tl.load(weight + c * 4, mask=live, other=0.0).to(tl.float32)
    w1 = tl.load(weight + c * 4 + 1, mask=live, other=0.0).to(tl.float32)
    w2 = tl.load(weight + c * 4 + 2, mask=live, other=0.0).to(tl.float32)
    w3 = tl.load(weight + c * 4 + 3, mask=live, other=0.0).to(tl.float32)
    grad = tl.zeros((ROWS, CHANNELS), tl.float32)
    # A window of four joined positions moves from j - 3 … j to j … j + 3: output j - k sees position j at tap k.
    x0 = _joined(x, left, batch, j - 3, c, live, length, C, CONTEXT)
    x1 = _joined(x, left, batch, j - 2, c, live, length, C, CONTEXT)
    x2 = _joined(x, left, batch, j - 1, c, live, length, C, CONTEXT)
    x3 = _joined(x, left, batch, j, c, live, length, C, CONTEXT)
    for step in tl.static_range(4):
        t = j - 3 + step
        total = w0 * x0 + w1 * x1 + w2 * x2 + w3 * x3
        at = grad_out + batch * length * C + t * C + c
        of = tl.load(at, mask=live & (t >= 0) & (t < length), other=0.0).to(tl.float32)
        gate = tl.sigmoid(total)
        of *= gate * (1 + total * (1 - gate))
        if step == 0:
            grad += w3 * of
        elif step == 1:
            grad += w2 * of
        elif step == 2:
            grad += w1 * of
        else:
            grad += w0 * of
        if step == 3:
            share = grad_weight + tl.program_id(0).to(tl.int64) * (4 * C) + c
            tl.store(share, tl.sum(of * x0, axis=0)[None, :], mask=live)
            tl.store(share + C, tl.sum(of * x1, axis=0)[None, :], mask=live)
            tl.store(share + 2 * C, tl.sum(of * x2, axis=0)[None, :], mask=live)
            tl.store(share + 3 * C, tl.sum(of * x3, axis=0)[None, :], mask=live)
        else:
            x0, x1, x2 = x1, x2, x3
            x3 = _joined(x, left, batch, j + 1 + step, c, live, length, C, CONTEXT)
    grad = grad.to(grad_x.dtype.element_ty)
    tl.store(grad_x + batch * length * C + (j - 3) * C + c, grad, mask=live & (j >= 3) & (j < length + 3))
    if CONTEXT:
        tl.store(grad_left + batch * (3 * C) + j * C + c, grad, mask=live & (j < 3))


def suits(x: Tensor) -> bool:
    return x.dtype == torch.bfloat16


def _launch(kernel: Any, tensors: tuple[Tensor, ...], shape: torch.Size, length: int, rows: int, context: bool) -> None:
    tiles = -(-rows // ROWS)
    grid = (shape[0] * tiles, -(-shape[-1] // CHANNELS))
    kernel[grid](*tensors, length, tiles, C=shape[-1], CONTEXT=context, ROWS=ROWS, CHANNELS=CHANNELS)


class _Conv(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, left: Tensor | None, weight: Tensor) -> Tensor:
        x, left = x.contiguous(), None if left is None else left.contiguous()
        out = torch.empty_like(x)
        taps = weight.contiguous()
        _launch(
            conv_kernel, (x, x if left is None else left, taps, out), x.shape, x.shape[1], x.shape[1], left is not None
        )
        ctx.save_for_backward(x, left, taps)
        return out

    @staticmethod
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:
        x, left, taps = ctx.saved_tensors
        length, rows = x.shape[1], x.shape[1] + TAPS - 1
        grad_x, grad_left = torch.empty_like(x), None if left is None else torch.empty_like(left)
        shares = torch.empty(x.shape[0] * -(-rows // ROWS), TAPS, x.shape[2], device=x.device)
        given = (x, x if left is None else left, taps, grad_out.contiguous())
        results = (grad_x, grad_x if grad_left is None else grad_left, shares)
        _launch(conv_back_kernel, (*given, *results), x.shape, length, rows, left is not None)
        return grad_x, grad_left, shares.sum(0).t()[:, None].to(taps.dtype)


def conv_silu(x: Tensor, weight: Tensor) -> Tensor:
    return _Conv.apply(x, None, weight)


def conv_silu_after(x: Tensor, left: Tensor, weight: Tensor) -> Tensor:
    return _Conv.apply(x, left, weight)
