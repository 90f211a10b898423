"""The vision tower: pixels to image tokens, one picture at a time.

Reference: transformers' ``Qwen3_5VisionModel`` and ``Qwen2VLImageProcessor``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import VisionConfig
from engine.model.weights import VisionBlockWeights, VisionWeights
from kernels.attention import full_attention
from kernels.registry import use_triton
from kernels.rotary import rotate

LAYER_NORM_EPS = 1e-6
SLICE = 8192
"""Patches whose wide intermediate values are held at a time: a large picture takes less than half the memory."""


class VisionTower:
    """Encodes pictures; stateless apart from its weights."""

    def __init__(self, config: VisionConfig, weights: VisionWeights, device: torch.device, dtype: torch.dtype) -> None:
        self.config = config
        self._weights = weights
        self._device = device
        self._dtype = dtype
        quarter = config.hidden_size // config.num_heads // 2
        exponents = torch.arange(0, quarter, 2, dtype=torch.float32, device=device) / quarter
        self._frequencies = 1.0 / config.rope_theta**exponents

    def steps(self, rgb: np.ndarray) -> Iterator[Tensor | None]:
        """Encode uint8 [height, width, 3] (multiples of the cell) piece by piece.

        Yields None after each block, so that the engine's loop can do other work in between, and at last the image
        tokens [rows · columns, out_hidden_size] in raster order.
        """
        config, weights = self.config, self._weights
        rows, columns = rgb.shape[0] // config.patch_size, rgb.shape[1] // config.patch_size
        # First, so that it lies among what is kept of other pictures, and not where the work of the next one begins.
        tokens = torch.empty(
            rows * columns // config.merge_size**2, config.out_hidden_size, dtype=self._dtype, device=self._device
        )
        x = weights.patch(self._patches(rgb))
        for part, table in self._position_table(rows, columns):
            x[part] += table
        cos, sin = self._rotary(rows, columns)
        yield None
        for block in weights.blocks:
            x = self._block(block, x, cos, sin)
            yield None
        x = F.layer_norm(x, x.shape[-1:], *weights.merger_norm, LAYER_NORM_EPS)
        x = x.view(x.shape[0] // config.merge_size**2, -1)
        for part in _slices(x.shape[0]):
            tokens[part] = weights.merger_fc2(F.gelu(weights.merger_fc1(x[part])))
        yield tokens

    def encode(self, rgb: np.ndarray) -> Tensor:
        """All of :meth:`steps` at once."""
        for tokens in self.steps(rgb):
            if tokens is not None:
                return tokens
        raise AssertionError("steps() ends with the tokens")

    def warm(self) -> None:
        """Compile and set up what pictures take, with small ones: kernels are made for counts of patches that are
        multiples of 16, and for others."""
        side = self.config.patch_size * self.config.merge_size
        for columns in (1, 4):
            self.encode(np.zeros((side, columns * side, 3), np.uint8))

    def _block(self, block: VisionBlockWeights, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        heads = self.config.num_heads
        # In place, and nothing is held by name: what a large picture takes lies in the same places for every block.
        x += block.proj(
            _attend(block.qkv(F.layer_norm(x, x.shape[-1:], *block.norm1, LAYER_NORM_EPS)), cos, sin, heads)
        )
        for part in _slices(x.shape[0]):
            y = F.layer_norm(x[part], x.shape[-1:], *block.norm2, LAYER_NORM_EPS)
            x[part] += block.fc2(F.gelu(block.fc1(y), approximate="tanh"))
        return x

    def _patches(self, rgb: np.ndarray) -> Tensor:
        """[patches, channels · temporal · patch²], scaled to −1…1, in the order of :meth:`_grid`.

        A still picture fills every temporal tap.
        """
        config = self.config
        size, merge = config.patch_size, config.merge_size
        x = torch.tensor(rgb, device=self._device).permute(2, 0, 1).float() / 127.5 - 1.0
        rows, columns = x.shape[1] // size // merge, x.shape[2] // size // merge
        x = x.view(config.in_channels, rows, merge, size, columns, merge, size).permute(1, 4, 2, 5, 0, 3, 6)
        x = x[..., None, :, :].expand(-1, -1, -1, -1, -1, config.temporal_patch_size, -1, -1)
        return x.reshape(rows * columns * merge * merge, -1).to(self._dtype)

    def _grid(self, rows: int, columns: int) -> tuple[Tensor, Tensor]:
        """Row and column of each patch, in blocks of merge × merge patches: one block is one image token."""
        merge = self.config.merge_size
        row, column = torch.meshgrid(
            torch.arange(rows, device=self._device), torch.arange(columns, device=self._device), indexing="ij"
        )

        def blocks(x: Tensor) -> Tensor:
            return x.reshape(rows // merge, merge, columns // merge, merge).transpose(1, 2).flatten()

        return blocks(row), blocks(column)

    def _rotary(self, rows: int, columns: int) -> tuple[Tensor, Tensor]:
        row, column = self._grid(rows, columns)
        angles = torch.cat([row[:, None] * self._frequencies, column[:, None] * self._frequencies], dim=1)
        return angles.cos().to(self._dtype), angles.sin().to(self._dtype)

    def _position_table(self, rows: int, columns: int) -> Iterator[tuple[slice, Tensor]]:
        """The learned table resampled bilinearly, corners on corners, to the picture's grid: some patches at a time,
        [patches, hidden] in the compute type."""
        side = self.config.position_side
        row, column = self._grid(rows, columns)

        def taps(index: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
            at = index.float() * (side - 1) / max(size - 1, 1)
            low = at.floor().long()
            return low, (low + 1).clamp(max=side - 1), at - low

        table = self._weights.positions
        for part in _slices(rows * columns):
            top, bottom, down = taps(row[part], rows)
            left, right, across = taps(column[part], columns)
            down, across = down[:, None], across[:, None]
            upper = table[top * side + left] * (1 - across) + table[top * side + right] * across
            lower = table[bottom * side + left] * (1 - across) + table[bottom * side + right] * across
            yield part, (upper * (1 - down) + lower * down).to(self._dtype)


def _slices(count: int) -> Iterator[slice]:
    for start in range(0, count, SLICE):
        yield slice(start, min(start + SLICE, count))


def _attend(product: Tensor, cos: Tensor, sin: Tensor, heads: int) -> Tensor:
    """Every patch to every patch: q ‖ k ‖ v [N, 3 · H · D] → [N, H · D]; cos, sin: [N, D / 2]."""
    if use_triton(product):
        from kernels.fused.vision_attention import vision_attention

        return vision_attention(product, cos, sin, heads)
    q, k, v = product.view(product.shape[0], 3, heads, -1).unbind(1)
    return full_attention(rotate(q, cos, sin), rotate(k, cos, sin), v).reshape(product.shape[0], -1)
