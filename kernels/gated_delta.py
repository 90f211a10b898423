"""Gated DeltaNet's recurrence: S ← e^g S;  S ← S + k ⊗ β(v − Sᵀk);  o = Sᵀq / √d.

Equations: Yang et al., "Gated Delta Networks" (arXiv 2412.06464); the chunked form is its WY representation.
Everything is float32: the state is carried over whole contexts and decays by products of many gates.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

CHUNK = 64
"""Tokens solved together. The cost inside a chunk grows with its length, the number of sequential steps falls."""


def l2_normalise(x: Tensor, scale: float = 1.0) -> Tensor:
    """x · scale / √(Σx² + 1e-6) over the last dimension, in float32."""
    x = x.float()
    norm: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return x * norm.square_().add_(1e-6).rsqrt_().mul_(scale)


def gated_delta_step(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor) -> Tensor:
    """One token for each of B sequences; ``state`` is updated in place.

    Args:
        q, k: [B, H, Dk], not yet normalised.
        v: [B, H, Dv].
        g: float32 [B, H], log of the decay (≤ 0).
        beta: [B, H], how far the old value is replaced (0–1).
        state: float32 [B, H, Dk, Dv], contiguous.

    Returns:
        float32 [B, H, Dv].
    """
    lanes, heads, dk, dv = state.shape
    each = lanes * heads
    q = l2_normalise(q, dk**-0.5).view(each, 1, dk)
    k = l2_normalise(k).view(each, 1, dk)
    s = state.view(each, dk, dv)
    s.mul_(g.exp().view(each, 1, 1))
    written = torch.baddbmm(v.float().reshape(each, 1, dv), k, s, alpha=-1).mul_(beta.reshape(each, 1, 1))
    torch.baddbmm(s, k.transpose(1, 2), written, out=s)
    return torch.bmm(q, s).view(lanes, heads, dv)


def gated_delta_chunked(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor) -> Tensor:
    """A run of T consecutive tokens of one sequence as matrix products over chunks; ``state`` is updated in place.

    Within a chunk the T deltas form a unit lower triangular system: with decays γ(i,j) = e^(G_i − G_j),
    A = strict lower part of (β k kᵀ ⊙ γ), the values that are really written are
    u = (I + A)⁻¹ (β v − β e^G k S). Only S is carried from chunk to chunk.

    Args:
        q, k: [T, H, Dk], not yet normalised.
        v: [T, H, Dv].
        g: float32 [T, H], log decays.
        beta: [T, H].
        state: float32 [H, Dk, Dv].

    Returns:
        float32 [T, H, Dv].
    """
    length, heads, dk = q.shape
    dv = v.shape[-1]
    size = min(CHUNK, length)
    pad = -length % size
    chunks = (length + pad) // size

    def chunked(x: Tensor) -> Tensor:
        """[T, H, D] → float32 [chunks, H, size, D], padded with tokens that change nothing (β = 0, g = 0)."""
        return F.pad(x.float(), (0, 0, 0, 0, 0, pad)).view(chunks, size, heads, -1).transpose(1, 2).contiguous()

    q = chunked(l2_normalise(q, dk**-0.5))
    k = chunked(l2_normalise(k))
    v = chunked(v)
    beta = chunked(beta[..., None])
    total = chunked(g[..., None]).squeeze(-1).cumsum(-1)

    # Above the diagonal the differences are positive and would overflow; they are cut off afterwards.
    decay = (total[..., :, None] - total[..., None, :]).clamp_(max=0.0).exp_().tril_()
    keys = k.transpose(-1, -2)
    k_beta = k * beta
    grown = total.exp()[..., None]
    system = (k_beta @ keys).mul_(decay)
    values = torch.linalg.solve_triangular(system, v.mul_(beta), upper=False, unitriangular=True)
    reads = torch.linalg.solve_triangular(system, k_beta.mul_(grown), upper=False, unitriangular=True)
    within = (q @ keys).mul_(decay)
    q_decayed = q.mul_(grown)
    k_decayed = (k * (total[..., -1:] - total).exp()[..., None]).transpose(-1, -2)
    last = total[..., -1].exp()[..., None, None]

    out = torch.empty(chunks, heads, size, dv, dtype=torch.float32, device=q.device)
    for i in range(chunks):
        written = torch.baddbmm(values[i], reads[i], state, alpha=-1)
        torch.baddbmm(q_decayed[i] @ state, within[i], written, out=out[i])
        torch.baddbmm(state.mul_(last[i]), k_decayed[i], written, out=state)
    return out.transpose(1, 2).reshape(chunks * size, heads, dv)[:length]
