"""Rotary position embedding in NeoX halves, on the first dimensions of each head."""

from __future__ import annotations

import torch
from torch import Tensor


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the first 2R of each head's dimensions: dimension j is paired with j + R.

    Args:
        x: [T, heads, D].
        cos, sin: [T, R] in x's type, R ≤ D / 2.

    Returns:
        [T, heads, D]; dimensions from 2R on pass through.
    """
    half = cos.shape[-1]
    cos, sin = cos[:, None], sin[:, None]
    a, b = x[..., :half], x[..., half : 2 * half]
    parts = [a * cos - b * sin, b * cos + a * sin]
    if 2 * half < x.shape[-1]:
        parts.append(x[..., 2 * half :])
    return torch.cat(parts, dim=-1)
