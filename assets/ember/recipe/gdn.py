"""Gated DeltaNet over whole sequences as matrix products, with gradients.

Within a chunk of 64 positions the delta rule is a unit lower-triangular solve; between chunks the state obeys
S' = A·S + B, one batched product a chunk. (A log-depth scan needs fewer steps, but four times the products and many
copies; on an H200, started from a CUDA graph, it cost more than everything else here.) Everything is float32 (TF32
products on the GPU).

On a CUDA card ``delta.py`` takes its place (``forms.py``).

Chunked form: Yang et al., "Gated Delta Networks" (arXiv:2412.06464), section 3.
"""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from .forms import in_triton
from .fuse import fused
from .shape import Shape

CHUNK = 64


class _UnitLowerInverse(torch.autograd.Function):
    """(I + N)⁻¹ for strictly lower-triangular N [..., n, n]; its gradient needs only the inverse."""

    @staticmethod
    def forward(ctx, lower: Tensor) -> Tensor:
        eye = torch.eye(lower.shape[-1], device=lower.device, dtype=lower.dtype)
        inverse = torch.linalg.solve_triangular(lower + eye, eye.expand_as(lower), upper=False, unitriangular=True)
        ctx.save_for_backward(inverse)
        return inverse

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        (inverse,) = ctx.saved_tensors
        return -(inverse.mT @ grad @ inverse.mT).tril(-1)


@fused
def _within(q: Tensor, k: Tensor, g: Tensor, beta: Tensor):
    """Normalised q and k, their decays and the strictly lower system of each chunk. q, k [M, C, D]; g, beta [M, C]."""
    q = q * (torch.rsqrt(q.square().sum(-1, keepdim=True) + 1e-6) * q.shape[-1] ** -0.5)
    k = k * torch.rsqrt(k.square().sum(-1, keepdim=True) + 1e-6)
    total = g.cumsum(-1)
    decay = (total[:, :, None] - total[:, None, :]).tril().exp().tril()
    weighted = k * beta[..., None]
    system = ((weighted @ k.mT) * decay).tril(-1)
    scores = (q @ k.mT) * decay
    grown = total.exp()[..., None]
    left = (total[:, -1:] - total).exp()[..., None]
    return q * grown, weighted * grown, k * left, system, scores, total[:, -1].exp()


@fused
def _writes(inverse: Tensor, v: Tensor, beta: Tensor, w_in: Tensor) -> tuple[Tensor, Tensor]:
    """What each chunk writes, u, and what it reads of the state before it, w."""
    return inverse @ (v * beta[..., None]), inverse @ w_in


@fused
def _transition(u: Tensor, w: Tensor, k_left: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    """Each chunk's affine step (A, B) on the state."""
    k_t = k_left.mT
    eye = torch.eye(w.shape[-1], device=w.device, dtype=w.dtype)
    return last[:, None, None] * eye - k_t @ w, k_t @ u


@fused
def _output(q: Tensor, scores: Tensor, u: Tensor, w: Tensor, state: Tensor) -> Tensor:
    return q @ state + scores @ (u - w @ state)


class _States(torch.autograd.Function):
    """States before every chunk and after the last from the affine steps: step, add [N, chunks, D, D] -> [N, chunks +
    1, D, D]."""

    @staticmethod
    def forward(ctx, step: Tensor, add: Tensor) -> Tensor:
        states = F.pad(add, (0, 0, 0, 0, 1, 0))
        for i in range(step.shape[1]):
            states[:, i + 1].baddbmm_(step[:, i], states[:, i])
        ctx.save_for_backward(step, states)
        return states

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor]:
        step, states = ctx.saved_tensors
        grad = grad.clone(memory_format=torch.contiguous_format)
        for i in reversed(range(step.shape[1])):
            grad[:, i].baddbmm_(step[:, i].mT, grad[:, i + 1])
        added = grad[:, 1:].contiguous()
        return added @ states[:, :-1].mT, added


def _chunks(x: Tensor, size: int) -> Tensor:
    """[B, L, H, …] -> float32 [B · H · chunks, size, …], zeros behind the end."""
    x = x.float().transpose(1, 2)
    pad = -x.shape[2] % size
    x = F.pad(x, (0, 0) * (x.dim() - 3) + (0, pad)).contiguous()
    # No view, whose base would be guarded: what is compiled for whole sequences serves branches as well.
    return torch.ops.aten._unsafe_view(x, (-1, size, *x.shape[3:]))


def _example(lead: tuple[int, ...], s: Shape, generator: torch.Generator) -> list[Tensor]:
    """qkv, g and beta of every head; the last quarter is padding."""
    qkv = torch.randn(*lead, 3, s.gdn_heads, s.gdn_dim, generator=generator)
    gates = torch.rand(2, *lead, s.gdn_heads, generator=generator)
    gates[:, :, lead[1] * 3 // 4 :] = 0
    return [x.requires_grad_() for x in (qkv.bfloat16(), -gates[0], gates[1])]


def _example_branches(s: Shape, generator: torch.Generator) -> list[Tensor]:
    state = torch.randn(2, s.gdn_heads, s.gdn_dim, s.gdn_dim, generator=generator)
    return [*_example((2, 5, 24), s, generator), state.requires_grad_()]


def gated_delta_rule(qkv: Tensor, g: Tensor, beta: Tensor) -> Tensor:
    """qkv [B, L, 3, H, D]: q, k and v; g (log decay), beta [B, L, H] -> float32 [B, L, H, D]. State starts at zero."""
    return gated_delta_prefix(qkv, g, beta)[0]


@in_triton("delta", partial(_example, (2, 150)))
def gated_delta_prefix(qkv: Tensor, g: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
    """As ``gated_delta_rule``, with the state after the last position: float32 [B, H, D, D]. A position with g = 0 and
    beta = 0 leaves the state as it is."""
    q, k, v = qkv.unbind(2)
    batch, length, heads, dim = q.shape
    chunks = -(-length // CHUNK)
    beta_c, v_c = _chunks(beta, CHUNK), _chunks(v, CHUNK)
    q_c, w_in, k_left, system, scores, last = _within(_chunks(q, CHUNK), _chunks(k, CHUNK), _chunks(g, CHUNK), beta_c)
    u, w = _writes(_UnitLowerInverse.apply(system), v_c, beta_c, w_in)
    step, add = _transition(u, w, k_left, last)
    grid = (batch * heads, chunks, dim, dim)
    states = _States.apply(step.view(grid), add.view(grid))
    before = states[:, :-1].reshape(-1, dim, dim)
    out = _output(q_c, scores, u, w, before).view(batch, heads, chunks * CHUNK, dim)
    return out[:, :, :length].transpose(1, 2), states[:, -1].view(batch, heads, dim, dim)


@in_triton("delta", _example_branches)
def gated_delta_branches(qkv: Tensor, g: Tensor, beta: Tensor, state: Tensor) -> Tensor:
    """Short sequences that all continue one state: qkv [B, N, T, 3, H, D]; g, beta [B, N, T, H]; state [B, H, D, D]
    -> float32 [B, N, T, H, D]. Each of the N branches is one chunk of T positions and knows nothing of the others."""
    batch, count, size, _, heads, dim = qkv.shape
    qkv, g, beta = (x.flatten(1, 2) for x in (qkv, g, beta))
    q, k, v = qkv.unbind(2)
    beta_c = _chunks(beta, size)
    q_c, w_in, _, system, scores, _ = _within(_chunks(q, size), _chunks(k, size), _chunks(g, size), beta_c)
    u, w = _writes(_UnitLowerInverse.apply(system), _chunks(v, size), beta_c, w_in)
    start = state.reshape(batch * heads, dim, dim)

    def read(x: Tensor) -> Tensor:
        return (x.view(batch * heads, count * size, dim) @ start).view(x.shape)

    out = read(q_c) + scores @ (u - read(w))
    return out.view(batch, heads, count, size, dim).permute(0, 2, 3, 1, 4)
