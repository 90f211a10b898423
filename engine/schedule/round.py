"""One token for every running lane in one pass, over buffers that stand still.

All that a round reads of a lane (token, position, page table, state slot) lies in buffers of fixed address and is
addressed by index, and a round of B lanes works on exactly B columns. So the work between :meth:`Round.stage` and the
sampler is the same sequence of kernels on the same addresses every time. On a card it is captured as one graph a width
and replayed with one launch.

A round may be launched before the host knows its tokens (``engine.schedule.lookahead`` says when): it then takes them
from where the draw before left them on the device.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from collections.abc import Sequence as Many
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.model.decoder import Decoder, Run
from engine.model.network import Network
from engine.schedule.job import Sequence

_log = logging.getLogger(__name__)
END_IDS = 8
"""End tokens of a lane that the device looks for; those of a lane that has more are the host's business alone."""
_FIELDS = 5
_LANE, _SOURCE, _POSITION, _PAST, _ROW = range(_FIELDS)
"""Of a column: its lane, whose number is its slot too; which of the tokens that were chosen is its own; its rotary
position; tokens in its state; its pool row, −1 where it leaves nothing behind."""


@dataclass(frozen=True)
class Column:
    """One lane's column of a round."""

    sequence: Sequence
    source: int
    """The row of its token among those that are taken."""


def columns_of(sequences: Many[Sequence]) -> list[Column]:
    """Columns of sequences that go on."""
    return [Column(sequence, row) for row, sequence in enumerate(sequences)]


@dataclass(frozen=True)
class _Captured:
    graph: torch.cuda.CUDAGraph
    logits: Tensor
    """float32 [B, vocabulary], of the newest replay."""


class _Stage:
    """On the host, one column a running lane."""

    def __init__(self, width: int, pinned: bool) -> None:
        self.columns = torch.zeros(_FIELDS, width, dtype=torch.int32, pin_memory=pinned)
        self.tokens = torch.zeros(width, dtype=torch.int32, pin_memory=pinned)
        self.copied = torch.cuda.Event() if pinned else None

    def fill(self, columns: Many[tuple[int, ...]]) -> None:
        """Once what stood here has been copied."""
        if self.copied is not None:
            self.copied.synchronize()
        self.columns[:, : len(columns)] = torch.tensor(columns, dtype=torch.int32).T


class Round:
    """Buffers for ``lanes`` lanes of up to ``pages`` pages each, reserved once."""

    def __init__(self, network: Network, lanes: int, pages: int) -> None:
        self._network = network
        self._lanes = lanes
        device = network.device
        pinned = device.type == "cuda"
        # Rows of 16 bytes: kernels are compiled for addresses that are multiples of it.
        width = -(-lanes // 4) * 4
        self._stages = [_Stage(width, pinned) for _ in range(2)]
        """Used in turn: a round is staged while the one before may still wait for the device, and so may its copy."""
        self._columns = torch.zeros(_FIELDS, width, dtype=torch.int32, device=device)
        self._chosen = torch.zeros(width, dtype=torch.int32, device=device)
        """The tokens that columns take: those of the last draw, row by row, or those that the host knows."""
        self._table = torch.zeros(lanes, pages, dtype=torch.int32, device=device)
        """Pages of every lane, in order."""
        self._ends = torch.full((lanes, END_IDS), -1, dtype=torch.int32, device=device)
        """End tokens of every lane, −1 beyond them."""
        self._graphs: dict[int, _Captured] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of the buffers on the device."""
        buffers = (self._columns, self._chosen, self._table, self._ends)
        return sum(buffer.nbytes for buffer in buffers)

    @property
    def feeds_itself(self) -> bool:
        """Whether a round can take its tokens where they were chosen, without the host's looking at them. Plain torch
        has no column that leaves nothing behind; on the CPU it does not matter who looks."""
        return not isinstance(self._network.decoder, Decoder) or self._network.device.type == "cpu"

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

    def assign(self, lane: int, pages: Many[int], end_ids: Collection[int] = ()) -> None:
        """A lane's pages and end tokens, from now until its next request."""
        self._table[lane, : len(pages)] = torch.tensor(pages, dtype=torch.int32)
        ends = sorted(end_ids) if len(end_ids) <= END_IDS else []
        self._ends[lane] = torch.tensor(ends + [-1] * (END_IDS - len(ends)), dtype=torch.int32)

    def run(self, columns: Many[Column], tokens: Tensor | None = None) -> Tensor:
        """Advance every sequence by one token. What is in its state (``context``) is the caller's to count.

        Args:
            columns: one a sequence.
            tokens: int64 on the device, a row of the draw each, which need not be known to the host. None: the newest
                of each sequence.

        Returns:
            float32 [B, vocabulary], valid until the next round. A sequence that ends with its token has no logits:
            what stands in its row means nothing.
        """
        width = self.stage(columns, tokens)
        if isinstance(self._network.decoder, Decoder):
            sequences = [column.sequence for column in columns]
            return self._plain(self._network.decoder, sequences, known=tokens is None)
        return self._launch(width)

    def rehearse(self) -> None:
        """Launch a round of an empty lane with a token that stands on the device: a device does it once before the
        first request. Only for rounds that feed themselves."""
        self._prepare(1)
        self._chosen[:1].copy_(torch.zeros(1, dtype=torch.int64, device=self._chosen.device))
        self._launch(1)

    def stage(self, columns: Many[Column], tokens: Tensor | None = None) -> int:
        """Bring the columns to the device in one copy, and beside them the tokens where None are given: the newest of
        each sequence. Returns how many there are.
        """
        size = self._network.kv.page_size
        stage = self._stages[0]
        self._stages.reverse()
        fields = [
            (s.lane, source, s.context + s.rope_delta, s.context, s.pages[s.context // size] * size + s.context % size)
            for s, source in ((column.sequence, column.source) for column in columns)
        ]
        stage.fill(fields)
        # Whole, since only what is contiguous is copied without a detour.
        self._columns.copy_(stage.columns, non_blocking=True)
        if tokens is not None:
            self._chosen[: len(tokens)].copy_(tokens)
        else:
            newest = [column.sequence.generated[-1] for column in columns]
            stage.tokens[: len(newest)] = torch.tensor(newest, dtype=torch.int32)
            self._chosen.copy_(stage.tokens, non_blocking=True)
        if stage.copied is not None:
            stage.copied.record()
        return len(fields)

    def _launch(self, width: int) -> Tensor:
        captured = self._graphs.get(width)
        if captured is None:
            return self._eager(width)
        captured.graph.replay()
        return captured.logits

    def _feed(self, width: int) -> tuple[Tensor, Tensor]:
        """(Token of each column, its pool row, −1 where that token ends the lane), int32 [B] each."""
        columns = self._columns[:, :width]
        tokens = self._chosen.index_select(0, columns[_SOURCE])
        ended = (self._ends.index_select(0, columns[_LANE]) == tokens[:, None]).any(1)
        return tokens, columns[_ROW].masked_fill(ended, -1)

    def _plain(self, decoder: Decoder, sequences: Many[Sequence], *, known: bool) -> Tensor:
        """A round of plain torch. Where the tokens are not ``known``, it is on the CPU, which sees who ended: their
        columns are left out, so that the others have the neighbours that they would have without lookahead, and the
        same bits."""
        width = len(sequences)
        positions = self._columns[_POSITION, :width]
        if known:
            return _forward(decoder, sequences, self._chosen[:width], positions, self._columns[_ROW, :width])
        tokens, rows = self._feed(width)
        live = [column for column, row in enumerate(rows.tolist()) if row >= 0]
        if len(live) == width:
            return _forward(decoder, sequences, tokens, positions, rows)
        logits = torch.zeros(width, self._network.config.text.vocab_size)
        if live:
            going = [sequences[column] for column in live]
            logits[live] = _forward(decoder, going, tokens[live], positions[live], rows[live])
        return logits

    def _eager(self, width: int) -> Tensor:
        from engine.model.fused_decoder import RoundColumns

        decoder = self._network.decoder
        assert not isinstance(decoder, Decoder)
        tokens, rows = self._feed(width)
        slots, positions, past = (self._columns[field, :width] for field in (_LANE, _POSITION, _PAST))
        table = self._table.index_select(0, slots)
        return decoder.round(RoundColumns(slots, tokens, positions, past, rows, table))

    def _prepare(self, width: int) -> None:
        """Columns of empty lanes, for a pass whose result nobody reads and that leaves nothing behind."""
        self._stages[0].fill([(lane, lane, 0, 0, -1) for lane in range(width)])
        self._columns.copy_(self._stages[0].columns)
        self._chosen.zero_()


def _forward(decoder: Decoder, sequences: Many[Sequence], tokens: Tensor, positions: Tensor, rows: Tensor) -> Tensor:
    """A round of plain torch; ``tokens``, ``positions`` and ``rows`` are int32 [B]. Returns logits [B, vocabulary]."""
    runs = [Run(s.lane, column, 1, s.context, s.pages) for column, s in enumerate(sequences)]
    x = decoder.embed(tokens.long())
    return decoder.logits(decoder.forward(x, positions.long().expand(3, -1), runs, rows=rows.long()))
