"""A small random model of the family as transformers makes it, and checkpoint folders of it."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import Qwen3_5ForConditionalGeneration

from engine.checkpoint.quantize import PackedFP8, PackedInt8, quantize_fp8, quantize_int8, quantize_nvfp4
from engine.checkpoint.write import NVFP4Layout, Weight, write_checkpoint
from tests.engine.model.oracle import hf_config, randomise

Weights = dict[str, Tensor]


def random_model(**shape: Any) -> tuple[dict[str, Any], Weights]:
    """(config.json, float32 weights under Hugging Face names) of a random model; a tied head is left out."""
    config = hf_config(**shape)
    model = Qwen3_5ForConditionalGeneration(config)
    randomise(model, seed=1)
    weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    if config.tie_word_embeddings:
        del weights["lm_head.weight"]
    return json.loads(json.dumps(config.to_dict(), default=str)), weights


def is_linear(name: str, weight: Tensor) -> bool:
    return weight.dim() == 2 and name.endswith(".weight")


def as_blocks(weight: Tensor) -> PackedFP8:
    """FP8 with 128 × 128 block scales, made the plain way."""
    rows, columns = weight.shape
    scale = torch.empty(-(-rows // 128), -(-columns // 128))
    codes = torch.empty(rows, columns, dtype=torch.float8_e4m3fn)
    for i in range(scale.shape[0]):
        for j in range(scale.shape[1]):
            block = weight[i * 128 : i * 128 + 128, j * 128 : j * 128 + 128]
            scale[i, j] = block.abs().max() / 448
            codes[i * 128 : i * 128 + 128, j * 128 : j * 128 + 128] = (block / scale[i, j]).to(torch.float8_e4m3fn)
    return PackedFP8(codes, scale, "block")


def as_tensor_scale(weight: Tensor) -> PackedFP8:
    scale = weight.abs().max() / 448
    return PackedFP8((weight / scale).to(torch.float8_e4m3fn), scale, "tensor")


STORE: dict[str, Callable[[Tensor], Weight]] = {
    "bf16": lambda weight: weight.to(torch.bfloat16),
    "f16": lambda weight: weight.to(torch.float16),
    "f32": lambda weight: weight,
    "fp8 per row": quantize_fp8,
    "fp8 per tensor": as_tensor_scale,
    "fp8 blocks": as_blocks,
    "int8 per row": quantize_int8,
    "int8 per tensor": lambda weight: PackedInt8(
        (weight / weight.abs().max() * 127).round().char(), weight.abs().max() / 127
    ),
    "nvfp4": quantize_nvfp4,
}


def packed_weights(weights: Weights, how: str) -> dict[str, Weight]:
    """Every matrix stored as ``how``; everything else in float32."""
    return {name: STORE[how](weight) if is_linear(name, weight) else weight for name, weight in weights.items()}


def write_model(
    folder: Path,
    config: dict[str, Any],
    weights: Weights,
    how: str = "f32",
    *,
    layout: NVFP4Layout = "compressed-tensors",
    shard_bytes: int | None = None,
) -> Path:
    write_checkpoint(folder, config, packed_weights(weights, how), layout=layout, shard_bytes=shard_bytes)
    return folder


def edit_header(file: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    """Change a safetensors file's header in place of the old one; the data stays as it is."""
    data = file.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    edit(header)
    raw = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(raw)) + raw + data[8 + length :])
