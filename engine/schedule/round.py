"""One token for every running lane in one pass, over buffers that stand still.

All that a round reads of a lane (token, position, page table, state slot) lies in buffers of fixed address and is
addressed by index, and a round of B lanes works on exactly B columns. So the work between :meth:`Round.stage` and the
sampler is the same sequence of kernels on the same addresses every time, and can be captured as one graph a width.
"""

from __future__ import annotations

from collections.abc import Sequence as Many

import torch
from torch import Tensor

from engine.model.decoder import Run
from engine.model.network import Network
from engine.schedule.job import Sequence

_LANE, _TOKEN, _POSITION, _PAST = range(4)


class Round:
    """Buffers for ``lanes`` lanes of up to ``pages`` pages each, reserved once."""

    def __init__(self, network: Network, lanes: int, pages: int) -> None:
        self._network = network
        device = network.device
        pinned = device.type == "cuda"
        self._staged = torch.zeros(4, lanes, dtype=torch.int64, pin_memory=pinned)
        """On the host, one column a running lane: lane, token, rotary position, tokens in its state."""
        self._columns = torch.zeros(4, lanes, dtype=torch.int64, device=device)
        self._table = torch.zeros(lanes, pages, dtype=torch.int64, device=device)
        """Pages of every lane, in order."""

    @staticmethod
    def nbytes(lanes: int, pages: int) -> int:
        """Bytes of the buffers on the device."""
        return (4 + pages) * lanes * 8

    def assign(self, lane: int, pages: Many[int]) -> None:
        """A lane's pages, from now until its next request."""
        self._table[lane, : len(pages)] = torch.tensor(pages, dtype=torch.int64)

    def run(self, sequences: Many[Sequence]) -> tuple[Tensor, Tensor]:
        """Advance every sequence by its newest token.

        Returns:
            (the residual [B, hidden] after the last layer, logits float32 [B, vocabulary]).
        """
        width = self.stage(sequences)
        decoder = self._network.decoder
        lanes, tokens, positions, past = self._columns[:, :width]
        size = self._network.kv.page_size
        rows = self._table[lanes, past // size] * size + past % size
        runs = [Run(s.lane, column, 1, s.context, s.pages) for column, s in enumerate(sequences)]
        hidden = decoder.forward(decoder.embed(tokens), positions.expand(3, -1), runs, rows=rows)
        for sequence in sequences:
            sequence.context += 1
        return hidden, decoder.logits(hidden)

    def stage(self, sequences: Many[Sequence]) -> int:
        """Bring the columns to the device in one copy; returns how many there are."""
        width = len(sequences)
        columns = [(s.lane, s.generated[-1], s.context + s.rope_delta, s.context) for s in sequences]
        self._staged[:, :width] = torch.tensor(columns, dtype=torch.int64).T
        self._columns[:, :width].copy_(self._staged[:, :width], non_blocking=True)
        return width
