"""A whole model on the card, its weights random: rounds, rounds that are verified, prompts, readouts, pictures."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.checkpoint.geometries import Geometry, geometry
from engine.checkpoint.layout import expected_tensors
from engine.checkpoint.random_model import RandomWeights
from engine.config import ModelConfig, TextConfig
from engine.memory import sizes
from engine.memory.plan.weights import on_card
from engine.messages import HeadSpan
from engine.model.decoder import Readout, Run
from engine.model.fused_decoder import FusedDecoder, RoundColumns, VerifyColumns
from engine.model.network import Network, build_network
from ignis_desktop.bench.cpu.rows import Row, rows_table
from ignis_desktop.bench.gpu.card import Card, seconds

Say = Callable[[str], None]
PAGE = 64
CONTEXTS, LANES = (4096, 32768, 131072), (1, 2, 4, 8)
REFERENCE_CONTEXT = 4096
PROMPTS = (40, 1024, 8192, 32768)
"""The first is a question behind a state that was kept: a chunk that is replayed."""
CHUNK = 2048
SIDES = (1024, 2048, 4096)
"""Pixels a side of the pictures."""
READ_HEADS, READ_KEYS = 96, 16_384
SPARE = 6 << 30
"""Bytes that are left beside weights and pool, for activations."""


@dataclass(frozen=True)
class Round:
    """One captured round."""

    graph: torch.cuda.CUDAGraph
    milliseconds: float


def run_model(
    result: dict[str, Any], name: str, quick: bool, card: Card, say: Say, show: Callable[[str], None]
) -> None:
    """Fill ``result["rows"]`` and ``result["model"]``; show each table as it is done."""
    shape = geometry(name)
    say("drawing weights")
    with torch.inference_mode():
        bench = _Bench(shape, card, quick)
        rows: list[Row] = []
        result["model"] = {"geometry": shape.id, "weights": bench.weight_bytes, "tokens": bench.tokens}
        try:
            for part in (bench.rounds, bench.verified, bench.prompts, bench.readout, bench.pictures):
                done = []
                for row in part():
                    say(row.name)
                    done.append(row)
                show(rows_table(done))
                rows += done
        finally:
            result["rows"] = {row.key: row.json() for row in rows}


class _Bench:
    def __init__(self, shape: Geometry, card: Card, quick: bool) -> None:
        self._card = card
        self._quick = quick
        self._config: ModelConfig = shape.config
        self._text: TextConfig = self._config.text
        device = torch.device("cuda")
        source = RandomWeights(self._config, device=device)
        token = sizes.kv_token_bytes(self._text, "bf16")
        free, _ = torch.cuda.mem_get_info()
        room = (free - source.nbytes - 8 * sizes.state_bytes(self._text, 2) - SPARE) // token
        most = max(CONTEXTS) * max(LANES)
        pages = min(room, most + max(LANES) * PAGE) // PAGE
        if pages < max(PROMPTS) // PAGE:
            raise RuntimeError(f"{free:,} bytes are free: too few for this model and a context of {max(PROMPTS):,}.")
        self._network: Network = build_network(
            self._config,
            source,
            slots=max(LANES),
            pages=pages,
            page_size=PAGE,
            device=device,
            dtype=torch.bfloat16,
            weights=on_card(self._config, source).bytes,
        )
        decoder = self._network.decoder
        assert isinstance(decoder, FusedDecoder)
        self._decoder = decoder
        self._network.prepare(CHUNK)
        self.tokens = pages * PAGE
        self.weight_bytes = decoder.weight_bytes
        for layer in range(len(self._text.full_layers)):
            for part in self._network.kv.layer(layer):
                part.normal_()
        conv, recurrent = self._network.state.buffers
        conv.normal_()
        recurrent.normal_(std=0.1)

    # --- rounds ----------------------------------------------------------------------------------------------

    def rounds(self) -> Iterator[Row]:
        """One column a lane."""
        contexts, lanes = (CONTEXTS[:1], (1, 8)) if self._quick else (CONTEXTS, LANES)
        for context in contexts:
            for width in lanes:
                if width * (context + PAGE) > self.tokens:
                    continue
                time = self._captured(self._columns(width, 1, context)).milliseconds
                floor = self._floor(width, 1, context)
                limit = {(1, 4096): 1.25, (8, 4096): 1.35}.get((width, context))
                yield Row(
                    key=f"round_{width}x1_{context}",
                    name=f"round, {width} lane{'s' * (width > 1)}, {context:,} tokens each",
                    value=f"{time:.2f} ms = {width / time * 1e3:,.0f} tokens/s",
                    peer=f"{floor:.2f} ms",
                    ratio=time / floor,
                    target="" if limit is None else f"≤ {limit} × floor",
                    passed=None if limit is None else time / floor <= limit,
                    samples=[time],
                    peer_samples=[floor],
                )

    def verified(self) -> Iterator[Row]:
        """Several columns a lane, recorded."""
        one = self._captured(self._columns(1, 1, 4096)).milliseconds
        for width, columns in [(8, 8)] if self._quick else [(1, 4), (1, 8), (4, 8), (8, 2), (8, 4), (8, 8)]:
            time = self._captured(self._columns(width, columns, 4096)).milliseconds
            floor = self._floor(width, columns, 4096)
            judged = (width, columns) == (8, 8)
            yield Row(
                key=f"round_{width}x{columns}_4096",
                name=f"verify round, {width} × {columns} columns, 4,096 tokens each ({time / one:.2f} × one column)",
                value=f"{time:.2f} ms",
                peer=f"{floor:.2f} ms",
                ratio=time / floor,
                target="≤ 2.0 × one column" if judged else "",
                passed=time / one <= 2.0 if judged else None,
                samples=[time],
                peer_samples=[floor],
            )

    def _columns(self, lanes: int, each: int, context: int) -> RoundColumns:
        def int32(values: Any) -> Tensor:
            return torch.as_tensor(np.asarray(values), dtype=torch.int32).cuda()

        pages = -(-(context + each) // PAGE)
        table = np.arange(lanes * pages).reshape(lanes, pages) % (self.tokens // PAGE)
        past = np.full(lanes, context)
        at = past[:, None] + np.arange(each)
        rows = np.take_along_axis(table, at // PAGE, 1) * PAGE + at % PAGE
        tokens = np.random.default_rng(0).integers(0, self._text.vocab_size, lanes * each)
        columns = RoundColumns(
            int32(np.arange(lanes)), int32(tokens), int32(at.ravel()), int32(past), int32(rows.ravel()), int32(table)
        )
        if each == 1:
            return columns
        fields = (columns.slots, columns.tokens, columns.positions, columns.past, columns.rows, columns.table)
        return VerifyColumns(*fields, self._decoder.record(lanes * each))

    def _captured(self, columns: RoundColumns) -> Round:
        self._decoder.round(columns)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._decoder.round(columns)
        return Round(graph, replayed(graph))

    def _floor(self, lanes: int, each: int, context: int) -> float:
        """Milliseconds that the bytes take which must move: weights once, the state of every lane read and written (of
        verified columns only read), keys and values once."""
        state = lanes * sizes.state_bytes(self._text, 2) * (2 if each == 1 else 1)
        kept = lanes * (context + each) * sizes.kv_token_bytes(self._text, "bf16")
        embedding = self._text.vocab_size * self._text.hidden_size * 2
        weights = self.weight_bytes - (0 if self._text.tied_embedding else embedding)
        memory = (weights + state + kept) / self._card.read_bytes
        return max(memory, lanes * each * self._flops_each() / self._card.matrix_flops) * 1e3

    def _flops_each(self) -> float:
        """Of one token's products with the layers' matrices."""
        shapes = expected_tensors(self._config).items()
        inside = [math.prod(shape) for name, shape in shapes if ".layers." in name and "conv1d" not in name]
        return 2.0 * sum(inside)

    # --- prompts ---------------------------------------------------------------------------------------------

    def prompts(self) -> Iterator[Row]:
        each = self._flops_each()
        for length in PROMPTS[:2] if self._quick else PROMPTS:
            time = seconds(partial(self._read, length), 3)
            rate = length * each / time
            share = rate / self._card.matrix_flops
            judged = length == 8192
            yield Row(
                key=f"prefill_{length}",
                name=f"prompt of {length:,} tokens in chunks of {CHUNK:,}",
                value=f"{time * 1e3:,.0f} ms = {length / time:,.0f} tokens/s, {rate / 1e12:.0f} TFLOP/s",
                peer=f"{self._card.matrix_flops / 1e12:.0f} TFLOP/s",
                ratio=share,
                target="≥ 55 % of the matrix rate" if judged else "",
                passed=share >= 0.55 if judged else None,
                samples=[time],
            )

    def readout(self) -> Iterator[Row]:
        layers = self._text.full_layers
        heads = tuple((layers[i % len(layers)], i // len(layers) % self._text.num_heads) for i in range(READ_HEADS))
        span = HeadSpan(start=0, end=READ_KEYS, heads=tuple(sorted(heads)))
        self._read(READ_KEYS)
        plain = seconds(lambda: self._last(READ_KEYS, ()), 7)
        read = seconds(lambda: self._last(READ_KEYS, (span,)), 7)
        yield Row(
            key="readout",
            name=f"readout of {READ_HEADS} heads over {READ_KEYS:,} keys, beside the chunk it is read with",
            value=f"{(read - plain) * 1e3:.2f} ms",
            target="≤ 0.3 ms",
            passed=(read - plain) * 1e3 <= 0.3,
            samples=[read, plain],
        )

    def _read(self, length: int) -> None:
        for start in range(0, length, CHUNK):
            self._chunk(start, min(start + CHUNK, length), ())

    def _last(self, length: int, spans: tuple[HeadSpan, ...]) -> None:
        self._chunk(length - 128, length, spans)

    def _chunk(self, start: int, stop: int, spans: tuple[HeadSpan, ...]) -> None:
        ids = torch.zeros(stop - start, dtype=torch.int64, device="cuda")
        positions = torch.arange(start, stop, device="cuda").expand(3, -1)
        run = Run(0, 0, stop - start, start, range(-(-stop // PAGE)))
        readouts = [Readout(0, span) for span in spans]
        self._decoder.forward(self._decoder.embed(ids), positions, [run], readouts=readouts)

    # --- pictures --------------------------------------------------------------------------------------------

    def pictures(self) -> Iterator[Row]:
        vision = self._network.vision
        if vision is None or self._config.vision is None:
            return
        generator = np.random.default_rng(0)
        limits = {1024: 0.020, 4096: 0.8}
        for side in SIDES[:1] if self._quick else SIDES:
            picture = generator.integers(0, 256, (side, side, 3), dtype=np.uint8)
            time = seconds(partial(vision.encode, picture), 3)
            limit = limits.get(side)
            yield Row(
                key=f"picture_{side}",
                name=f"picture of {side:,} × {side:,} pixels",
                value=f"{time * 1e3:,.1f} ms",
                target="" if limit is None else f"≤ {limit * 1e3:,.0f} ms",
                passed=None if limit is None else time <= limit,
                samples=[time],
            )


def replayed(graph: torch.cuda.CUDAGraph, repeats: int = 15) -> float:
    """Median milliseconds of one replay, of several in a row."""
    for _ in range(3):
        graph.replay()
    times = []
    for _ in range(repeats):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(4):
            graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 4)
    return statistics.median(times)
