"""Single values of per-lane buffers, written without waiting for the device."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class Spots:
    """Writes to one buffer float32 [lanes, V], at most one value a lane at a time.

    The values travel through memory that stands still, page-locked beside a card, so one write must have been waited
    for (in the stream's order) before the next.
    """

    def __init__(self, buffer: Tensor) -> None:
        lanes, device = len(buffer), buffer.device
        pinned = device.type == "cuda"
        self._buffer = buffer
        self._where_staged = torch.zeros(2, lanes, dtype=torch.int64, pin_memory=pinned)
        self._values_staged = torch.zeros(lanes, dtype=torch.float32, pin_memory=pinned)
        self._where = torch.zeros(2, lanes, dtype=torch.int64, device=device)
        self._values = torch.zeros(lanes, dtype=torch.float32, device=device)

    def write(self, changes: Sequence[tuple[int, int, float]]) -> None:
        """Set (lane, token, value) each."""
        if not changes:
            return
        count = len(changes)
        lanes, tokens, values = zip(*changes, strict=True)
        self._where_staged[:, :count] = torch.tensor([lanes, tokens])
        self._values_staged[:count] = torch.tensor(values, dtype=torch.float32)
        # Whole, since only what is contiguous is copied without a detour.
        self._where.copy_(self._where_staged, non_blocking=True)
        self._values.copy_(self._values_staged, non_blocking=True)
        self._buffer[self._where[0, :count], self._where[1, :count]] = self._values[:count]
