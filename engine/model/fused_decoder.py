"""The decoder as a card runs it: fused kernels, quantised weights, everything of a lane addressed by index.

The equations are ``engine.model.decoder``'s, which stays the oracle. A *round* takes one column of every lane from
buffers that stand still and launches the same kernels on the same addresses every time, so that it can be captured as
one graph; a *chunk* reads prompts. A short chunk of one run is padded and lies in buffers that stand still too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import ModelConfig
from engine.memory.lane_state import LaneState
from engine.memory.paged_kv import PagedKV
from engine.messages import HeadSpan
from engine.model.decoder import Readout, Run
from engine.model.fused_graphs import ChunkGraphs, CudaRecorder, Recorder, Work
from engine.model.fused_padding import PaddedInputs, padded_size
from engine.model.fused_readout import Reading
from engine.model.fused_weights import FusedAttention, FusedLayer, FusedWeights
from engine.model.rope import Rotary
from kernels.fused.gdn import GdnLayer, GdnRecord, GdnState
from kernels.fused.gdn_chunk import gdn_chunk
from kernels.fused.gdn_fold import gdn_fold
from kernels.fused.gdn_inputs import gdn_inputs
from kernels.fused.gdn_step import gdn_step
from kernels.fused.gdn_verify import gdn_verify
from kernels.fused.norm import add_rms_norm
from kernels.fused.paged_decode import paged_decode
from kernels.fused.paged_prefill import paged_prefill
from kernels.fused.partial import Partial
from kernels.fused.pool import LayerPool
from kernels.fused.qkv import split_qkv
from kernels.fused.silu_mul import silu_mul


@dataclass(frozen=True)
class RoundColumns:
    """What a round reads of its B lanes, on the device: int32 [B] each, but the table."""

    slots: Tensor
    tokens: Tensor
    positions: Tensor
    """Rotary positions, the same on every axis: pictures stand in prompts only."""
    past: Tensor
    """Tokens in the lane's state."""
    rows: Tensor
    """Pool row of the new token's keys and values; a column with a negative one leaves its lane as it is."""
    table: Tensor
    """int32 [B, pages], each lane's pages in order."""

    def attend(self, q: Tensor, gate: Tensor, pool: LayerPool) -> Tensor:
        return paged_decode(q, gate, pool, self.table, self.past, dependent=True)

    def recur(self, number: int, product: Partial, gates: Tensor, layer: GdnLayer, state: GdnState) -> Tensor:
        mixed = gdn_inputs(product, layer, state, self.slots, rows=self.rows, dependent=True)
        return gdn_step(mixed, product, gates, layer, state, self.slots, rows=self.rows, dependent=True)


@dataclass(frozen=True)
class VerifyColumns(RoundColumns):
    """T columns of each of B lanes, lane after lane, of which it is not known yet how many will stand: ``tokens``,
    ``positions`` and ``rows`` are [B · T]. The recurrent state is not touched; ``record`` takes what brings it up to
    any column (:meth:`FusedDecoder.accept`)."""

    record: GdnRecord

    def recur(self, number: int, product: Partial, gates: Tensor, layer: GdnLayer, state: GdnState) -> Tensor:
        record = self.record.layer(number)
        mixed = gdn_inputs(product, layer, state, self.slots, record=record, dependent=True)
        return gdn_verify(mixed, product, gates, layer, state, self.slots, record, dependent=True)


@dataclass(frozen=True)
class ChunkColumns:
    """R runs of columns, packed, on the device."""

    starts: Tensor
    """int32 [R + 1]: the first column of each run, and how many there are."""
    slots: Tensor
    """int32 [R], like ``past``."""
    past: Tensor
    rows: Tensor
    """Pool row of each column."""
    table: Tensor
    """int32 [R, pages]."""
    longest: int
    """No run has more columns."""

    def attend(self, q: Tensor, gate: Tensor, pool: LayerPool) -> Tensor:
        return paged_prefill(q, gate, pool, self.table, self.past, self.starts, longest=self.longest)

    def recur(self, number: int, product: Partial, gates: Tensor, layer: GdnLayer, state: GdnState) -> Tensor:
        return gdn_chunk(product, gates, layer, state, self.slots, self.starts)


class _Columns(Protocol):
    """How columns meet the state of their lanes."""

    @property
    def rows(self) -> Tensor: ...
    @property
    def table(self) -> Tensor: ...
    def attend(self, q: Tensor, gate: Tensor, pool: LayerPool) -> Tensor: ...
    def recur(self, number: int, product: Partial, gates: Tensor, layer: GdnLayer, state: GdnState) -> Tensor: ...


class _Queries(Protocol):
    """Who is told the queries of attention layers, the keys standing in the pool."""

    def read(self, layer: int, q: Tensor, pool: LayerPool, table: Tensor) -> None: ...


@dataclass
class _Carried:
    """What goes from layer to layer beside the residual stream."""

    cos: Tensor
    sin: Tensor
    normed: Tensor
    """The norm of the stream, for the layer that comes next."""


class FusedDecoder:
    """The text model. Its state lives in ``kv`` (pages) and ``state`` (slots), both updated in place."""

    def __init__(self, config: ModelConfig, weights: FusedWeights, kv: PagedKV, state: LaneState) -> None:
        self.config = config.text
        self._weights = weights
        self._kv = kv
        self._state = state
        self._rotary = Rotary(self.config.rope, self.device, torch.float32)
        self._pools = [_layer_pool(kv, number) for number in range(len(self.config.full_layers))]
        self._whole = GdnState(*state.buffers)
        self._states = [self._whole.layer(number) for number in range(len(self.config.gdn_layers))]
        kinds = self.config.full_layers, self.config.gdn_layers
        self._number = {layer: number for kind in kinds for number, layer in enumerate(kind)}
        self.inputs = PaddedInputs(self.config, kv, self.device, weights.embedding.dtype)
        depth = len(weights.layers)
        self.graphs = ChunkGraphs(sorted({*(layer + 1 for layer in self.config.full_layers), depth}))

    @property
    def device(self) -> torch.device:
        return self._weights.embedding.device

    @property
    def weight_bytes(self) -> int:
        return self._weights.nbytes

    def embed(self, ids: Tensor) -> Tensor:
        """Integer [N] → BF16 [N, hidden]."""
        return F.embedding(ids, self._weights.embedding)

    def logits(self, hidden: Tensor) -> Tensor:
        """BF16 [N, hidden] after :meth:`forward` → float32 [N, vocabulary]."""
        _, normed = add_rms_norm(hidden.clone(), None, self._weights.norm, self.config.rms_eps)
        return self._weights.head.logits(normed)

    def round(self, columns: RoundColumns) -> Tensor:
        """Advance every lane by one column, or by the columns that stand of several (``VerifyColumns``). Returns the
        logits of all columns, float32 [N, vocabulary].

        What is launched does not depend on what the tensors hold, so a graph can replay it.
        """
        x = self.embed(columns.tokens)
        carried = self._begin(x, columns.positions.expand(3, -1))
        self._advance(x, carried, (0, len(self._weights.layers)), columns)
        return self._weights.head.logits(carried.normed)

    def record(self, columns: int) -> GdnRecord:
        """Buffers for rounds of up to ``columns`` columns of all lanes that are verified."""
        layers = [layer.mixer.layer for layer in self._weights.layers if not isinstance(layer.mixer, FusedAttention)]
        return GdnRecord.reserve(layers[0], len(layers), columns, torch.bfloat16)

    def accept(self, columns: VerifyColumns, accepted: Tensor) -> None:
        """Bring the recurrent state of every lane up to the last of its first ``accepted`` (int32 [B]) columns."""
        each = len(columns.tokens) // len(columns.slots)
        gdn_fold(columns.record, self._whole, columns.slots, accepted, each)

    def forward(
        self,
        x: Tensor,
        positions: Tensor,
        runs: Sequence[Run],
        *,
        layers: int | None = None,
        readouts: Sequence[Readout] = (),
    ) -> Tensor:
        """A chunk of prompts; arguments and result as of ``engine.model.decoder.Decoder.forward``. ``x`` is used up."""
        depth = len(self._weights.layers) if layers is None else layers
        if len(runs) == 1 and padded_size(runs[0].length) is not None:
            return self._short(x, positions, runs[0], depth, readouts)
        reading, columns = Reading(readouts, runs, self.device), self._chunk(runs)
        self._advance(x, self._begin(x, positions), (0, depth), columns, reading)
        reading.finish()
        return x

    def prepare(self, most: int, recorder: Recorder | None = None) -> None:
        """Compile what readouts launch, and capture chunks of one run, of up to ``most`` columns, as graphs
        (:class:`ChunkGraphs`). To be called before any lane is taken: slot 0 and the first pages are written over."""
        self.graphs.capture(self, self._kv, self._state, recorder or CudaRecorder(self.device), most)
        self._warm_readouts()
        self._state.clear(0)

    def _warm_readouts(self) -> None:
        """A few heads of a layer and all of them: what kernels are made for."""
        count = min(4, self._kv.rows_in_all)
        positions = torch.arange(count, device=self.device).expand(3, -1)
        for layer in self.config.full_layers[:1]:
            span = HeadSpan(tuple((layer, head) for head in range(self.config.num_heads)), 0, count, (0,))
            few = replace(span, heads=span.heads[:1], extra=(), peaks=span.heads[:1], columns=count)
            for asked in (span, few):
                x = self.embed(torch.zeros(count, dtype=torch.int64, device=self.device))
                pages = range(-(-count // self._kv.page_size))
                self.forward(x, positions, [Run(0, 0, count, 0, pages)], readouts=[Readout(0, asked)])

    def pieces(self, size: int, ends: Sequence[int]) -> list[Work]:
        """The layers of the chunk staged in ``inputs`` and padded to ``size``, up to each of ``ends``: to be done in
        order, from the first on, any number of times. What is launched does not depend on what was staged."""
        inputs, carried = self.inputs, list[_Carried]()
        x = inputs.x(size)
        columns = ChunkColumns(inputs.starts, inputs.slots, inputs.past, inputs.rows(size), inputs.table, size)

        def piece(first: int, last: int) -> None:
            if first == 0:
                carried[:] = [self._begin(x, inputs.positions(size))]
            self._advance(x, carried[0], (first, last), columns, inputs)

        return [partial(piece, *span) for span in pairwise((0, *ends))]

    def _short(self, x: Tensor, positions: Tensor, run: Run, layers: int, readouts: Sequence[Readout]) -> Tensor:
        """A chunk of one run, padded."""
        inputs = self.inputs
        size = inputs.stage(x, positions, run)
        if not self.graphs.replay(size, layers):
            (whole,) = self.pieces(size, (layers,))
            whole()
        if readouts:
            # All at once behind the layers: keys stay where they are, and the last column's queries were kept.
            reading = Reading(readouts, [replace(run, start=0, length=1)], self.device)
            for layer in self.config.full_layers:
                if layer < layers:
                    reading.read(layer, inputs.queries(layer), self._pools[self._number[layer]], inputs.table)
            reading.finish()
        return x.copy_(inputs.x(run.length))

    def _begin(self, x: Tensor, positions: Tensor) -> _Carried:
        cos, sin = (angles.contiguous() for angles in self._rotary(positions))
        _, normed = add_rms_norm(x, None, self._weights.layers[0].input_norm, self.config.rms_eps, dependent=True)
        return _Carried(cos, sin, normed)

    def _advance(
        self,
        x: Tensor,
        carried: _Carried,
        span: tuple[int, int],
        columns: _Columns,
        reading: _Queries | None = None,
    ) -> None:
        """Layers [first, last) of ``span``: the residual stream ``x`` and what goes with it, in place. Behind the last
        layer of all, the norm is the one for the head."""
        weights, eps = self._weights, self.config.rms_eps
        for index in range(*span):
            layer = weights.layers[index]
            mixed = self._mix(index, layer, carried, columns, reading)
            delta = self._feed_forward(x, mixed, layer)
            following = weights.layers[index + 1].input_norm if index + 1 < len(weights.layers) else weights.norm
            _, carried.normed = add_rms_norm(x, delta, following, eps, dependent=True)

    def _feed_forward(self, x: Tensor, mixed: Partial, layer: FusedLayer) -> Partial:
        """Add ``mixed`` to the residual stream ``x``, in place, and give what the gated network makes of the sum."""
        eps = self.config.rms_eps
        first, second = (matrix.wants_fragments(len(x)) for matrix in (layer.gate_up, layer.down))
        _, normed = add_rms_norm(x, mixed, layer.post_norm, eps, in_fragments=first, dependent=True)
        hidden = silu_mul(layer.gate_up(normed, in_fragments=first), in_fragments=second, dependent=True)
        return layer.down(hidden, in_fragments=second)

    def _mix(
        self,
        index: int,
        layer: FusedLayer,
        carried: _Carried,
        columns: _Columns,
        reading: _Queries | None,
    ) -> Partial:
        """Attention or the recurrence of layer ``index``."""
        mixer, number, normed = layer.mixer, self._number[index], carried.normed
        if not isinstance(mixer, FusedAttention):
            gates = mixer.gates(normed).values
            return mixer.out(columns.recur(number, mixer.inputs(normed), gates, mixer.layer, self._states[number]))
        pool = self._pools[number]
        norms = mixer.q_norm, mixer.k_norm
        product = mixer.qkv(normed)
        angles = carried.cos, carried.sin
        q, gate = split_qkv(product, *norms, *angles, columns.rows, pool, self.config.rms_eps, dependent=True)
        if reading is not None:
            reading.read(index, q, pool, columns.table)
        return mixer.out(columns.attend(q, gate, pool))

    def _chunk(self, runs: Sequence[Run]) -> ChunkColumns:
        pages = max(len(run.pages) for run in runs)
        table = [[*run.pages, *[0] * (pages - len(run.pages))] for run in runs]
        # Kernels are compiled for so many runs, so there are one, eight or sixteen; those added are empty.
        empty = next(count for count in (1, 8, 16) if count >= len(runs)) - len(runs)
        end = runs[-1].start + runs[-1].length

        def int32(values: Sequence[object]) -> Tensor:
            return torch.tensor(values, dtype=torch.int32).to(self.device, non_blocking=True)

        return ChunkColumns(
            starts=int32([*(run.start for run in runs), *[end] * (empty + 1)]),
            slots=int32([*(run.slot for run in runs), *[0] * empty]),
            past=int32([*(run.past for run in runs), *[0] * empty]),
            rows=self._kv.rows(runs),
            table=int32([*table, *[[0] * pages] * empty]),
            longest=max(run.length for run in runs),
        )


def _layer_pool(kv: PagedKV, layer: int) -> LayerPool:
    k_scale, v_scale = kv.scales(layer) or (None, None)
    return LayerPool(*kv.layer(layer), k_scale, v_scale, page=kv.page_size)
