"""A whole engine over the card's decoder, its kernels in their plain forms."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import compute
from engine.messages import HeadSpan
from engine.model.decoder import Decoder
from engine.model.fused_decoder import FusedDecoder
from engine.model.network import Network
from engine.schedule import scheduler
from tests.conftest import LoadTiny
from tests.engine.requests import GREEDY, collect, generate, generation, read, text_ids
from tests.tiny import write_tiny


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model of a shape that the kernels serve."""
    return write_tiny(tmp_path_factory.mktemp("served"), gdn_dim=16)


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch) -> list[Network]:
    """From now on engines in BF16 run fused; the networks that were built."""
    monkeypatch.setattr(compute, "choice", lambda: "triton")
    built: list[Network] = []
    original = scheduler.Prefill.__init__

    def note(self: scheduler.Prefill, network: Network, *rest: object) -> None:
        built.append(network)
        original(self, network, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(scheduler.Prefill, "__init__", note)
    return built


def test_lanes_write_what_each_writes_alone(served: Path, load_tiny: LoadTiny, fused: list[Network]) -> None:
    engine = load_tiny(served, dtype="bfloat16", prefill_chunk=128)
    assert isinstance(fused[0].decoder, FusedDecoder)
    prompts = [text_ids(engine, 9 + 5 * number, number) for number in range(4)]
    options = {**GREEDY, "max_tokens": 12}
    alone = generate(engine, prompts[1], **options)
    together = [collect(stream) for stream in [engine.submit(generation(prompt, **options)) for prompt in prompts]]
    assert together[1].ids == alone.ids
    assert all(len(answer.ids) == 12 for answer in together)


def test_heads_are_read(served: Path, load_tiny: LoadTiny, fused: list[Network]) -> None:
    engine = load_tiny(served, dtype="bfloat16", prefill_chunk=128)
    span = HeadSpan(start=2, end=20, heads=((3, 0), (4, 2)))
    fused_scores = read(engine, text_ids(engine, 24), heads=span).scores
    plain_scores = read(load_tiny(served, dtype="float32"), text_ids(engine, 24), heads=span).scores
    assert fused_scores is not None
    assert plain_scores is not None
    assert fused_scores.heads == pytest.approx(plain_scores.heads, abs=0.2)


def test_a_shape_that_kernels_do_not_serve_runs_plain(
    tiny_folder: Path, load_tiny: LoadTiny, fused: list[Network]
) -> None:
    engine = load_tiny(tiny_folder, dtype="bfloat16", prefill_chunk=128)
    assert isinstance(fused[0].decoder, Decoder)
    assert len(generate(engine, text_ids(engine, 9), **GREEDY, max_tokens=3).ids) == 3
