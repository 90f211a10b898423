"""One token for every running lane in one pass, over buffers that stand still.

All that a round reads of a lane (token, position, page table, state slot) lies in buffers of fixed address and is
addressed by index, and a round of B lanes works on exactly B columns. So the work between :meth:`Round.stage` and the
sampler is the same sequence of kernels on the same addresses every time. On a card it is captured as one graph a width
and replayed with one launch.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence as Many
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.model.decoder import Decoder, Run
from engine.model.network import Network
from engine.schedule.job import Sequence

_log = logging.getLogger(__name__)
_FIELDS = 5
"""Of a column: lane, token, rotary position, tokens in its state, pool row."""


@dataclass(frozen=True)
class _Captured:
    graph: torch.cuda.CUDAGraph
    logits: Tensor
    """float32 [B, vocabulary], of the newest replay."""


class Round:
    """Buffers for ``lanes`` lanes of up to ``pages`` pages each, reserved once."""

    def __init__(self, network: Network, lanes: int, pages: int) -> None:
        self._network = network
        self._lanes = lanes
        device = network.device
        self._staged = torch.zeros(_FIELDS, lanes, dtype=torch.int32, pin_memory=device.type == "cuda")
        """On the host, one column a running lane."""
        self._columns = torch.zeros(_FIELDS, lanes, dtype=torch.int32, device=device)
        self._table = torch.zeros(lanes, pages, dtype=torch.int32, device=device)
        """Pages of every lane, in order."""
        self._graphs: dict[int, _Captured] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of the buffers on the device."""
        return self._columns.nbytes + self._table.nbytes

    @property
    def captured(self) -> tuple[int, ...]:
        """Widths that are replayed as graphs."""
        return tuple(sorted(self._graphs))

    def capture(self) -> None:
        """Capture every width, the largest first so that the others find room in what it reserved. Where it cannot be
        done, rounds are launched kernel by kernel, and the log says so."""
        pool = None
        try:
            for width in range(self._lanes, 0, -1):
                self._prepare(width)
                self._eager(width)  # compiles, and fills what kernels reserve for good
                torch.cuda.synchronize()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, pool=pool):
                    logits = self._eager(width)
                pool = graph.pool()
                self._graphs[width] = _Captured(graph, logits)
        except RuntimeError as fault:
            self._graphs.clear()
            _log.warning("Rounds run kernel by kernel, not as one graph, which is slower: %s", fault)

    def assign(self, lane: int, pages: Many[int]) -> None:
        """A lane's pages, from now until its next request."""
        self._table[lane, : len(pages)] = torch.tensor(pages, dtype=torch.int32)

    def run(self, sequences: Many[Sequence]) -> Tensor:
        """Advance every sequence by its newest token. Returns its logits, float32 [B, vocabulary], valid until the
        next round."""
        width = self.stage(sequences)
        captured = self._graphs.get(width)
        if captured is not None:
            captured.graph.replay()
            logits = captured.logits
        elif isinstance(self._network.decoder, Decoder):
            logits = self._plain(self._network.decoder, sequences)
        else:
            logits = self._eager(width)
        for sequence in sequences:
            sequence.context += 1
        return logits

    def stage(self, sequences: Many[Sequence]) -> int:
        """Bring the columns to the device in one copy; returns how many there are.

        What was staged for the round before has been copied: its tokens, which these columns hold, were waited for.
        """
        width, size = len(sequences), self._network.kv.page_size
        columns = [
            (
                s.lane,
                s.generated[-1],
                s.context + s.rope_delta,
                s.context,
                s.pages[s.context // size] * size + s.context % size,
            )
            for s in sequences
        ]
        self._staged[:, :width] = torch.tensor(columns, dtype=torch.int32).T
        self._columns[:, :width].copy_(self._staged[:, :width], non_blocking=True)
        return width

    def _plain(self, decoder: Decoder, sequences: Many[Sequence]) -> Tensor:
        _, tokens, positions, _, rows = self._columns[:, : len(sequences)].long()
        runs = [Run(s.lane, column, 1, s.context, s.pages) for column, s in enumerate(sequences)]
        return decoder.logits(decoder.forward(decoder.embed(tokens), positions.expand(3, -1), runs, rows=rows))

    def _eager(self, width: int) -> Tensor:
        from engine.model.fused_decoder import RoundColumns

        decoder = self._network.decoder
        assert not isinstance(decoder, Decoder)
        slots, tokens, positions, past, rows = self._columns[:, :width]
        table = self._table.index_select(0, slots)
        return decoder.round(RoundColumns(slots, tokens, positions, past, rows, table))

    def _prepare(self, width: int) -> None:
        """Columns of empty lanes, for a pass whose result nobody reads and that writes no keys."""
        for lane in range(width):
            self._staged[:, lane] = torch.tensor([lane, 0, 0, 0, -1], dtype=torch.int32)
        self._columns[:, :width].copy_(self._staged[:, :width])
