"""Writing a checkpoint folder: any weight in BF16, F32, FP8, INT8 or either NVFP4 layout, in one file or several."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import save_file
from torch import Tensor

from engine.checkpoint.quantize import Fragments, PackedFP8, PackedInt8, PackedNVFP4
from engine.checkpoint.shards import INDEX, SINGLE

NVFP4Layout = Literal["compressed-tensors", "modelopt"]
Weight = Tensor | PackedFP8 | PackedInt8 | PackedNVFP4 | Fragments


def write_checkpoint(
    folder: Path,
    config: Mapping[str, Any],
    weights: Mapping[str, Weight] | Iterable[tuple[str, Weight]],
    *,
    layout: NVFP4Layout = "compressed-tensors",
    shard_bytes: int | None = None,
    on_shard: Callable[[int], None] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write ``config.json`` and the weights (name → tensor as it shall be stored, or packed parts).

    With ``shard_bytes``, files hold about that many bytes each and an index names them; else there is one file. Weights
    that come as an iterable are taken one at a time, and no more than a file of them is held. ``on_shard`` hears the
    bytes written so far; ``metadata`` stands in every file. Everything is written beside its place and renamed at the
    end, so that an interrupted write leaves no half checkpoint.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pairs = weights.items() if isinstance(weights, Mapping) else weights
    tensors = (pair for name, weight in pairs for pair in stored_tensors(name, weight, layout))
    parts: list[tuple[Path, list[str]]] = []
    total = 0
    try:
        for number, shard in enumerate(_split(tensors, shard_bytes), 1):
            part = folder / f"model-{number:05}.safetensors.part"
            parts.append((part, list(shard)))
            _save(part, partial(save_file, shard, metadata={"format": "pt", **(metadata or {})}))
            total += sum(tensor.nbytes for tensor in shard.values())
            if on_shard is not None:
                on_shard(total)
        places: dict[str, str] = {}
        for number, (part, names) in enumerate(parts, 1):
            file = SINGLE if len(parts) == 1 else f"model-{number:05}-of-{len(parts):05}.safetensors"
            os.replace(part, folder / file)
            places.update(dict.fromkeys(names, file))
    except BaseException:
        for part, _ in parts:
            part.unlink(missing_ok=True)
        raise
    if len(parts) > 1:
        _write_json(folder / INDEX, {"metadata": {"total_size": total}, "weight_map": places})
    _write_json(folder / "config.json", config)


def stored_tensors(name: str, weight: Weight, layout: NVFP4Layout) -> list[tuple[str, Tensor]]:
    """The tensors that stand for one weight in a file."""
    if isinstance(weight, PackedFP8) and weight.kind == "block":
        return [(name, weight.codes), (f"{name}_scale_inv", weight.scale)]
    if isinstance(weight, PackedFP8 | PackedInt8):
        scale = weight.scale.view(-1, *(1,) * (weight.codes.dim() - 1)) if weight.scale.dim() else weight.scale
        return [(name, weight.codes), (f"{name}_scale", scale)]
    if isinstance(weight, Fragments):
        tensors = [(name, weight.words), (f"{name}_scale", weight.scales), (f"{name}_scale_2", weight.scale)]
        given = weight.input_scale
        base = name.removesuffix("weight")
        return tensors if given is None else [*tensors, (f"{base}input_scale", torch.tensor(given))]
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


def _split(tensors: Iterable[tuple[str, Tensor]], limit: int | None) -> Iterator[dict[str, Tensor]]:
    shard: dict[str, Tensor] = {}
    size = 0
    for name, tensor in tensors:
        if limit is not None and shard and size + tensor.nbytes > limit:
            yield shard
            shard, size = {}, 0
        shard[name] = tensor.contiguous()
        size += tensor.nbytes
    yield shard


def _write_json(file: Path, value: Any) -> None:
    text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    part = file.with_name(file.name + ".part")
    _save(part, lambda target: target.write_text(text, encoding="utf-8"))
    os.replace(part, file)


def _save(file: Path, write: Callable[[Path], object]) -> None:
    """With the usual rights: safetensors makes files that only their owner may read."""
    file.touch()
    rights = file.stat().st_mode
    write(file)
    file.chmod(rights)
