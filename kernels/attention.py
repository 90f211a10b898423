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
    if q.shape[0] == 1:
        groups = k.shape[1]
        scores = torch.matmul(q.view(groups, -1, q.shape[-1]), k.permute(1, 2, 0)).float()
        weights = (scores * q.shape[-1] ** -0.5).softmax(-1).to(v.dtype)
        return torch.matmul(weights, v.transpose(0, 1)).view(1, q.shape[1], q.shape[2])
    if past == 0:
        return _flash(q, k, v, causal=True)
    return _after_past(q, k, v, past) if q.device.type == "cpu" else _masked(q, k, v, past)


def _flash(q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False, mask: Tensor | None = None) -> Tensor:
    out = F.scaled_dot_product_attention(
        _heads_first(q),
        _heads_first(k),
        _heads_first(v),
        attn_mask=mask,
        is_causal=causal,
        enable_gqa=q.shape[1] != k.shape[1],
    )
    return out[0].transpose(0, 1)


def _masked(q: Tensor, k: Tensor, v: Tensor, past: int) -> Tensor:
    length, size = q.shape[0], k.shape[0]
    rows, columns = torch.arange(length, device=q.device), torch.arange(size, device=q.device)
    return _flash(q, k, v, mask=columns[None, :] <= past + rows[:, None])


def _after_past(q: Tensor, k: Tensor, v: Tensor, past: int) -> Tensor:
    """The past without a mask and the new tokens causally, joined by their softmax sums.

    On the CPU a mask costs as much as a quarter of the attention itself, and masked halves are computed in vain.
    """
    group = q.shape[1] // k.shape[1]
    queries = _heads_first(q)
    keys, values = (_heads_first(x).repeat_interleave(group, dim=1) for x in (k, v))
    flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    old, old_sum = flash(queries, keys[:, :, :past], values[:, :, :past])
    new, new_sum = flash(queries, keys[:, :, past:], values[:, :, past:], is_causal=True)
    out: Tensor = torch.lerp(new.float(), old.float(), (old_sum - new_sum).sigmoid()[..., None]).to(q.dtype)
    return out[0].transpose(0, 1)


def _heads_first(x: Tensor) -> Tensor:
    """[T, H, D] → [1, H, T, D]."""
    return x.transpose(0, 1)[None]


def full_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention of every token to every token (the vision tower). q, k, v: [N, H, D] → [N, H, D]."""
    return _flash(q, k, v)


def read_scores(q: Tensor, k: Tensor, heads: Tensor, scales: Tensor | None = None) -> Tensor:
    """The attention readout: q·k / √D of named heads at one position, before any softmax.

    Args:
        q: [Hq, D], the query at the position, in the same frame (rotation) as the keys.
        k: [S, Hkv, D], the keys asked about; codes (float8_e4m3fn or any other type) where ``scales`` are given.
        heads: int64 [N], query heads.
        scales: float32 [S, Hkv], one a row of codes: the keys are k · scale. None where the keys are as they are.

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
        scores = chosen[rows] @ keys[:, head].T
        out[rows] = scores if scales is None else scores * scales[:, head]
    return out.mul_(q.shape[-1] ** -0.5)


def read_peaks(
    q: Tensor, k: Tensor, heads: Tensor, columns: int, scales: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Each head's best key and that key's neighbours, where the keys are a picture's cells, row by row.

    Args:
        q, k, heads, scales: as in :func:`read_scores`; S is a multiple of ``columns`` and not 0.
        columns: cells in a row.

    Returns:
        int64 [N], the best cell (the first of equals), and float32 [N, 5], the scores of it and of the cells to its
        left, to its right, above and below it; -inf beyond the picture's edge.
    """
    scores = read_scores(q, k, heads, scales)
    best = scores.argmax(-1)
    column = best % columns
    around = torch.stack([best, best - 1, best + 1, best - columns, best + columns], -1)
    there = (around >= 0) & (around < k.shape[0])
    there[:, 1] &= column > 0
    there[:, 2] &= column < columns - 1
    found = scores.gather(-1, around.clamp(0, k.shape[0] - 1))
    return best, found.masked_fill_(~there, float("-inf"))
