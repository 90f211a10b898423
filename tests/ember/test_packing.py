"""How Ember is packed: rounding that knows the inputs, and the whole way from a training checkpoint to what ships."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from assets.ember import calibration, pack
from assets.ember.recipe.checkpoint import save_int8
from assets.ember.recipe.model import Ember
from assets.ember.recipe.shape import Shape
from assets.ember.rounding import quantize_nvfp4_for_inputs
from engine.answers.heads import read_heads
from engine.checkpoint import open_checkpoint
from engine.checkpoint.catalogue import BUNDLED
from engine.checkpoint.quantize import dequantize, quantize_nvfp4


def inputs(rows: int, columns: int) -> torch.Tensor:
    """Inputs as layers have them: correlated, some columns far larger than others."""
    generator = torch.Generator().manual_seed(0)
    mixed = torch.randn(rows, columns // 4, generator=generator) @ torch.randn(
        columns // 4, columns, generator=generator
    )
    return (mixed + torch.randn(rows, columns, generator=generator)) * torch.logspace(-1, 1, columns)


def output_error(weight: torch.Tensor, rounded: torch.Tensor, x: torch.Tensor) -> float:
    return ((x @ (rounded - weight).T).norm() / (x @ weight.T).norm()).item()


def test_outputs_are_kept_better_than_by_nearest_values() -> None:
    x = inputs(4096, 128)
    weight = torch.randn(48, 128, generator=torch.Generator().manual_seed(1)) * 0.05
    nearest = dequantize(quantize_nvfp4(weight))
    packed = quantize_nvfp4_for_inputs(weight, x[:2048].T @ x[:2048])
    assert packed.shape == (48, 128)
    unseen = x[2048:]
    assert output_error(weight, dequantize(packed), unseen) < 0.6 * output_error(weight, nearest, unseen)


def test_inputs_without_correlation_give_the_nearest_values() -> None:
    weight = torch.randn(32, 64, generator=torch.Generator().manual_seed(2))
    packed = quantize_nvfp4_for_inputs(weight, torch.eye(64))
    assert torch.equal(dequantize(packed), dequantize(quantize_nvfp4(weight)))


def test_columns_that_are_always_zero_do_no_harm() -> None:
    x = inputs(512, 64)
    x[:, 10:20] = 0
    weight = torch.randn(16, 64, generator=torch.Generator().manual_seed(3))
    rounded = dequantize(quantize_nvfp4_for_inputs(weight, x.T @ x))
    assert torch.isfinite(rounded).all()
    assert output_error(weight, rounded, x) < 0.1


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Ember's configuration with everything but the vocabulary made small."""
    raw = json.loads((BUNDLED / "config.json").read_text())
    raw["text_config"] |= {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 12,
        "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 3,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "linear_num_key_heads": 1,
        "linear_num_value_heads": 1,
    }
    raw["vision_config"] |= {
        "depth": 1,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_heads": 2,
        "out_hidden_size": 32,
    }
    (tmp_path / "source.json").write_text(json.dumps(raw))
    return tmp_path / "source.json"


@pytest.mark.parametrize(("kind", "options"), [("int8", []), ("bf16", []), ("int8", ["--nearest"])])
def test_a_training_checkpoint_becomes_what_ships(
    tmp_path: Path, config: Path, kind: str, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, count in {"LENGTH": 150, "TEXTS": 2, "CHATS": 1, "LOGS": 1, "PICTURES": 1}.items():
        monkeypatch.setattr(calibration, name, count)
    torch.manual_seed(0)
    model = Ember(Shape.from_config(config))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    state = {name: tensor.detach() for name, tensor in model.state_dict().items()}
    source = tmp_path / "checkpoint.safetensors"
    if kind == "int8":
        save_int8(state, source)
    else:
        save_file({name: tensor.bfloat16() for name, tensor in state.items()}, source)
    out = tmp_path / "out"
    out.mkdir()
    (out / "heads.json").write_text((BUNDLED / "heads.json").read_text())

    pack.main([str(source), "--config", str(config), "--out", str(out), *options])

    with open_checkpoint(out) as packed:
        formats = {name: packed.format_of(name) for name in packed.names()}
        assert formats["model.language_model.layers.0.linear_attn.in_proj_qkv.weight"] == "nvfp4"
        assert formats["model.language_model.layers.3.self_attn.k_proj.weight"] == "nvfp4"
        assert formats["model.language_model.layers.11.mlp.down_proj.weight"] == "nvfp4"
        assert formats["model.visual.merger.linear_fc1.weight"] == "nvfp4"
        assert formats["model.language_model.embed_tokens.weight"] == "int8"
        assert formats["model.visual.patch_embed.proj.weight"] == "int8"
        assert formats["model.language_model.layers.0.linear_attn.in_proj_a.weight"] == "bf16"
        assert formats["model.language_model.layers.0.linear_attn.A_log"] == "bf16"
        assert read_heads(out / "heads.json").weights == packed.content_hash()
        for name, wanted in state.items():
            error = (packed.tensor(name) - wanted).norm() / wanted.norm()
            assert error < {"bf16": 0.01, "int8": 0.02, "nvfp4": 0.3}[formats[name]], name
    groups = json.loads((out / "config.json").read_text())["quantization_config"]["config_groups"]
    assert [group["format"] for group in groups.values()] == ["nvfp4-pack-quantized", "int-quantized"]


def test_what_ships_stays_small() -> None:
    """The promise of the card, tokenizer and all."""
    files = [file for file in BUNDLED.iterdir() if file.is_file()]
    assert sum(file.stat().st_size for file in files) <= 90_000_000
