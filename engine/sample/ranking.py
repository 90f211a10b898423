"""Exact argmax and top-k over a vocabulary, ties to the smaller id, without sorting it.

A row is cut into blocks of 64 logits. One vectorised pass finds each block's maximum; the k blocks with the largest
maxima (ties to the earlier block) hold the k largest logits: each of those k blocks has its maximum before, or equal
to and left of, anything outside them.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

BLOCK = 64
_LOW = 0xFFFFFFFF


class Ranking:
    """Rows of logits, ready to be ranked. ``x`` is float32 [R, V]; rows with NaN may be asked for ``best`` only."""

    def __init__(self, x: Tensor) -> None:
        self.x = x
        if x.shape[1] % BLOCK:
            x = F.pad(x, (0, -x.shape[1] % BLOCK), value=float("-inf"))
        self.blocks = x.view(x.shape[0], -1, BLOCK)
        self._maxima = self.blocks.amax(-1)

    def best(self) -> tuple[Tensor, Tensor]:
        """(largest value [R], NaN if the row has one; its id [R])."""
        block = self._maxima.argmax(-1, keepdim=True)
        inside = self.blocks.gather(1, block[..., None].expand(-1, -1, BLOCK))[:, 0].argmax(-1)
        return self._maxima.gather(1, block)[:, 0], block[:, 0] * BLOCK + inside

    def top(self, rows: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """The ``k`` ≤ V largest of the given rows, descending, ties by id: (values [N, k], ids [N, k])."""
        if 2 * k * BLOCK > self.x.shape[1]:
            x = self.x[rows]
            ids = _id(_key(x, torch.arange(x.shape[1], device=x.device)).topk(k).values)
            return x.gather(1, ids), ids
        blocks, maxima = self.blocks[rows], self._maxima[rows]
        numbers = torch.arange(maxima.shape[1], device=maxima.device)
        chosen = _id(_key(maxima, numbers).topk(k, sorted=False).values)[..., None]
        values = blocks.gather(1, chosen.expand(-1, -1, BLOCK)).flatten(1)
        ids = (chosen * BLOCK + torch.arange(BLOCK, device=maxima.device)).flatten(1)
        ids = _id(_key(values, ids).topk(k).values)
        return blocks.flatten(1).gather(1, ids), ids


def _key(values: Tensor, ids: Tensor) -> Tensor:
    """int64 that orders like (value, −id): float32's bits made monotone above, the id's complement below."""
    bits = values.view(torch.int32)
    return ((bits ^ ((bits >> 31) & 0x7FFFFFFF)).long() << 32) | (_LOW - ids)


def _id(key: Tensor) -> Tensor:
    return _LOW - (key & _LOW)
