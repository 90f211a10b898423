from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.checkpoint import formats, open_checkpoint
from engine.checkpoint.quantize import PackedFP8, PackedNVFP4, dequantize
from engine.checkpoint.write import write_checkpoint
from tests.engine.checkpoint.models import STORE, Weights, is_linear, packed_weights, random_model, write_model

Model = tuple[dict[str, Any], Weights]
UP = "model.language_model.layers.0.mlp.up_proj.weight"


@pytest.mark.parametrize("how", STORE)
def test_every_format_reads_as_what_was_stored(tmp_path: Path, model: Model, how: str) -> None:
    write_model(tmp_path, *model, how)
    with open_checkpoint(tmp_path) as checkpoint:
        assert set(checkpoint.names()) == set(model[1])
        for name, stored in packed_weights(model[1], how).items():
            wanted = stored.float() if isinstance(stored, torch.Tensor) else dequantize(stored)
            assert torch.equal(checkpoint.tensor(name), wanted), name
            is_packed = is_linear(name, model[1][name])
            assert checkpoint.format_of(name) == (how.split(maxsplit=1)[0] if is_packed else "f32")


def test_both_nvfp4_layouts_read_the_same(tmp_path: Path, model: Model) -> None:
    for layout in ("compressed-tensors", "modelopt"):
        write_model(tmp_path / layout, *model, "nvfp4", layout=layout)
    with open_checkpoint(tmp_path / "compressed-tensors") as one, open_checkpoint(tmp_path / "modelopt") as other:
        assert one.formats() == other.formats()
        for name in one.names():
            assert torch.equal(one.tensor(name), other.tensor(name)), name


def test_published_nvfp4_files_of_either_kind(tmp_path: Path, model: Model) -> None:
    """Tensors laid down by hand as the publishers' tools do, scale values that have no exact reciprocal among them."""
    config, weights = model
    generator = torch.Generator().manual_seed(7)
    codes = torch.randint(0, 256, (384, 96), generator=generator, dtype=torch.uint8)
    scales = torch.randint(40, 90, (384, 12), generator=generator, dtype=torch.uint8).view(torch.float8_e4m3fn)
    rest = {name: tensor for name, tensor in weights.items() if name != UP}
    base = UP.removesuffix("weight")
    kinds = {
        "modelopt": {
            UP: codes,
            UP + "_scale": scales,
            UP + "_scale_2": torch.tensor(0.0037),
            base + "input_scale": torch.tensor(0.25),
        },
        "compressed": {
            UP + "_packed": codes,
            UP + "_scale": scales,
            UP + "_global_scale": torch.tensor([1 / 0.0037]),
            base + "input_global_scale": torch.tensor([4.0]),
        },
    }
    for kind, tensors in kinds.items():
        write_checkpoint(tmp_path / kind, config, {**rest, **tensors})
        with open_checkpoint(tmp_path / kind) as checkpoint:
            packed = checkpoint.packed(UP)
            assert isinstance(packed, PackedNVFP4)
            assert torch.equal(packed.codes, codes)
            assert torch.equal(packed.block_scale.float(), scales.float())
            assert packed.scale.item() == pytest.approx(0.0037, rel=1e-6)
            assert packed.input_scale == 0.25
            wanted = dequantize(PackedNVFP4(codes, scales, torch.tensor(0.0037)))
            assert torch.allclose(checkpoint.tensor(UP), wanted, rtol=1e-6)


@pytest.mark.parametrize("shape", [(), (1,), (384,), (384, 1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_fp8_scales_come_in_several_shapes(
    folder: Path, model: Model, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    tensors = load_file(folder / "model.safetensors")
    codes = model[1][UP].to(torch.float8_e4m3fn)
    scale = (torch.rand(shape) + 0.5).to(dtype)
    save_file({**tensors, UP: codes, UP + "_scale": scale}, folder / "model.safetensors")
    with open_checkpoint(folder) as checkpoint:
        factor = scale.float() if scale.numel() == 1 else scale.float().view(384, 1)
        assert torch.equal(checkpoint.tensor(UP), codes.float() * factor)
        packed = checkpoint.packed(UP)
        assert isinstance(packed, PackedFP8)
        assert packed.kind == ("row" if scale.numel() > 1 else "tensor")


def test_formats_may_be_mixed(tmp_path: Path, model: Model) -> None:
    config, weights = model
    kinds = list(STORE.values())
    names = [name for name, weight in weights.items() if is_linear(name, weight)]
    mixed = {name: kinds[number % len(kinds)](weights[name]) for number, name in enumerate(names)}
    write_checkpoint(tmp_path, config, {**weights, **mixed})
    with open_checkpoint(tmp_path) as checkpoint:
        assert set(checkpoint.formats()) == {"f32", "bf16", "f16", "fp8", "int8", "nvfp4"}
        for name, weight in weights.items():
            assert (checkpoint.tensor(name) - weight).norm() <= 0.1 * weight.norm(), name


@pytest.mark.parametrize("how", ["bf16", "fp8 per row", "nvfp4"])
def test_sharded_is_the_same_as_single(tmp_path: Path, model: Model, how: str) -> None:
    write_model(tmp_path / "single", *model, how)
    write_model(tmp_path / "sharded", *model, how, shard_bytes=20_000)
    assert len(list((tmp_path / "sharded").glob("*.safetensors"))) > 5
    shutil.copytree(tmp_path / "sharded", tmp_path / "without index")
    (tmp_path / "without index" / "model.safetensors.index.json").unlink()
    with open_checkpoint(tmp_path / "single") as single:
        for other in ("sharded", "without index"):
            with open_checkpoint(tmp_path / other) as sharded:
                assert sharded.names() == single.names()
                assert sharded.nbytes == single.nbytes
                assert sharded.content_hash() == single.content_hash()
                assert all(torch.equal(sharded.tensor(n), single.tensor(n)) for n in single.names())


def test_a_text_model_reads_under_the_multimodal_names(tmp_path: Path) -> None:
    config, weights = random_model(tied=False)
    text = {
        name.replace("model.language_model.", "model.", 1): tensor
        for name, tensor in weights.items()
        if not name.startswith("model.visual.")
    }
    write_checkpoint(tmp_path, config["text_config"], text)
    with open_checkpoint(tmp_path) as checkpoint:
        assert torch.equal(checkpoint.tensor(UP), weights[UP])
        assert torch.equal(checkpoint.tensor("lm_head.weight"), weights["lm_head.weight"])
        assert not any(name.startswith("model.visual.") for name in checkpoint.names())


def test_normal_extras_are_ignored(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    extras = {"mtp.fc.weight": torch.zeros(2, 2), "model.language_model.layers.3.self_attn.k_scale": torch.zeros(1)}
    save_file({**tensors, **extras}, folder / "model.safetensors")
    with open_checkpoint(folder) as checkpoint:
        assert not set(extras) & set(checkpoint.names())


@pytest.mark.parametrize("how", STORE)
def test_reading_in_parts_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    generator = torch.Generator().manual_seed(0)
    config, weights = random_model(hidden=192)
    name = "model.language_model.layers.0.mlp.up_proj.weight"  # 384 rows: parts of 128
    weights[name] = torch.randn(weights[name].shape, generator=generator)
    write_model(tmp_path, config, weights, how)
    with open_checkpoint(tmp_path) as checkpoint:
        whole = checkpoint.tensor(name)
        monkeypatch.setattr(formats, "_CHUNK", 1)
        assert torch.equal(checkpoint.tensor(name), whole)
        stacked = torch.zeros(500, 192, dtype=torch.bfloat16)
        checkpoint.copy_into(name, stacked[50:434])
        assert torch.equal(stacked[50:434], whole.bfloat16())
        assert not stacked[:50].any()
        assert not stacked[434:].any()
        with pytest.raises(ValueError, match="shape"):
            checkpoint.copy_into(name, stacked)


def test_plain_weights_have_no_packed_parts(folder: Path) -> None:
    with open_checkpoint(folder) as checkpoint, pytest.raises(ValueError, match="f32"):
        checkpoint.packed(UP)


def test_progress_counts_every_byte_once(folder: Path) -> None:
    calls: list[tuple[int, int, str]] = []
    with open_checkpoint(folder) as checkpoint:
        checkpoint.on_progress = lambda done, total, name: calls.append((done, total, name))
        for name in [*checkpoint.names(), checkpoint.names()[0]]:
            checkpoint.tensor(name)
        assert [call[0] for call in calls] == sorted(call[0] for call in calls)
        assert {call[1] for call in calls} == {checkpoint.nbytes}
        assert calls[-1][0] == checkpoint.nbytes
        assert [call[2] for call in calls[:-1]] == checkpoint.names()


def test_the_hash_names_the_weights(tmp_path: Path, model: Model) -> None:
    config, weights = model
    write_model(tmp_path / "a", config, weights)
    write_model(tmp_path / "b", {**config, "ignis_name": "Other"}, weights)
    last = next(reversed(weights))
    changed = {**weights, last: weights[last].clone()}
    changed[last].view(-1)[-1] += 1
    write_model(tmp_path / "c", config, changed)
    write_model(tmp_path / "d", config, weights, "bf16")
    hashes = []
    for folder in "abcd":
        with open_checkpoint(tmp_path / folder) as checkpoint:
            hashes.append(checkpoint.content_hash())
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 3
