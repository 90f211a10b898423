"""The hybrid text decoder: one forward pass over columns that belong to one or many lanes.

A *column* is one token of one lane in this pass. Everything but attention and the recurrence works on all columns at
once; those two work run by run (a run = consecutive columns of one lane), or on all lanes at once when each has exactly
one column (a decode round).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import ModelConfig
from engine.memory.lane_state import LaneState
from engine.memory.paged_kv import PagedKV
from engine.messages import HeadSpan, Peaks
from engine.model.rope import Rotary
from engine.model.weights import AttentionWeights, DeltaNetWeights, TextWeights
from kernels.attention import attention, read_peaks, read_scores
from kernels.causal_conv import causal_conv_chunk, causal_conv_step
from kernels.gated_delta import gated_delta_chunked, gated_delta_step
from kernels.norm import add_rms_norm, rms_norm, rms_norm_gated
from kernels.rotary import rotate


@dataclass(frozen=True)
class Run:
    """Consecutive columns ``[start, start + length)`` of the lane whose state is in ``slot``.

    ``pages`` are the lane's pages in order; ``past`` is how many tokens they hold already.
    """

    slot: int
    start: int
    length: int
    past: int
    pages: Sequence[int]


@dataclass
class Readout:
    """What to read in a pass: scores of ``span.heads`` and the best cells of ``span.peaks`` at the last column of run
    ``run``. The pass fills it; what it could not read stays NaN."""

    run: int
    span: HeadSpan
    scores: Tensor = field(default_factory=lambda: torch.empty(0))
    """float32 [heads, span + extra]."""
    cells: Tensor = field(default_factory=lambda: torch.empty(0))
    """int64 [peaks]."""
    peaks: Tensor = field(default_factory=lambda: torch.empty(0))
    """float32 [peaks, 5], as in ``engine.messages.Peaks``."""

    def found(self) -> tuple[np.ndarray | None, Peaks | None]:
        """As ``engine.messages.Scores`` holds them."""
        heads = self.scores.numpy() if self.span.heads else None
        return heads, Peaks(self.cells.numpy(), self.peaks.numpy()) if self.span.peaks else None


class Decoder:
    """The text model. Its state lives in ``kv`` (pages) and ``state`` (slots), both updated in place."""

    def __init__(self, config: ModelConfig, weights: TextWeights, kv: PagedKV, state: LaneState) -> None:
        self.config = config.text
        self._weights = weights
        self._kv = kv
        self._state = state
        embedding = weights.embedding
        self._rotary = Rotary(self.config.rope, embedding.device, embedding.dtype)
        self._kv_layer = {layer: i for i, layer in enumerate(self.config.full_layers)}
        self._gdn_layer = {layer: i for i, layer in enumerate(self.config.gdn_layers)}

    @property
    def device(self) -> torch.device:
        return self._weights.embedding.device

    def embed(self, ids: Tensor) -> Tensor:
        """int64 [T] → [T, hidden]."""
        return F.embedding(ids, self._weights.embedding)

    def logits(self, hidden: Tensor) -> Tensor:
        """[N, hidden] after :meth:`forward` → float32 [N, vocabulary]."""
        return self._weights.head(rms_norm(hidden, self._weights.norm, self.config.rms_eps)).float()

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
        """Advance every run by its columns.

        Args:
            x: [T, hidden], embeddings of all columns.
            positions: int64 [3, T].
            runs: cover all columns in order.
            rows: int64 [T], where in the pool each column's keys and values go; None works it out from the runs.
            layers: run only the first so many layers. What stands in the state after that can only be continued with
                the same or a smaller number.
            readouts: attention scores to read; filled in place.

        Returns:
            [T, hidden], the residual stream before the final norm.
        """
        cos, sin = self._rotary(positions)
        rows = self._kv.rows(runs) if rows is None else rows
        one_each = all(run.length == 1 for run in runs) and len(runs) > 1
        eps = self.config.rms_eps
        reads: Mapping[int, list[Readout]] = _by_layer(readouts)
        blocks = self._weights.layers[:layers]
        normed = rms_norm(x, blocks[0].input_norm, eps) if blocks else x
        for index, layer in enumerate(blocks):
            if isinstance(layer.mixer, AttentionWeights):
                mixed = self._attention(index, layer.mixer, normed, cos, sin, runs, rows, reads.get(index, ()))
            elif one_each:
                mixed = self._deltanet_round(index, layer.mixer, normed, runs)
            else:
                mixed = self._deltanet_runs(index, layer.mixer, normed, runs)
            x, normed = add_rms_norm(x, mixed, layer.post_norm, eps)
            gate, up = layer.mlp.gate_up(normed).chunk(2, dim=-1)
            down = layer.mlp.down(F.silu(gate).mul_(up))
            if index + 1 < len(blocks):
                x, normed = add_rms_norm(x, down, blocks[index + 1].input_norm, eps)
            else:
                x = x + down
        return x

    def _attention(
        self,
        index: int,
        weights: AttentionWeights,
        x: Tensor,
        cos: Tensor,
        sin: Tensor,
        runs: Sequence[Run],
        rows: Tensor,
        readouts: Sequence[Readout],
    ) -> Tensor:
        config = self.config
        heads, kv_heads, dim = config.num_heads, config.num_kv_heads, config.head_dim
        query, key, value = weights.qkv(x).split([heads * dim * 2, kv_heads * dim, kv_heads * dim], dim=-1)
        q, gate = query.view(-1, heads, 2 * dim).chunk(2, dim=-1)
        q = rotate(rms_norm(q, weights.q_norm, config.rms_eps), cos, sin)
        k = rotate(rms_norm(key.view(-1, kv_heads, dim), weights.k_norm, config.rms_eps), cos, sin)
        layer = self._kv_layer[index]
        self._kv.write(layer, rows, k, value.view(-1, kv_heads, dim))
        parts = []
        for number, run in enumerate(runs):
            keys, values = self._kv.read(layer, run.pages, run.past + run.length)
            own = q[run.start : run.start + run.length]
            parts.append(attention(own, keys, values, run.past))
            for readout in readouts:
                if readout.run == number:
                    _read_into(readout, index, own[-1], keys)
        mixed = parts[0] if len(parts) == 1 else torch.cat(parts)
        return weights.out((mixed * gate.sigmoid()).reshape(x.shape[0], -1))

    def _split_inputs(self, weights: DeltaNetWeights, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """(q ‖ k ‖ v before the convolution, z [T, H, Dv], β [T, H], g float32 [T, H])."""
        config = self.config
        heads = config.gdn_value_heads
        sizes = [config.gdn_channels, heads * config.gdn_value_dim, heads, heads]
        mixed, z, b, a = weights.inputs(x).split(sizes, dim=-1)
        g = weights.decay * F.softplus(a.float() + weights.dt_bias)
        return mixed, z.view(-1, heads, config.gdn_value_dim), b.sigmoid(), g

    def _split_heads(self, mixed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """q ‖ k ‖ v after the convolution → q, k, v per value head."""
        config = self.config
        keys = config.gdn_key_heads * config.gdn_key_dim
        q, k, v = mixed.split([keys, keys, mixed.shape[-1] - 2 * keys], dim=-1)
        share = config.gdn_value_heads // config.gdn_key_heads

        def per_value_head(y: Tensor) -> Tensor:
            y = y.view(y.shape[0], config.gdn_key_heads, config.gdn_key_dim)
            return y.repeat_interleave(share, dim=1) if share > 1 else y

        return per_value_head(q), per_value_head(k), v.view(v.shape[0], config.gdn_value_heads, config.gdn_value_dim)

    def _deltanet_round(self, index: int, weights: DeltaNetWeights, x: Tensor, runs: Sequence[Run]) -> Tensor:
        """Every lane has one column: the recurrence of all lanes in one step."""
        mixed, z, beta, g = self._split_inputs(weights, x)
        layer = self._gdn_layer[index]
        slots = [run.slot for run in runs]
        conv = self._state.conv(layer, slots)
        mixed, after = causal_conv_step(mixed, weights.conv, conv)
        self._state.store_conv(layer, slots, after)
        q, k, v = self._split_heads(mixed)
        recurrent = self._state.recurrent(layer, slots)
        out = gated_delta_step(q, k, v, g, beta, recurrent)
        self._state.store_recurrent(layer, slots, recurrent)
        return weights.out(rms_norm_gated(out, z, weights.norm, self.config.rms_eps).flatten(1))

    def _deltanet_runs(self, index: int, weights: DeltaNetWeights, x: Tensor, runs: Sequence[Run]) -> Tensor:
        """Runs of any length, each in chunks."""
        mixed, z, beta, g = self._split_inputs(weights, x)
        layer = self._gdn_layer[index]
        parts = []
        for run in runs:
            columns = slice(run.start, run.start + run.length)
            conv, recurrent = self._state.at(layer, run.slot)
            y, after = causal_conv_chunk(mixed[columns], weights.conv, conv)
            conv.copy_(after)
            q, k, v = self._split_heads(y)
            if run.length == 1:
                parts.append(gated_delta_step(q, k, v, g[columns], beta[columns], recurrent[None]))
            else:
                parts.append(gated_delta_chunked(q, k, v, g[columns], beta[columns], recurrent))
        out = parts[0] if len(parts) == 1 else torch.cat(parts)
        return weights.out(rms_norm_gated(out, z, weights.norm, self.config.rms_eps).flatten(1))


def _by_layer(readouts: Sequence[Readout]) -> dict[int, list[Readout]]:
    layers: dict[int, list[Readout]] = {}
    for readout in readouts:
        span = readout.span
        readout.scores = torch.full((len(span.heads), span.end - span.start + len(span.extra)), float("nan"))
        readout.cells = torch.zeros(len(span.peaks), dtype=torch.int64)
        readout.peaks = torch.full((len(span.peaks), 5), float("nan"))
        for layer in span.layers:
            layers.setdefault(layer, []).append(readout)
    return layers


def _read_into(readout: Readout, layer: int, query: Tensor, keys: Tensor) -> None:
    span = readout.span
    cells = keys[span.start : span.end]
    rows, heads = _at_layer(span.heads, layer, query.device)
    if rows:
        wanted = torch.cat([cells, keys[list(span.extra)]]) if span.extra else cells
        readout.scores[rows] = read_scores(query, wanted, heads).cpu()
    rows, heads = _at_layer(span.peaks, layer, query.device)
    if rows:
        best, scores = read_peaks(query, cells, heads, span.columns)
        readout.cells[rows] = best.cpu()
        readout.peaks[rows] = scores.cpu()


def _at_layer(heads: Sequence[tuple[int, int]], layer: int, device: torch.device) -> tuple[list[int], Tensor]:
    """Which of ``heads`` are of this layer: their places in the list, and their numbers within the layer."""
    chosen = [(row, head) for row, (at, head) in enumerate(heads) if at == layer]
    return [row for row, _ in chosen], torch.tensor([head for _, head in chosen], device=device)
