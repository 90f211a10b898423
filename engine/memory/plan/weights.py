"""Bytes of a model's weights: unpacked on the host, or as a card holds them, in one block (``engine.memory.arena``).

A card's figures are sums over the very tensors that its readers make (``engine.model.fused_weights`` and ``weights``),
so that the block is full when they are done; the tests hold them against each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Protocol

from engine.checkpoint.layout import HEAD, TEXT_PREFIX, Shape, expected_tensors, matrix_names
from engine.config import ModelConfig
from engine.memory.segments import aligned, whole

_FOUR_BITS = frozenset({"nvfp4", "fragments"})
_POSITIONS = "model.visual.pos_embed.weight"
_FP8_BLOCK = 128
"""Side of FP8 blocks that share a scale."""


class Formats(Protocol):
    """Which format a weight is stored in (``engine.checkpoint.reader.Checkpoint``)."""

    def format_of(self, name: str) -> str: ...


@dataclass(frozen=True)
class Weights:
    bytes: int
    parameters: int
    why: str


@dataclass(frozen=True)
class _Held:
    """Weights that a card keeps together."""

    kind: str
    """What they are counted as; "" for some that are too few to be told."""
    count: int
    tensors: tuple[int, ...]
    """Bytes of the tensors that hold them."""


@lru_cache(maxsize=16)
def _tensors(model: ModelConfig) -> Mapping[str, Shape]:
    return expected_tensors(model)


@lru_cache(maxsize=16)
def count_parameters(model: ModelConfig) -> int:
    return sum(prod(shape) for shape in _tensors(model).values())


def unpacked(model: ModelConfig, itemsize: int, name: str) -> Weights:
    """On the host: everything in the compute type ``name`` of ``itemsize`` bytes, whatever the files hold."""
    parameters = count_parameters(model)
    return Weights(parameters * itemsize, parameters, f"{parameters:,} parameters in {name}")


def on_card(model: ModelConfig, checkpoint: Formats) -> Weights:
    """What the fused decoder and the vision tower hold of a checkpoint: NVFP4 matrices of the text as they are stored,
    padded to fragments of 64 rows and 512 columns, FP8 ones where they stand alone, norms and gates in float32,
    everything else in BF16."""
    return _one_block(model, _fused(model, checkpoint), "in the card's order")


def plain_on_card(model: ModelConfig, itemsize: int, name: str) -> Weights:
    """The same of a decoder in plain torch, in the compute type ``name`` of ``itemsize`` bytes."""
    return _one_block(model, _plain(_tensors(model), itemsize, name), "unpacked")


@lru_cache(maxsize=16)
def published(model: ModelConfig) -> Weights:
    """On a card, as such a model is published for NVFP4: the text's projections in NVFP4, the output head in FP8 with a
    scale a row, the rest in BF16."""
    return on_card(model, _Published(model))


class _Published:
    def __init__(self, model: ModelConfig) -> None:
        self._packed = frozenset(name for names in matrix_names(model.text) for name in names)

    def format_of(self, name: str) -> str:
        return "nvfp4" if name in self._packed else "fp8" if name == HEAD else "bf16"


def _one_block(model: ModelConfig, held: Iterable[_Held], how: str) -> Weights:
    counts, total = dict[str, int](), 0
    for part in held:
        counts[part.kind] = counts.get(part.kind, 0) + part.count
        total += sum(map(aligned, part.tensors))
    parts = ", ".join(f"{counts[kind] / 1e9:.2f}e9 {kind}" for kind in sorted(counts, reverse=True) if kind)
    return Weights(whole(total), count_parameters(model), f"{how}, in one block: {parts}")


def _fused(model: ModelConfig, checkpoint: Formats) -> Iterator[_Held]:
    left = dict(_tensors(model))
    for names in matrix_names(model.text):
        shapes, stored = [left.pop(name) for name in names], {checkpoint.format_of(name) for name in names}
        rows, columns = sum(shape[0] for shape in shapes), shapes[0][1]
        if stored <= _FOUR_BITS:
            yield _nvfp4(rows, columns)
        elif stored == {"fp8"} and len(names) == 1:
            yield _fp8(rows, columns)
        else:
            yield _Held("BF16", rows * columns, (rows * columns * 2,))
    for layer in model.text.gdn_layers:
        gates = [left.pop(f"{TEXT_PREFIX}layers.{layer}.linear_attn.in_proj_{part}.weight") for part in "ba"]
        count = sum(map(prod, gates))
        yield _Held("BF16", count, (count * 2,))
    if HEAD in left and checkpoint.format_of(HEAD) == "fp8":
        rows, columns = left.pop(HEAD)
        yield _fp8(rows, columns)
    yield from _plain(left, 2, "BF16")


def _plain(tensors: Mapping[str, Shape], itemsize: int, kind: str) -> Iterator[_Held]:
    """One by one, in a type of ``itemsize`` bytes: vectors of the text and the vision tower's table of positions in
    float32."""
    for name, shape in tensors.items():
        count = prod(shape)
        exact = name == _POSITIONS or (name.startswith(TEXT_PREFIX) and len(shape) == 1)
        yield _Held("", count, (count * 4,)) if exact else _Held(kind, count, (count * itemsize,))


def _nvfp4(rows: int, columns: int) -> _Held:
    """Codes, an FP8 scale for 16 weights, and a float32 factor for 16 rows, padded (``kernels.fused.nvfp4_layout``)."""
    high, wide = -(-rows // 64) * 64, -(-columns // 512) * 512
    return _Held("NVFP4", rows * columns, (high * wide // 2, high * wide // 16, high // 16 * 4))


def _fp8(rows: int, columns: int) -> _Held:
    """Codes and a float32 scale for each row, or for each block where those are more."""
    blocks = -(-rows // _FP8_BLOCK) * -(-columns // _FP8_BLOCK)
    return _Held("FP8", rows * columns, (rows * columns, max(rows, blocks) * 4))
