"""Converted checkpoints: the same weights, in the card's order, with everything that stood beside them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.checkpoint import CheckpointError
from engine.checkpoint.convert import convert
from engine.checkpoint.geometries import EMBER, Geometry, geometry
from engine.checkpoint.random_model import write_random
from engine.checkpoint.reader import open_checkpoint
from engine.checkpoint.verify import verify
from engine.model.fused_weights import read_fused
from tests.tiny import write_tiny

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def shape(tmp_path_factory: pytest.TempPathFactory) -> Geometry:
    folder = write_tiny(tmp_path_factory.mktemp("shapes"), gdn_dim=16)
    raw = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    raw["text_config"].update(vocab_size=49_160, intermediate_size=128, hidden_size=64)
    raw["vision_config"].update(out_hidden_size=64)
    return replace(geometry(EMBER), raw=raw)


@pytest.fixture(scope="module", params=["modelopt", "compressed-tensors"])
def pair(
    request: pytest.FixtureRequest, shape: Geometry, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """(a checkpoint, what it was converted to)."""
    folder = tmp_path_factory.mktemp("converted")
    source, target = folder / "source", folder / "target"
    write_random(shape, source, layout=request.param)
    (source / "notes.txt").write_text("from a publisher", encoding="utf-8")
    heard: list[tuple[int, int]] = []
    count = convert(source, target, lambda *of: heard.append(of))
    each = {"full_attention": 7, "linear_attention": 6}
    assert count == sum(each[kind] for kind in shape.config.text.layer_types)
    assert heard[-1][0] == heard[-1][1]
    return source, target


def test_weights_are_the_same(pair: tuple[Path, Path]) -> None:
    with open_checkpoint(pair[0]) as source, open_checkpoint(pair[1]) as target:
        assert source.names() == target.names()
        for name in source.names():
            torch.testing.assert_close(target.tensor(name), source.tensor(name), rtol=1e-6, atol=0)
        formats = target.formats()
        assert "nvfp4" not in formats
        assert formats["fragments"] > 20
        assert source.content_hash() == target.content_hash()


def test_what_stands_beside_comes_along(pair: tuple[Path, Path]) -> None:
    kept = {file.name for file in pair[0].iterdir() if ".safetensors" not in file.name}
    assert kept == {file.name for file in pair[1].iterdir() if ".safetensors" not in file.name}
    assert (pair[1] / "notes.txt").read_text(encoding="utf-8") == "from a publisher"


def test_the_card_reads_the_same_words(pair: tuple[Path, Path], shape: Geometry) -> None:
    with open_checkpoint(pair[0]) as source, open_checkpoint(pair[1]) as target:
        packed, copied = read_fused(shape.config, source, CPU), read_fused(shape.config, target, CPU)
    for one, other in zip(packed.layers, copied.layers, strict=True):
        for matrix, same in ((one.gate_up, other.gate_up), (one.down, other.down), (one.mixer.out, other.mixer.out)):
            for part in ("words", "scales", "factors"):
                assert torch.equal(getattr(matrix.weight, part), getattr(same.weight, part))  # type: ignore[attr-defined]


def test_a_converted_checkpoint_is_sound(pair: tuple[Path, Path]) -> None:
    assert verify(pair[1]).problems == ()


def test_what_cannot_be_converted_says_so(pair: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="holds a checkpoint already"):
        convert(*pair)
    with pytest.raises(CheckpointError, match="no NVFP4 matrices"):
        convert(pair[1], tmp_path / "again")
    with pytest.raises(CheckpointError, match="do not serve recurrent heads of 8 values"):
        convert(write_tiny(tmp_path / "tiny"), tmp_path / "other")
