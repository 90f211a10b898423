"""Bytes of a model's weights: as the engine unpacks them, as a checkpoint stores them, or as one would be published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Protocol

from engine.checkpoint.layout import HEAD, TEXT_PREFIX, Shape, expected_tensors
from engine.config import ModelConfig

if TYPE_CHECKING:
    from engine.checkpoint.reader import Checkpoint

NVFP4_BLOCK = 16
"""Weights that share one FP8 scale."""
_PROJECTIONS = (
    *(f"mlp.{name}_proj.weight" for name in ("gate", "up", "down")),
    *(f"self_attn.{name}_proj.weight" for name in ("q", "k", "v", "o")),
    *(f"linear_attn.{name}.weight" for name in ("in_proj_qkv", "in_proj_z", "out_proj")),
)


class Formats(Protocol):
    """Which format a weight is stored in (``engine.checkpoint.reader.Checkpoint``)."""

    def format_of(self, name: str) -> str: ...


@dataclass(frozen=True)
class Weights:
    bytes: int
    parameters: int
    why: str


@lru_cache(maxsize=16)
def _tensors(model: ModelConfig) -> Mapping[str, Shape]:
    return expected_tensors(model)


@lru_cache(maxsize=16)
def count_parameters(model: ModelConfig) -> int:
    return sum(prod(shape) for shape in _tensors(model).values())


def unpacked(model: ModelConfig, itemsize: int, name: str) -> Weights:
    """Everything in the compute type ``name`` of ``itemsize`` bytes, whatever the files hold."""
    parameters = count_parameters(model)
    return Weights(parameters * itemsize, parameters, f"{parameters:,} parameters in {name}")


def as_stored(model: ModelConfig, checkpoint: Checkpoint) -> Weights:
    """What the files of a checkpoint hold."""
    formats = ", ".join(f"{count:,} {name}" for name, count in checkpoint.formats().items())
    return Weights(checkpoint.nbytes, count_parameters(model), f"as its files store them: {formats}")


def on_card(model: ModelConfig, checkpoint: Formats) -> Weights:
    """What the fused decoder holds of a checkpoint: NVFP4 and FP8 matrices of the text as they are stored (NVFP4 padded
    to fragments of 64 rows and 512 columns), everything else in BF16."""
    total = 0
    counts = {"NVFP4": 0, "FP8": 0, "BF16": 0}
    for name, shape in _tensors(model).items():
        size, stored = prod(shape), checkpoint.format_of(name)
        if stored in ("nvfp4", "fragments") and name.endswith(_PROJECTIONS):
            rows, columns = -(-shape[0] // 64) * 64, -(-shape[1] // 512) * 512
            kind, bytes_ = "NVFP4", rows * columns * 9 // 16 + rows // 16 * 4
        elif stored == "fp8" and (name == HEAD or name.endswith(_PROJECTIONS)):
            kind, bytes_ = "FP8", size + shape[0] * 4
        else:
            kind, bytes_ = "BF16", size * 2
        total, counts[kind] = total + bytes_, counts[kind] + size
    parts = ", ".join(f"{count / 1e9:.2f}e9 {kind}" for kind, count in counts.items() if count)
    return Weights(total, count_parameters(model), f"in the card's order: {parts}")


@lru_cache(maxsize=16)
def published(model: ModelConfig) -> Weights:
    """As such a model is published for NVFP4: the text's projections in NVFP4 (half a byte, an FP8 scale for 16 weights
    and a factor each), the output head in FP8 with a float32 scale a row, the rest in BF16."""
    packed = factors = head = rows = plain = 0
    for name, shape in _tensors(model).items():
        size = prod(shape)
        if name.startswith(TEXT_PREFIX) and name.endswith(_PROJECTIONS):
            packed, factors = packed + size, factors + 1
        elif name == HEAD:
            head, rows = size, shape[0]
        else:
            plain += size
    total = packed // 2 + packed // NVFP4_BLOCK + factors * 4 + head + rows * 4 + plain * 2
    parts = [f"{packed / 1e9:.2f}e9 NVFP4 × 0.5625 B", f"head {head / 1e9:.2f}e9 FP8 × 1 B" if head else ""]
    parts.append(f"{plain / 1e9:.2f}e9 BF16 × 2 B")
    return Weights(total, count_parameters(model), " + ".join(part for part in parts if part))
