"""The decoder as a card runs it: fused kernels, quantised weights, everything of a lane addressed by index.

The equations are ``engine.model.decoder``'s, which stays the oracle. A *round* takes one column of every lane from
buffers that stand still and launches the same kernels on the same addresses every time, so that it can be captured as
one graph; a *chunk* reads prompts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import ModelConfig
from engine.memory.lane_state import LaneState
from engine.memory.paged_kv import PagedKV
from engine.model.decoder import Readout, Run
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
    """Pool row of the new token's keys and values."""
    table: Tensor
    """int32 [B, pages], each lane's pages in order."""

    def attend(self, q: Tensor, gate: Tensor, pool: LayerPool) -> Tensor:
        return paged_decode(q, gate, pool, self.table, self.past, dependent=True)

    def recur(self, number: int, product: Partial, gates: Tensor, layer: GdnLayer, state: GdnState) -> Tensor:
        mixed = gdn_inputs(product, layer, state, self.slots, dependent=True)
        return gdn_step(mixed, product, gates, layer, state, self.slots, dependent=True)


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
    """Columns of the longest run."""

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


class FusedDecoder:
    """The text model. Its state lives in ``kv`` (pages) and ``state`` (slots), both updated in place."""

    def __init__(self, config: ModelConfig, weights: FusedWeights, kv: PagedKV, state: LaneState) -> None:
        self.config = config.text
        self._weights = weights
        self._kv = kv
        self._rotary = Rotary(self.config.rope, self.device, torch.float32)
        self._pools = [_layer_pool(kv, number) for number in range(len(self.config.full_layers))]
        self._whole = GdnState(*state.buffers)
        self._states = [self._whole.layer(number) for number in range(len(self.config.gdn_layers))]
        kinds = self.config.full_layers, self.config.gdn_layers
        self._number = {layer: number for kind in kinds for number, layer in enumerate(kind)}

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
        _, normed = self._layers(self.embed(columns.tokens), columns.positions.expand(3, -1), columns)
        return self._weights.head.logits(normed)

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
        rows: Tensor | None = None,
        layers: int | None = None,
        readouts: Sequence[Readout] = (),
    ) -> Tensor:
        """A chunk of prompts; arguments and result as of ``engine.model.decoder.Decoder.forward``."""
        reading = Reading(readouts, runs, self.device)
        hidden, _ = self._layers(x, positions, self._chunk(runs, rows), layers, reading)
        reading.finish()
        return hidden

    def _layers(
        self,
        x: Tensor,
        positions: Tensor,
        columns: _Columns,
        layers: int | None = None,
        reading: Reading | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The residual stream and its norm for the head; ``x`` is used up."""
        cos, sin = (angles.contiguous() for angles in self._rotary(positions))
        eps = self.config.rms_eps
        delta: Partial | None = None
        for index, layer in enumerate(self._weights.layers[:layers]):
            x, normed = add_rms_norm(x, delta, layer.input_norm, eps, dependent=True)
            mixed = self._mix(index, layer, normed, cos, sin, columns, reading)
            delta = self._feed_forward(x, mixed, layer)
        return add_rms_norm(x, delta, self._weights.norm, eps, dependent=True)

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
        normed: Tensor,
        cos: Tensor,
        sin: Tensor,
        columns: _Columns,
        reading: Reading | None,
    ) -> Partial:
        """Attention or the recurrence of layer ``index``."""
        mixer, number = layer.mixer, self._number[index]
        if not isinstance(mixer, FusedAttention):
            gates = mixer.gates(normed).values
            return mixer.out(columns.recur(number, mixer.inputs(normed), gates, mixer.layer, self._states[number]))
        pool = self._pools[number]
        norms = mixer.q_norm, mixer.k_norm
        product = mixer.qkv(normed)
        q, gate = split_qkv(product, *norms, cos, sin, columns.rows, pool, self.config.rms_eps, dependent=True)
        if reading is not None:
            reading.read(index, q, pool, columns.table)
        return mixer.out(columns.attend(q, gate, pool))

    def _chunk(self, runs: Sequence[Run], rows: Tensor | None) -> ChunkColumns:
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
            rows=self._kv.rows(runs) if rows is None else rows,
            table=int32([*table, *[[0] * pages] * empty]),
            longest=max(run.length for run in runs),
        )


def _layer_pool(kv: PagedKV, layer: int) -> LayerPool:
    k_scale, v_scale = kv.scales(layer) or (None, None)
    return LayerPool(*kv.layer(layer), k_scale, v_scale, page=kv.page_size)
