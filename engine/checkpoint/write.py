"""Writing a checkpoint folder: any weight in BF16, F32, FP8, INT8 or either NVFP4 layout, in one file or several."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import save_file
from torch import Tensor

from engine.checkpoint.quantize import PackedFP8, PackedInt8, PackedNVFP4
from engine.checkpoint.shards import INDEX, SINGLE

NVFP4Layout = Literal["compressed-tensors", "modelopt"]
Weight = Tensor | PackedFP8 | PackedInt8 | PackedNVFP4


def write_checkpoint(
    folder: Path,
    config: Mapping[str, Any],
    weights: Mapping[str, Weight],
    *,
    layout: NVFP4Layout = "compressed-tensors",
    shard_bytes: int | None = None,
) -> None:
    """Write ``config.json`` and the weights (name → tensor as it shall be stored, or packed parts).

    With ``shard_bytes``, files hold about that many bytes each and an index names them; else there is one file.
    Every file is written beside its place and then renamed, so that an interrupted write leaves no half file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tensors = [pair for name, weight in weights.items() for pair in stored_tensors(name, weight, layout)]
    shards = _split(tensors, shard_bytes)
    places: dict[str, str] = {}
    for number, shard in enumerate(shards, 1):
        file = SINGLE if len(shards) == 1 else f"model-{number:05}-of-{len(shards):05}.safetensors"
        _replace(folder / file, partial(save_file, shard, metadata={"format": "pt"}))
        places.update(dict.fromkeys(shard, file))
    if len(shards) > 1:
        total = sum(tensor.nbytes for _, tensor in tensors)
        _write_json(folder / INDEX, {"metadata": {"total_size": total}, "weight_map": places})
    _write_json(folder / "config.json", config)


def stored_tensors(name: str, weight: Weight, layout: NVFP4Layout) -> list[tuple[str, Tensor]]:
    """The tensors that stand for one weight in a file."""
    if isinstance(weight, PackedFP8) and weight.kind == "block":
        return [(name, weight.codes), (f"{name}_scale_inv", weight.scale)]
    if isinstance(weight, PackedFP8 | PackedInt8):
        scale = weight.scale.view(-1, *(1,) * (weight.codes.dim() - 1)) if weight.scale.dim() else weight.scale
        return [(name, weight.codes), (f"{name}_scale", scale)]
    if isinstance(weight, PackedNVFP4):
        return _nvfp4_tensors(name, weight, layout)
    return [(name, weight)]


def _nvfp4_tensors(name: str, weight: PackedNVFP4, layout: NVFP4Layout) -> list[tuple[str, Tensor]]:
    base, given = name.removesuffix("weight"), weight.input_scale
    if layout == "modelopt":
        tensors = [(name, weight.codes), (f"{name}_scale", weight.block_scale), (f"{name}_scale_2", weight.scale)]
        return tensors if given is None else [*tensors, (f"{base}input_scale", torch.tensor(given))]
    divisor = weight.scale.reciprocal().view(1)
    tensors = [
        (f"{name}_packed", weight.codes),
        (f"{name}_scale", weight.block_scale),
        (f"{name}_global_scale", divisor),
    ]
    return tensors if given is None else [*tensors, (f"{base}input_global_scale", torch.tensor([1.0 / given]))]


def _split(tensors: Iterable[tuple[str, Tensor]], limit: int | None) -> list[dict[str, Tensor]]:
    shards: list[dict[str, Tensor]] = [{}]
    size = 0
    for name, tensor in tensors:
        if limit is not None and shards[-1] and size + tensor.nbytes > limit:
            shards.append({})
            size = 0
        shards[-1][name] = tensor.contiguous()
        size += tensor.nbytes
    return shards


def _write_json(file: Path, value: Any) -> None:
    text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    _replace(file, lambda part: part.write_text(text, encoding="utf-8"))


def _replace(file: Path, write: Callable[[Path], object]) -> None:
    part = file.with_name(file.name + ".part")
    part.touch()  # with the usual rights: safetensors makes files that only their owner may read
    rights = part.stat().st_mode
    write(part)
    part.chmod(rights)
    os.replace(part, file)
