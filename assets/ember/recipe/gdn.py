"""Gated DeltaNet over whole sequences as matrix products, with gradients.

Within a chunk of 64 positions the delta rule is a unit lower-triangular solve; between chunks the state obeys
S' = A·S + B, an affine recurrence that a log-depth scan resolves in log2(chunks) batched products instead of one
step a chunk. Everything is float32 (TF32 products on the GPU).

Chunked form: Yang et al., "Gated Delta Networks" (arXiv:2412.06464), section 3.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .fuse import fused

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
def _transition(inverse: Tensor, v: Tensor, beta: Tensor, w_in: Tensor, k_left: Tensor, last: Tensor):
    """Each chunk's writes u, reads w, and its affine step (A, B) on the state."""
    u = inverse @ (v * beta[..., None])
    w = inverse @ w_in
    k_t = k_left.mT
    eye = torch.eye(v.shape[-1], device=v.device, dtype=v.dtype)
    return u, w, last[:, None, None] * eye - k_t @ w, k_t @ u


@fused
def _output(q: Tensor, scores: Tensor, u: Tensor, w: Tensor, state: Tensor) -> Tensor:
    return q @ state + scores @ (u - w @ state)


def _scan(step: Tensor, add: Tensor) -> Tensor:
    """States before every chunk from the affine steps: step, add [N, chunks, D, D] -> [N, chunks, D, D]."""
    a, b = step[:, :-1], add[:, :-1]
    chunks, stride = b.shape[1], 1
    while stride < chunks:
        b = torch.cat([b[:, :stride], a[:, stride:] @ b[:, :-stride] + b[:, stride:]], 1)
        if 2 * stride < chunks:
            a = torch.cat([a[:, :stride], a[:, stride:] @ a[:, :-stride]], 1)
        stride *= 2
    return F.pad(b, (0, 0, 0, 0, 1, 0))


def gated_delta_rule(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor) -> Tensor:
    """q, k, v [B, L, H, D]; g (log decay), beta [B, L, H] -> float32 [B, L, H, D]. State starts at zero."""
    batch, length, heads, dim = q.shape
    pad = -length % CHUNK
    chunks = (length + pad) // CHUNK

    def rows(x: Tensor) -> Tensor:
        return F.pad(x.float().transpose(1, 2), (0, 0, 0, pad)).reshape(-1, CHUNK, dim)

    def scalars(x: Tensor) -> Tensor:
        return F.pad(x.float().transpose(1, 2), (0, pad)).reshape(-1, CHUNK)

    beta_c, v_c = scalars(beta), rows(v)
    q_c, w_in, k_left, system, scores, last = _within(rows(q), rows(k), scalars(g), beta_c)
    u, w, step, add = _transition(_UnitLowerInverse.apply(system), v_c, beta_c, w_in, k_left, last)
    grid = (batch * heads, chunks, dim, dim)
    state = _scan(step.view(grid), add.view(grid)).reshape(-1, dim, dim)
    out = _output(q_c, scores, u, w, state).view(batch, heads, length + pad, dim)
    return out[:, :, :length].transpose(1, 2)
