"""The operations once more, token by token in float64: slow, and hard to get wrong."""

from __future__ import annotations

import torch
from torch import Tensor


def attention(q: Tensor, k: Tensor, v: Tensor, past: int) -> Tensor:
    """q [T, Hq, D], k and v [S, Hkv, D] → [T, Hq, D]."""
    q, k, v = q.double(), k.double(), v.double()
    out = torch.empty_like(q)
    group = q.shape[1] // k.shape[1]
    for t in range(q.shape[0]):
        for head in range(q.shape[1]):
            keys, values = k[: past + t + 1, head // group], v[: past + t + 1, head // group]
            out[t, head] = (keys @ q[t, head] / q.shape[-1] ** 0.5).softmax(0) @ values
    return out


def causal_conv(x: Tensor, weight: Tensor, state: Tensor) -> Tensor:
    """x [T, C], weight [W, C], state [W − 1, C] → [T, C]."""
    padded, weight = torch.cat([state, x]).double(), weight.double()
    width = weight.shape[0]
    rows = [sum(padded[t + tap] * weight[tap] for tap in range(width)) for t in range(x.shape[0])]
    y = torch.stack(rows)
    return y * y.sigmoid()


def gated_delta(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """q, k [T, H, Dk], v [T, H, Dv], g and beta [T, H], state [H, Dk, Dv] → (out [T, H, Dv], state after)."""
    q, k, v, g, beta, state = (x.double() for x in (q, k, v, g, beta, state))
    state = state.clone()
    out = torch.empty_like(v)
    for t in range(q.shape[0]):
        for head in range(q.shape[1]):
            key = k[t, head] / (k[t, head].square().sum() + 1e-6).sqrt()
            query = q[t, head] / (q[t, head].square().sum() + 1e-6).sqrt() / q.shape[-1] ** 0.5
            decayed = g[t, head].exp() * state[head]
            written = beta[t, head] * (v[t, head] - decayed.T @ key)
            state[head] = decayed + torch.outer(key, written)
            out[t, head] = state[head].T @ query
    return out, state


def rms_norm(x: Tensor, scale: Tensor, eps: float) -> Tensor:
    x = x.double()
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * scale.double()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Pair j, j + R of each head as a complex number, turned."""
    half = cos.shape[-1]
    x = x.double()
    turned = torch.complex(x[..., :half], x[..., half : 2 * half]) * torch.complex(cos.double(), sin.double())[:, None]
    return torch.cat([turned.real, turned.imag, x[..., 2 * half :]], dim=-1)
