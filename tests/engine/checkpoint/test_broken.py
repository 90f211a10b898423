"""Broken checkpoints: one clear sentence each, before anything is read."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.checkpoint import CheckpointError, open_checkpoint
from tests.engine.checkpoint.models import Weights, edit_header, write_model

FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"
UP = "model.language_model.layers.0.mlp.up_proj.weight"
NORM = "model.language_model.norm.weight"
Break = Callable[[Path], object]


def change(edit: Callable[[dict[str, torch.Tensor]], object]) -> Break:
    """Break a file by editing its tensors."""

    def apply(folder: Path) -> None:
        tensors = load_file(folder / FILE)
        edit(tensors)
        save_file(tensors, folder / FILE)

    return apply


def header(edit: Callable[[dict[str, Any]], object]) -> Break:
    return lambda folder: edit_header(folder / FILE, edit)


def config(**keys: object) -> Break:
    def apply(folder: Path) -> None:
        raw = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**raw, **keys}))

    return apply


def truncate(size: int) -> Break:
    return lambda folder: (folder / FILE).write_bytes((folder / FILE).read_bytes()[:size])


def stored_as(dtype: torch.dtype, **extras: torch.Tensor) -> Break:
    """Store the up projection as ``dtype`` with tensors beside it, named by their suffix."""

    def edit(tensors: dict[str, torch.Tensor]) -> None:
        tensors[UP] = tensors[UP].to(dtype)
        tensors.update({UP + suffix: tensor for suffix, tensor in extras.items()})

    return change(edit)


def nvfp4(**changed: torch.Tensor | None) -> Break:
    """Store the up projection [384, 192] as ModelOpt's NVFP4, with some parts changed or (None) left out."""
    parts: dict[str, torch.Tensor | None] = {
        "": torch.zeros(384, 96, dtype=torch.uint8),
        "_scale": torch.ones(384, 12).to(torch.float8_e4m3fn),
        "_scale_2": torch.tensor(0.5),
        **changed,
    }

    def edit(tensors: dict[str, torch.Tensor]) -> None:
        del tensors[UP]
        tensors.update({UP + suffix: part for suffix, part in parts.items() if part is not None})

    return change(edit)


def first_byte_long(folder: Path) -> None:
    (folder / FILE).write_bytes(struct.pack("<Q", 1 << 40) + b"{}")


CASES: dict[str, tuple[Break, list[str]]] = {
    "no folder": (shutil.rmtree, ["does not exist"]),
    "no config": (lambda folder: (folder / "config.json").unlink(), ["has no config.json"]),
    "config is no JSON": (
        lambda folder: (folder / "config.json").write_text("{"),
        ["config.json is not readable JSON"],
    ),
    "config is a list": (
        lambda folder: (folder / "config.json").write_text("[]"),
        ["holds no JSON object"],
    ),
    "wrong model type": (config(model_type="llama"), ["config.json", "'llama'", "qwen3_5"]),
    "config lacks a size": (config(text_config={}), ["config.json", "num_hidden_layers"]),
    "no weights": (lambda folder: (folder / FILE).unlink(), ["no *.safetensors"]),
    "truncated in the data": (truncate(200_000), [FILE, "truncated at 200,000 bytes", "inside model."]),
    "truncated in the header": (truncate(100), [FILE, "truncated inside its header"]),
    "empty file": (truncate(0), [FILE, "not a safetensors file"]),
    "text file": (
        lambda folder: (folder / FILE).write_text("<!doctype html><title>404</title>"),
        [FILE, "not a safetensors file"],
    ),
    "header too long": (first_byte_long, [FILE, "not a safetensors file"]),
    "bytes after the end": (
        lambda folder: (folder / FILE).write_bytes((folder / FILE).read_bytes() + b"12345"),
        [FILE, "5 bytes after its last tensor"],
    ),
    "gap between tensors": (
        header(lambda h: h.pop(NORM)),
        [FILE, "does not follow its neighbour"],
    ),
    "entry without shape": (header(lambda h: h[NORM].pop("shape")), [FILE, NORM, "malformed"]),
    "entry with negative offset": (header(lambda h: h[NORM].update(data_offsets=[-4, 4])), [FILE, NORM, "malformed"]),
    "entry of another size": (header(lambda h: h[NORM].update(shape=[191])), [FILE, NORM, "768", "764"]),
    "unknown dtype": (header(lambda h: h[NORM].update(dtype="F4")), [FILE, NORM, "dtype F4"]),
    "integer weight": (stored_as(torch.int16), [FILE, UP, "dtype I16"]),
    "half converted": (stored_as(torch.int32), [FILE, UP, "in fragments but has no", "convert it again"]),
    "wrong shape": (
        change(lambda t: t.update({UP: t[UP][:-1].clone()})),
        [FILE, UP, "[383, 192]", "[384, 192]"],
    ),
    "missing tensor": (change(lambda t: t.pop(UP)), [UP, "is missing"]),
    "tensor of another model": (
        change(lambda t: t.update({"model.language_model.layers.9.mlp.up_proj.weight": torch.zeros(1)})),
        [FILE, "layers.9.mlp.up_proj", "no tensor of this model"],
    ),
    "fp8 without scale": (stored_as(torch.float8_e4m3fn), [FILE, UP, "has no", "_scale"]),
    "fp8 with a scale of another shape": (
        stored_as(torch.float8_e4m3fn, _scale=torch.ones(7)),
        [FILE, UP + "_scale", "[7]"],
    ),
    "fp8 with integer scales": (
        stored_as(torch.float8_e4m3fn, _scale=torch.ones(384, dtype=torch.int8)),
        [FILE, UP + "_scale", "dtype I8"],
    ),
    "int8 without scale": (stored_as(torch.int8), [FILE, UP, "is INT8 but has no", "_scale"]),
    "int8 with block scales": (stored_as(torch.int8, _scale=torch.ones(3, 2)), [FILE, UP + "_scale", "[3, 2]"]),
    "nvfp4 without block scales": (nvfp4(_scale=None), [FILE, UP + "_scale"]),
    "nvfp4 without its scale": (nvfp4(_scale_2=None), [FILE, UP + "_scale_2"]),
    "nvfp4 with block scales of another shape": (
        nvfp4(_scale=torch.ones(384, 6).to(torch.float8_e4m3fn)),
        [FILE, UP + "_scale", "[384, 6]", "[384, 12]"],
    ),
    "nvfp4 with codes of another shape": (
        nvfp4(**{"": torch.zeros(384, 192, dtype=torch.uint8)}),
        [FILE, UP, "[384, 192]", "[384, 96]"],
    ),
    "nvfp4 with two scales": (nvfp4(_scale_2=torch.ones(2)), [FILE, UP + "_scale_2", "not one value"]),
    "nvfp4 with float block scales": (nvfp4(_scale=torch.ones(384, 12)), [FILE, UP + "_scale", "F8_E4M3"]),
}


def one_sentence(message: str) -> bool:
    return message.endswith(".") and "\n" not in message and len(message) < 400 and "Traceback" not in message


@pytest.mark.parametrize("case", CASES)
def test_is_refused_with_one_sentence(folder: Path, case: str) -> None:
    spoil, words = CASES[case]
    spoil(folder)
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(folder)
    message = caught.value.message
    assert one_sentence(message), message
    for word in words:
        assert word in message, message


NAN = torch.tensor(float("nan"))


@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        (stored_as(torch.float8_e4m3fn, _scale=torch.full((384,), torch.nan)), "not finite"),
        (stored_as(torch.float8_e4m3fn, _scale=torch.tensor(0.0)), "not a positive scale"),
        (nvfp4(_scale=torch.full((384, 12), torch.nan).to(torch.float8_e4m3fn)), "not finite"),
        (nvfp4(_scale_2=NAN), "not finite"),
        (nvfp4(_scale_2=torch.tensor(-1.0)), "not a positive scale"),
    ],
)
def test_bad_scales_are_found_when_they_are_read(folder: Path, spoil: Break, word: str) -> None:
    spoil(folder)
    with open_checkpoint(folder) as checkpoint, pytest.raises(CheckpointError) as caught:
        checkpoint.tensor(UP)
    assert word in caught.value.message
    assert UP in caught.value.message
    assert one_sentence(caught.value.message)


@pytest.fixture
def sharded(tmp_path: Path, model: tuple[dict[str, Any], Weights]) -> Path:
    return write_model(tmp_path / "sharded", *model, shard_bytes=400_000)


def index(edit: Callable[[dict[str, Any]], object]) -> Break:
    def apply(folder: Path) -> None:
        raw = json.loads((folder / INDEX).read_text())
        edit(raw)
        (folder / INDEX).write_text(json.dumps(raw))

    return apply


SECOND = "model-00002-of-"
INDEX_CASES: dict[str, tuple[Break, list[str]]] = {
    "missing shard": (
        lambda folder: next(folder.glob(SECOND + "*")).unlink(),
        [INDEX, SECOND, "missing"],
    ),
    "truncated shard": (
        lambda folder: next(folder.glob(SECOND + "*")).write_bytes(b"\x08\0\0\0\0\0\0\0{}"),
        [SECOND, "truncated"],
    ),
    "index is no JSON": (lambda folder: (folder / INDEX).write_text("no"), [INDEX, "not readable JSON"]),
    "index without a map": (index(lambda raw: raw.pop("weight_map")), [INDEX, "weight_map"]),
    "tensor in another shard": (
        index(lambda raw: raw["weight_map"].update({NORM: next(iter(raw["weight_map"].values()))})),
        [INDEX, NORM, "but it is not"],
    ),
    "shard outside the folder": (
        index(lambda raw: raw["weight_map"].update({NORM: "../model.safetensors"})),
        [INDEX, "outside its folder"],
    ),
}


@pytest.mark.parametrize("case", INDEX_CASES)
def test_a_bad_index_is_refused_with_one_sentence(sharded: Path, case: str) -> None:
    spoil, words = INDEX_CASES[case]
    spoil(sharded)
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(sharded)
    assert one_sentence(caught.value.message), caught.value.message
    for word in words:
        assert word in caught.value.message


def test_a_tensor_in_two_files_is_refused(sharded: Path) -> None:
    (sharded / INDEX).unlink()
    save_file({NORM: torch.zeros(192)}, sharded / "another.safetensors")
    with pytest.raises(CheckpointError, match=r"is in both another\.safetensors and"):
        open_checkpoint(sharded)


def test_a_file_instead_of_a_folder_is_refused(folder: Path) -> None:
    with pytest.raises(CheckpointError, match="is a file; give the folder"):
        open_checkpoint(folder / FILE)
