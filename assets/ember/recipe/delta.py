"""The gated delta rule (``gdn.py``) in Triton, with gradients, for a CUDA card and heads of bfloat16.

Three kernels forward: the inverse of every chunk's system, the scan over chunks, the output. Two back: the scan from
the end, the gradients of each chunk's inputs. They read q, k and v where the convolution left them and leave their
gradient whole in the same layout. Between them lie, for 64 positions of a head, the inverse, y and the state (16 KiB
each); scores, decays and norms are computed again where they are needed.

What memory sees of 64 positions of a head, in KiB: 24 (inverse), 64 (scan), 64 (output), 96 (scan back), 120 (inputs
back). The tensor cores need less time than that; the scans, with two programs a head and some 2 µs a chunk, about as
much.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .delta_backward import inputs_back_kernel, scan_back_kernel
from .delta_kernels import read_kernel, scan_kernel, solve_kernel

CHUNK = 64
PART = 32
"""Columns of values a program of a scan takes: columns of the state do not know each other, so two programs share a
head and a short batch still fills the card."""


def suits(qkv: Tensor) -> bool:
    """Whether the kernels take heads of this type and size and, of branches, this length."""
    return qkv.dtype == torch.bfloat16 and qkv.shape[-1] in (32, 64) and (qkv.dim() == 5 or qkv.shape[2] <= CHUNK)


class _Launch:
    """Tiles over qkv [B, L, 3, H, D], or [B, N, T, 3, H, D] of branches, and what every kernel is told of them."""

    def __init__(self, qkv: Tensor) -> None:
        self.qkv = qkv.contiguous()
        self.branches = qkv.dim() == 6
        self.heads, self.dim = qkv.shape[-2:]
        self.pairs = qkv.shape[0] * self.heads
        size = qkv.shape[2] if self.branches else CHUNK
        segment = max(16, 1 << (size - 1).bit_length())
        self.length = qkv.shape[1] * size if self.branches else qkv.shape[1]
        self.tiles = -(-self.length // (size * (CHUNK // segment)))
        self.shape = {"HEADS": self.heads, "DIM": self.dim, "SIZE": size, "SEGMENT": segment}

    def over_tiles(self, kernel: Any, *tensors: Tensor, **constants: Any) -> None:
        kernel[self.tiles, self.pairs](self.qkv, *tensors, self.length, **self.shape, **constants, num_warps=4)

    def along_tiles(self, kernel: Any, *tensors: Tensor) -> None:
        constants = self.shape | {"PART": PART, "BRANCHES": self.branches}
        grid = (self.pairs, self.dim // PART)
        kernel[grid](self.qkv, *tensors, self.length, self.tiles, **constants, num_warps=4, num_stages=2)

    def parts(self, count: int, rows: int, columns: int) -> Tensor:
        return torch.empty((self.pairs, count, 2, rows, columns), dtype=torch.bfloat16, device=self.qkv.device)


def _forward(to: _Launch, g: Tensor, beta: Tensor, state: Tensor) -> tuple[Tensor, ...]:
    """out and what the way back needs: inverses, states and y. ``state`` [B · H, D, D] receives a sequence's last; it
    is where branches start."""
    solved, written = to.parts(to.tiles, CHUNK, CHUNK), to.parts(to.tiles, CHUNK, to.dim)
    states = to.parts(1 if to.branches else to.tiles, to.dim, to.dim)
    out = g.new_empty(*g.shape, to.dim)
    to.over_tiles(solve_kernel, g, beta, solved)
    to.along_tiles(scan_kernel, g, beta, solved, state, states, written)
    to.over_tiles(read_kernel, g, beta, states, written, out, BRANCHES=to.branches)
    return out, solved, states, written


def _backward(to: _Launch, saved: tuple[Tensor, ...], grad_out: Tensor, grad_state: Tensor) -> tuple[Tensor, ...]:
    """The gradients of qkv, g and β. ``grad_state`` [B · H, D, D] is that of a sequence's last state; it receives that
    of the state branches start from."""
    g, beta, solved, states, written = saved
    grad_out = grad_out.contiguous()
    grad_states = states if to.branches else torch.empty_like(states)  # branches have none
    grad_read, grad_x, grad_qkv = torch.empty_like(written), torch.empty_like(written), torch.empty_like(to.qkv)
    grad_g, grad_beta = torch.empty_like(g), torch.empty_like(beta)
    to.along_tiles(scan_back_kernel, g, beta, solved, grad_out, grad_state, grad_states, grad_read, grad_x)
    given = (g, beta, states, written, grad_states, grad_read, grad_x)
    to.over_tiles(inputs_back_kernel, *given, grad_qkv, grad_g, grad_beta, BRANCHES=to.branches)
    return grad_qkv, grad_g, grad_beta


class _Prefix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, qkv: Tensor, g: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
        to, g, beta = _Launch(qkv), g.float().contiguous(), beta.float().contiguous()
        state = g.new_empty(qkv.shape[0], to.heads, to.dim, to.dim)
        out, *between = _forward(to, g, beta, state)
        ctx.save_for_backward(to.qkv, g, beta, *between)
        return out, state

    @staticmethod
    def backward(ctx: Any, grad_out: Tensor, grad_state: Tensor) -> tuple[Tensor, ...]:
        qkv, *saved = ctx.saved_tensors
        return _backward(_Launch(qkv), saved, grad_out, grad_state.contiguous())


class _Branches(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, qkv: Tensor, g: Tensor, beta: Tensor, state: Tensor) -> Tensor:
        to, g, beta = _Launch(qkv), g.float().contiguous(), beta.float().contiguous()
        out, *between = _forward(to, g, beta, state.contiguous())
        ctx.save_for_backward(to.qkv, g, beta, *between)
        return out

    @staticmethod
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor, ...]:
        qkv, *saved = ctx.saved_tensors
        to = _Launch(qkv)
        grad_state = grad_out.new_empty(qkv.shape[0], to.heads, to.dim, to.dim)
        return *_backward(to, saved, grad_out, grad_state), grad_state


def gated_delta_prefix(qkv: Tensor, g: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
    return _Prefix.apply(qkv, g, beta)


def gated_delta_branches(qkv: Tensor, g: Tensor, beta: Tensor, state: Tensor) -> Tensor:
    return _Branches.apply(qkv, g, beta, state)
