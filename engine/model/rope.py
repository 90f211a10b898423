"""Positions and rotary angles: mRoPE over (time, height, width), plain or stretched by YaRN.

Reference: transformers' ``Qwen3_5TextRotaryEmbedding`` and its ``get_rope_index``; YaRN: arXiv 2309.00071.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from engine.config import RopeConfig
from engine.messages import RequestError


def inverse_frequencies(config: RopeConfig) -> tuple[Tensor, float]:
    """(float32 [dim / 2] angular frequencies, the factor on cos and sin)."""
    exponents = torch.arange(0, config.dim, 2, dtype=torch.float32) / config.dim
    plain = 1.0 / config.theta**exponents
    if config.yarn_factor <= 1.0:
        return plain, 1.0

    def pair_turning(rotations: float) -> float:
        """The pair that makes this many turns over the original context."""
        return (config.dim * math.log(config.yarn_original_context / (rotations * 2 * math.pi))) / (
            2 * math.log(config.theta)
        )

    low = max(math.floor(pair_turning(config.yarn_beta_fast)), 0)
    high = min(math.ceil(pair_turning(config.yarn_beta_slow)), config.dim - 1)
    ramp = ((torch.arange(config.dim // 2, dtype=torch.float32) - low) / max(high - low, 0.001)).clamp(0, 1)
    stretched = plain / config.yarn_factor * ramp + plain * (1 - ramp)
    factor = config.yarn_attention_factor
    return stretched, 0.1 * math.log(config.yarn_factor) + 1.0 if factor is None else factor


class Rotary:
    """cos and sin of the text model's positions."""

    def __init__(self, config: RopeConfig, device: torch.device, dtype: torch.dtype) -> None:
        frequencies, self._factor = inverse_frequencies(config)
        self._frequencies = frequencies.to(device)
        self._dtype = dtype
        # Pair j turns with axis j mod 3 while that axis has sections left, with time after that.
        axis = torch.zeros(config.dim // 2, dtype=torch.long)
        for number in (1, 2):
            axis[number : config.sections[number] * 3 : 3] = number
        self._axis = axis.to(device)

    def __call__(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Args: positions int64 [3, T]. Returns: cos, sin, each [T, dim / 2] in the compute type."""
        angles = positions[self._axis].T.float() * self._frequencies
        return (angles.cos() * self._factor).to(self._dtype), (angles.sin() * self._factor).to(self._dtype)


def prompt_positions(ids: Sequence[int], grids: Sequence[tuple[int, int]], image_token: int) -> tuple[Tensor, int]:
    """Positions of a prompt with pictures.

    A picture's tokens share one time and take their row and column from the grid; text after it goes on at the
    largest position so far + 1.

    Args:
        ids: the prompt's token ids; picture i is a run of rows · columns image tokens.
        grids: (rows, columns) in image tokens of each picture, in order.

    Returns:
        (int64 [3, T], rope_delta): token number n after the prompt has position n + rope_delta on every axis.

    Raises:
        RequestError: the image tokens do not match the pictures.
    """
    if not grids:
        if image_token in ids:
            raise RequestError("The prompt has image tokens but no image; send the picture, or remove the token.")
        return torch.arange(len(ids)).expand(3, -1), 0
    tokens = torch.tensor(ids)
    runs = (tokens == image_token).nonzero().flatten()
    if len(runs) != sum(rows * columns for rows, columns in grids):
        raise RequestError("The prompt's image tokens do not match the pictures sent with it.")
    parts: list[Tensor] = []
    at, position, used = 0, 0, 0
    for rows, columns in grids:
        start, count = int(runs[used]), rows * columns
        if int(runs[used + count - 1]) != start + count - 1:
            raise RequestError("A picture's tokens must stand together in the prompt.")
        text = start - at
        parts.append(torch.arange(position, position + text).expand(3, -1))
        position += text
        row = torch.arange(rows).repeat_interleave(columns)
        column = torch.arange(columns).repeat(rows)
        parts.append(torch.stack([torch.zeros_like(row), row, column]) + position)
        position += max(rows, columns)
        at, used = start + count, used + count
    parts.append(torch.arange(position, position + len(ids) - at).expand(3, -1))
    return torch.cat(parts, dim=1), position - at
