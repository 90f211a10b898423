"""Grouped-query attention over one sequence's keys, and the reading of its scores."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def attention(q: Tensor, k: Tensor, v: Tensor, past: int) -> Tensor:
    """Causal attention of T new tokens, the last T of S.

    Args:
        q: [T, Hq, D], rotated.
        k, v: [S, Hkv, D]; S = past + T. Query head h reads key head h · Hkv // Hq.
        past: tokens before the first query.

    Returns:
        [T, Hq, D].
    """
    length, size = q.shape[0], k.shape[0]
    if length == 1:
        groups = k.shape[1]
        scores = torch.matmul(q.view(groups, -1, q.shape[-1]), k.permute(1, 2, 0)).float()
        weights = (scores * q.shape[-1] ** -0.5).softmax(-1).to(v.dtype)
        return torch.matmul(weights, v.transpose(0, 1)).view(1, q.shape[1], q.shape[2])
    mask = None
    if past:
        columns = torch.arange(size, device=q.device)
        mask = columns[None, :] <= past + torch.arange(length, device=q.device)[:, None]
    out = F.scaled_dot_product_attention(
        q.transpose(0, 1)[None],
        k.transpose(0, 1)[None],
        v.transpose(0, 1)[None],
        attn_mask=mask,
        is_causal=mask is None,
        enable_gqa=q.shape[1] != k.shape[1],
    )
    return out[0].transpose(0, 1)


def full_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention of every token to every token (the vision tower). q, k, v: [N, H, D] → [N, H, D]."""
    out = F.scaled_dot_product_attention(q.transpose(0, 1)[None], k.transpose(0, 1)[None], v.transpose(0, 1)[None])
    return out[0].transpose(0, 1)


def read_scores(q: Tensor, k: Tensor, heads: Tensor) -> Tensor:
    """The attention readout: q·k / √D of named heads at one position, before any softmax.

    Args:
        q: [Hq, D], the query at the position, in the same frame (rotation) as the keys.
        k: [S, Hkv, D], the keys asked about.
        heads: int64 [N], query heads.

    Returns:
        float32 [N, S].
    """
    group = q.shape[0] // k.shape[1]
    chosen = q[heads].float()
    keys = k.float()
    out = torch.empty(len(heads), k.shape[0], dtype=torch.float32, device=q.device)
    key_heads = heads // group
    for head in sorted(set(key_heads.tolist())):
        rows = key_heads == head
        out[rows] = chosen[rows] @ keys[:, head].T
    return out.mul_(q.shape[-1] ** -0.5)
