"""The decoder of the card against the plain one: the same quantised weights, BF16 against float32.

Kernels are their references here, but where a test says that it runs them in Triton's interpreter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.checkpoint.random_model import RandomWeights
from engine.config import ModelConfig
from engine.memory.arena import each_its_own
from engine.memory.lane_state import LaneState
from engine.memory.paged_kv import PagedKV
from engine.messages import HeadSpan
from engine.model.decoder import Decoder, Readout, Run
from engine.model.fused_decoder import FusedDecoder, RoundColumns, VerifyColumns
from engine.model.fused_weights import read_fused
from engine.model.weights import read_text
from tests.engine.model.oracle import hf_config

CPU = torch.device("cpu")
SLOTS, PAGES, PAGE = 4, 32, 16
TIMES = 4.0
"""Tiny random models amplify roundings, so the measure is what the plain decoder itself loses in BF16."""


@dataclass
class Three:
    """Decoders with the same weights that are told the same: the plain one in float32 and in BF16, the fused one."""

    config: ModelConfig
    plain: Decoder
    rounded: Decoder
    fused: FusedDecoder

    def chunk(self, ids: Tensor, runs: list[Run], **options: Any) -> list[Tensor]:
        """Residuals."""
        positions = torch.cat([torch.arange(run.past, run.past + run.length) for run in runs]).expand(3, -1)
        decoders = self.plain, self.rounded, self.fused
        return [decoder.forward(decoder.embed(ids), positions, runs, **options) for decoder in decoders]

    def logits(self, hidden: list[Tensor]) -> list[Tensor]:
        decoders = self.plain, self.rounded, self.fused
        return [decoder.logits(x) for decoder, x in zip(decoders, hidden, strict=True)]

    def round(self, ids: Tensor, runs: list[Run]) -> list[Tensor]:
        """Logits."""
        past = torch.tensor([run.past for run in runs])
        plain = [d.forward(d.embed(ids), past.expand(3, -1), runs) for d in (self.plain, self.rounded)]
        table = torch.zeros(len(runs), max(len(run.pages) for run in runs), dtype=torch.int32)
        for row, run in enumerate(runs):
            table[row, : len(run.pages)] = torch.tensor(run.pages)
        rows = [run.pages[run.past // PAGE] * PAGE + run.past % PAGE for run in runs]
        columns = RoundColumns(
            torch.tensor([run.slot for run in runs], dtype=torch.int32),
            ids.int(),
            past.int(),
            past.int(),
            torch.tensor(rows, dtype=torch.int32),
            table,
        )
        return [self.plain.logits(plain[0]), self.rounded.logits(plain[1]), self.fused.round(columns)]


def three(kv_format: str = "auto", **shape: Any) -> Three:
    config = ModelConfig.from_dict(hf_config(**shape).to_dict())
    config = replace(config, vision=None)
    source = RandomWeights(config, device=CPU)

    def plain(dtype: torch.dtype) -> Decoder:
        kv = PagedKV(config.text, PAGES, PAGE, CPU, dtype)
        return Decoder(
            config, read_text(config, source, each_its_own(CPU), dtype), kv, LaneState(config.text, SLOTS, CPU, dtype)
        )

    kv = PagedKV(config.text, PAGES, PAGE, CPU, torch.bfloat16, kv_format)
    state = LaneState(config.text, SLOTS, CPU, torch.bfloat16)
    fused = FusedDecoder(config, read_fused(config, source, CPU), kv, state)
    return Three(config, plain(torch.float32), plain(torch.bfloat16), fused)


def close(found: list[Tensor], times: float = TIMES) -> None:
    plain, rounded, fused = (x.double() for x in found)
    lost, error = (((x - plain).norm() / plain.norm()).item() for x in (rounded, fused))
    assert lost < 0.1
    assert error < times * lost


def tokens(count: int, seed: int = 0) -> Tensor:
    return torch.randint(0, 90, (count,), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    "shape",
    [{}, {"tied": False}, {"heads": 6, "gdn_key_heads": 2, "gdn_value_heads": 6, "rotary": 0.25, "layers": 5}],
    ids=["tied", "untied", "grouped"],
)
def test_chunks_packed_runs_and_rounds(shape: dict[str, Any]) -> None:
    pair = three(**shape)
    first = [Run(0, 0, 40, 0, [3, 9, 1, 2]), Run(2, 40, 7, 0, [4, 5])]
    close(pair.logits(pair.chunk(tokens(47), first)))
    again = [Run(2, 0, 1, 7, [4, 5]), Run(0, 1, 21, 40, [3, 9, 1, 2])]
    close(pair.logits(pair.chunk(tokens(22, 1), again)))
    for step in range(3):
        runs = [Run(2, 0, 1, 8 + step, [4, 5]), Run(0, 1, 1, 61 + step, [3, 9, 1, 2])]
        close(pair.round(tokens(2, 2 + step), runs))


def test_columns_that_are_verified() -> None:
    """Five columns of two lanes at once, of which three and one stand: as if only those had been read."""
    pair = three(layers=5)
    pair.chunk(tokens(15), [Run(0, 0, 9, 0, [3, 9]), Run(1, 9, 6, 0, [4])])
    ids = tokens(10, 1)
    plain = pair.fused
    past = torch.tensor([9, 6], dtype=torch.int32)
    each = torch.arange(5, dtype=torch.int32)
    positions = (past[:, None] + each).flatten()
    table = torch.tensor([[3, 9], [4, 0]], dtype=torch.int32)
    rows = (table.gather(1, (past[:, None] + each).long() // PAGE) * PAGE + (past[:, None] + each) % PAGE).flatten()
    slots = torch.tensor([0, 1], dtype=torch.int32)
    columns = VerifyColumns(slots, ids.int(), positions, past, rows.int(), table, plain.record(10))
    verified = plain.round(columns)
    plain.accept(columns, torch.tensor([3, 1], dtype=torch.int32))
    fresh = three(layers=5)
    fresh.chunk(tokens(15), [Run(0, 0, 9, 0, [3, 9]), Run(1, 9, 6, 0, [4])])
    for step in range(3):
        lanes = [0, 1] if step == 0 else [0]
        runs = [Run(lane, n, 1, (9, 6)[lane] + step, ([3, 9], [4])[lane]) for n, lane in enumerate(lanes)]
        own = fresh.round(ids.view(2, 5)[lanes, step], runs)[2]
        torch.testing.assert_close(verified.view(2, 5, -1)[lanes, step], own, atol=0.1, rtol=0.05)
    after = [Run(0, 0, 1, 12, [3, 9]), Run(1, 1, 1, 7, [4])]
    found, expected = pair.round(tokens(2, 3), after)[2], fresh.round(tokens(2, 3), after)[2]
    torch.testing.assert_close(found, expected, atol=0.1, rtol=0.05)


def test_keys_and_values_in_fp8() -> None:
    pair = three("fp8")
    close(pair.logits(pair.chunk(tokens(40), [Run(0, 0, 40, 0, [3, 9, 1])])), 8.0)
    close(pair.round(tokens(1, 1), [Run(0, 0, 1, 40, [3, 9, 1])]), 8.0)


def test_the_kernels_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A prompt and a round in Triton's interpreter."""
    pair = three(layers=4)
    monkeypatch.setenv("IGNIS_KERNELS", "triton")
    close(pair.logits(pair.chunk(tokens(18), [Run(1, 0, 13, 0, [7]), Run(0, 13, 5, 0, [3])])))
    close(pair.round(tokens(2, 1), [Run(0, 0, 1, 5, [3]), Run(1, 1, 1, 13, [7])]))


@pytest.mark.parametrize("kv_format", ["auto", "fp8"])
def test_readouts(kv_format: str) -> None:
    pair = three(kv_format)
    span = HeadSpan(start=4, end=24, heads=((3, 0), (3, 3)), extra=(1, 27), peaks=((3, 2), (3, 1)), columns=5)
    asked = [Readout(1, span), Readout(1, span)]
    runs = [Run(2, 0, 5, 0, [4]), Run(0, 5, 33, 0, [3, 9, 1])]
    positions = torch.cat([torch.arange(run.length) for run in runs]).expand(3, -1)
    for decoder, readout in ((pair.plain, asked[0]), (pair.fused, asked[1])):
        decoder.forward(decoder.embed(tokens(38)), positions, runs, readouts=[readout])
    scores, cells, peaks = ([getattr(readout, name) for readout in asked] for name in ("scores", "cells", "peaks"))
    torch.testing.assert_close(scores[1], scores[0], atol=0.15, rtol=0.1)
    assert cells[1].tolist() == cells[0].tolist()
    torch.testing.assert_close(peaks[1], peaks[0], atol=0.15, rtol=0.1)


def test_fewer_layers() -> None:
    pair = three(layers=4)
    found = pair.chunk(tokens(20), [Run(0, 0, 20, 0, [3, 9])], layers=2)
    close(found)


def test_bytes_of_weights_are_about_what_is_stored() -> None:
    config = ModelConfig.from_dict(hf_config(tied=False, hidden=512, head_dim=128).to_dict())
    config = replace(config, vision=None)
    source = RandomWeights(config, device=CPU)
    assert read_fused(config, source, CPU).nbytes == pytest.approx(source.nbytes, rel=0.1)
