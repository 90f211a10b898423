"""Random checkpoints: complete, sound, of both NVFP4 layouts, and numerically alive."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.checkpoint import CheckpointError, random_model
from engine.checkpoint.geometries import EMBER, QWEN, Geometry, geometry
from engine.checkpoint.quantize import PackedFP8
from engine.checkpoint.random_model import RandomWeights, write_random
from engine.checkpoint.reader import open_checkpoint
from engine.checkpoint.verify import verify
from tests.conftest import LoadTiny
from tests.engine.requests import GREEDY, generate, text_ids
from tests.tiny import write_tiny


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Geometry:
    """The tiny test model's shapes, with a head of its own and room for Ember's tokens."""
    raw = json.loads((write_tiny(tmp_path_factory.mktemp("shapes")) / "config.json").read_text(encoding="utf-8"))
    raw["tie_word_embeddings"] = False
    raw["text_config"].update(tie_word_embeddings=False, vocab_size=49_160)
    return replace(geometry(EMBER), raw=raw)


@pytest.mark.parametrize("layout", ["modelopt", "compressed-tensors"])
def test_a_random_checkpoint_is_sound(
    small: Geometry, tmp_path: Path, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(random_model, "SHARD", 1_000_000)
    heard: list[tuple[int, int]] = []
    write_random(small, tmp_path, layout=layout, on_progress=lambda *of: heard.append(of))  # type: ignore[arg-type]
    report = verify(tmp_path)
    assert report.ok, report.problems
    formats = dict(report.formats)
    assert formats["fp8"] == 1
    assert formats["nvfp4"] > 20
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    assert not list(tmp_path.glob("*.part"))
    assert heard == sorted(heard)
    assert heard[-1][0] == heard[-1][1] == RandomWeights(small.config).nbytes


def test_both_layouts_hold_the_same_weights(small: Geometry, tmp_path: Path) -> None:
    write_random(small, tmp_path / "a", layout="modelopt", seed=3)
    write_random(small, tmp_path / "b", layout="compressed-tensors", seed=3)
    write_random(small, tmp_path / "c", layout="modelopt", seed=4)
    name = "model.language_model.layers.0.mlp.down_proj.weight"
    with (
        open_checkpoint(tmp_path / "a") as a,
        open_checkpoint(tmp_path / "b") as b,
        open_checkpoint(tmp_path / "c") as c,
    ):
        torch.testing.assert_close(a.tensor(name), b.tensor(name))
        assert not torch.equal(a.tensor(name), c.tensor(name))


def test_weights_keep_the_size_of_what_goes_through_them(small: Geometry, tmp_path: Path) -> None:
    write_random(small, tmp_path)
    with open_checkpoint(tmp_path) as checkpoint:
        for part in ("mlp.gate_proj", "mlp.down_proj", "linear_attn.in_proj_qkv"):
            weight = checkpoint.tensor(f"model.language_model.layers.0.{part}.weight")
            assert 0.8 < weight.std().item() * weight.shape[1] ** 0.5 < 1.25
        head = checkpoint.tensor("lm_head.weight")
        assert 0.7 < head.std().item() * head.shape[1] ** 0.5 < 1.4


def test_it_answers(small: Geometry, tmp_path: Path, load_tiny: LoadTiny) -> None:
    write_random(small, tmp_path)
    engine = load_tiny(tmp_path)
    answer = generate(engine, text_ids(engine, 40), **GREEDY, max_tokens=24)
    assert len(answer.ids) == 24
    assert len(set(answer.ids)) > 3


def test_weights_drawn_for_a_loader_are_those_of_the_file(small: Geometry, tmp_path: Path) -> None:
    write_random(small, tmp_path, seed=5)
    drawn = RandomWeights(small.config, 5)
    with open_checkpoint(tmp_path) as stored:
        for name in reversed(drawn.names()):
            assert stored.format_of(name) == drawn.format_of(name)
            out = torch.empty(drawn.shape(name))
            drawn.copy_into(name, out)
            torch.testing.assert_close(stored.tensor(name), out)
        assert isinstance(drawn.packed("lm_head.weight"), PackedFP8)
        with pytest.raises(ValueError, match="not packed"):
            drawn.packed("model.language_model.norm.weight")


def test_a_folder_with_a_checkpoint_is_left_alone(small: Geometry, tmp_path: Path) -> None:
    write_random(small, tmp_path)
    before = {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    with pytest.raises(CheckpointError, match="holds a checkpoint already"):
        write_random(small, tmp_path)
    assert before == {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}


def test_the_27b_takes_what_is_published() -> None:
    """24.3e9 NVFP4 weights at 0.5625 bytes, a head of FP8 and the rest in BF16."""
    assert 18.0e9 < RandomWeights(geometry(QWEN).config).nbytes < 19.5e9
