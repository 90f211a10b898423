"""One block of a card's memory for all weights: they come together, stay, and go together.

torch takes memory of the driver in segments (``engine.memory.segments``), and a segment for each of some hundred
matrices leaves a rest of each: 376 MiB for the 27B. In one block they lie side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import torch
from torch import Tensor

from engine.memory.segments import aligned

Take = Callable[[Sequence[int], torch.dtype], Tensor]
"""Room for a tensor of a shape and type; what is in it is not defined."""


class Arena:
    """``size`` bytes on ``device``. They are given back when the last tensor that was cut from them is gone."""

    def __init__(self, size: int, device: torch.device) -> None:
        self._block = torch.empty(size, dtype=torch.uint8, device=device)
        self._used = 0

    @property
    def left(self) -> int:
        """Bytes that no tensor was cut from."""
        return self._block.numel() - self._used

    def take(self, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """The next tensor, as far from the block's start as torch's own tensors are from each other. What does not fit
        any more is no part of the block."""
        size = prod(shape) * dtype.itemsize
        if size > self.left:
            return torch.empty(tuple(shape), dtype=dtype, device=self._block.device)
        part = self._block[self._used : self._used + size]
        self._used = min(self._used + aligned(size), self._block.numel())
        return part.view(dtype).view(tuple(shape))


def each_its_own(device: torch.device) -> Take:
    """Tensors that torch allocates one by one, as on the CPU, where nothing is rounded up."""

    def take(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        return torch.empty(tuple(shape), dtype=dtype, device=device)

    return take
