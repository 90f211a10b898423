"""In which format each weight of a checkpoint is stored, judged by what its tensors are, not by what config.json says.

Tensors that stand for a weight ``X.weight``:

- bf16, f16, f32: ``X.weight``.
- fp8: ``X.weight`` F8_E4M3 with ``X.weight_scale`` (one value, one a row, or 128 × 128 blocks) or
  ``X.weight_scale_inv`` (blocks; a factor all the same).
- int8: ``X.weight`` I8 with ``X.weight_scale`` (one value or one a row).
- nvfp4 by ModelOpt: ``X.weight`` U8, ``X.weight_scale`` F8_E4M3, the factors ``X.weight_scale_2`` and
  ``X.input_scale``.
- fragments, by ``ignis models convert``: NVFP4 in the order of the card's kernels, ``X.weight`` and
  ``X.weight_scale`` I32 and the factor ``X.weight_scale_2``.
- nvfp4 by compressed-tensors: ``X.weight_packed`` U8, ``X.weight_scale`` F8_E4M3, the divisors
  ``X.weight_global_scale`` and ``X.input_global_scale``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from engine.checkpoint.errors import CheckpointError
from engine.checkpoint.quantize import (
    BLOCK,
    FP8_BLOCK,
    Fragments,
    Packed,
    PackedFP8,
    PackedInt8,
    PackedNVFP4,
    ScaleKind,
    dequantize,
)
from engine.checkpoint.shards import Shard, Stored

Format = Literal["bf16", "f16", "f32", "fp8", "int8", "nvfp4", "fragments"]
Table = Mapping[str, tuple[Shard, Stored]]

_PACKED = frozenset({"fp8", "int8", "nvfp4"})
_PLAIN: dict[str, Format] = {"BF16": "bf16", "F16": "f16", "F32": "f32"}
_EIGHT_BITS: dict[str, Format] = {"F8_E4M3": "fp8", "I8": "int8"}
_SCALES = ("F32", "BF16", "F16")
_CHUNK = 1 << 22
"""Elements unpacked at a time: bounds host memory whatever the size of a tensor."""


@dataclass(frozen=True)
class Entry:
    """One weight of the model and where its parts are. ``shape`` is that of the unquantised weight."""

    name: str
    format: Format
    shape: tuple[int, ...]
    parts: Mapping[str, tuple[Shard, Stored]]
    """"codes" and, by format, "scale", "block_scale", "global_scale", "input_scale"."""
    scale_kind: ScaleKind = "tensor"
    divisor: bool = False
    """The stored scale of the whole matrix divides (compressed-tensors)."""

    @property
    def nbytes(self) -> int:
        return sum(stored.nbytes for _, stored in self.parts.values())

    def packed(self) -> Packed:
        """The quantised parts as they are stored (scales as factors, float32), on the CPU."""
        if self.format not in _PACKED:
            raise ValueError(f"{self.name} is stored as {self.format}, not packed")
        return self._packed_rows(0, self.shape[0])

    def fragments(self) -> Fragments:
        """The parts of a matrix that stands in the order of the card's kernels, on the CPU."""
        if self.format != "fragments":
            raise ValueError(f"{self.name} is stored as {self.format}, not in fragments")
        return self._fragment_rows(0, self.shape[0])

    def copy_into(self, out: Tensor) -> None:
        """Write the dequantised weight into ``out`` (same shape, any float dtype, any device), some rows at a time."""
        if not self.shape:
            out.copy_(self._rows(0, 1))
            return
        width = math.prod(self.shape[1:])
        step = max(FP8_BLOCK, _CHUNK // max(width, 1) // FP8_BLOCK * FP8_BLOCK)
        for first in range(0, self.shape[0], step):
            last = min(first + step, self.shape[0])
            out[first:last].copy_(self._rows(first, last))

    def _rows(self, first: int, last: int) -> Tensor:
        if self.format in _PACKED:
            return dequantize(self._packed_rows(first, last))
        if self.format == "fragments":
            return dequantize_fragments(self._fragment_rows(first, last))
        return self._part("codes", first, last)

    def _fragment_rows(self, first: int, last: int) -> Fragments:
        """Rows from a multiple of 64 on."""
        tiles = first // TILE, -(-last // ROWS) * ROWS // TILE
        words, scales = (self._part(part, *tiles) for part in ("codes", "block_scale"))
        given = self._scalar("input_scale").item() if "input_scale" in self.parts else None
        return Fragments(words, scales, self._scalar("global_scale"), last - first, self.shape[1], given)

    def _packed_rows(self, first: int, last: int) -> Packed:
        codes = self._part("codes", first, last)
        if self.format in ("fp8", "int8"):
            if self.scale_kind == "row":
                scale = self._scale("scale", first, last).flatten()
            elif self.scale_kind == "block":
                scale = self._scale("scale", first // FP8_BLOCK, -(-last // FP8_BLOCK))
            else:
                scale = self._scalar("scale")
            return PackedInt8(codes, scale) if self.format == "int8" else PackedFP8(codes, scale, self.scale_kind)
        block_scale = self._part("block_scale", first, last)
        self._check_finite("block_scale", block_scale)
        scale, given = self._scalar("global_scale"), None
        if "input_scale" in self.parts:
            given = self._scalar("input_scale").item()
        if self.divisor:
            scale, given = scale.reciprocal(), given and 1.0 / given
        return PackedNVFP4(codes, block_scale, scale, given)

    def _part(self, part: str, first: int, last: int) -> Tensor:
        shard, stored = self.parts[part]
        return shard.rows(stored, first, last)

    def _scale(self, part: str, first: int, last: int) -> Tensor:
        scale = self._part(part, first, last).float()
        self._check_finite(part, scale)
        return scale

    def _scalar(self, part: str) -> Tensor:
        scale = self._scale(part, 0, 1).reshape(())
        if scale <= 0 and part != "input_scale":
            _, stored = self.parts[part]
            raise CheckpointError(f"{stored.file}: {stored.name} is {scale.item():g}, not a positive scale; {_AGAIN}")
        return scale

    def _check_finite(self, part: str, scale: Tensor) -> None:
        if not torch.isfinite(scale.float()).all():
            _, stored = self.parts[part]
            raise CheckpointError(f"{stored.file}: {stored.name} holds scales that are not finite numbers; {_AGAIN}")


TILE, ROWS, COLUMNS = 16, 64, 512
"""Rows of a fragment, and what rows and columns of a matrix in fragments are padded to."""


def dequantize_fragments(fragments: Fragments) -> Tensor:
    """[rows, columns] in float32."""
    from kernels.fused.nvfp4_layout import NVFP4Weight, dequantize  # it brings Triton

    factors = fragments.scale.float().expand(len(fragments.words)).contiguous() * 2.0**45
    words, scales = fragments.words.flatten(), fragments.scales.flatten()
    return dequantize(NVFP4Weight(words, scales, factors, fragments.rows, fragments.columns))


_AGAIN = "download it again or use another quantisation."


def find_entry(name: str, shape: tuple[int, ...], table: Table, stored_name: str | None = None) -> Entry:
    """The entry of one expected weight. Raises ``CheckpointError`` when it is missing, has another shape or a format
    Ignis does not read. ``stored_name`` is its name in the files when that differs."""
    key = stored_name or name
    packed = table.get(f"{key}_packed")
    if packed is not None:
        return _compressed_tensors(name, key, shape, table)
    if key not in table:
        where = next(iter(table.values()))[1].file.parent
        raise CheckpointError(f"{where}: {key} is missing; the checkpoint is incomplete or of another model.")
    shard, stored = table[key]
    if stored.dtype in _PLAIN:
        _check_shape(stored, shape)
        return Entry(name, _PLAIN[stored.dtype], shape, {"codes": (shard, stored)})
    if stored.dtype in _EIGHT_BITS:
        return _eight_bits(name, key, shape, table)
    if stored.dtype == "U8":
        return _modelopt(name, key, shape, table)
    if stored.dtype == "I32":
        return _fragments(name, key, shape, table)
    raise CheckpointError(
        f"{stored.file}: {key} has the dtype {stored.dtype}; Ignis reads BF16, F16, F32, FP8 (E4M3), INT8 and "
        "NVFP4 weights."
    )


def _eight_bits(name: str, key: str, shape: tuple[int, ...], table: Table) -> Entry:
    codes = table[key]
    _check_shape(codes[1], shape)
    what = _EIGHT_BITS[codes[1].dtype]
    scale = table.get(f"{key}_scale") or table.get(f"{key}_scale_inv")
    if scale is None:
        raise CheckpointError(f"{codes[1].file}: {key} is {what.upper()} but has no {key}_scale; {_AGAIN}")
    stored = scale[1]
    _check_dtype(stored, *_SCALES)
    rows = shape[0] if shape else 1
    blocks = tuple(-(-side // FP8_BLOCK) for side in shape)
    kind: ScaleKind
    if stored.shape in ((), (1,), (1, 1)):
        kind = "tensor"
    elif stored.shape in ((rows,), (rows, *(1,) * (len(shape) - 1))):
        kind = "row"
    elif what == "fp8" and len(shape) == 2 and stored.shape == blocks:
        kind = "block"
    else:
        also = f" or {list(blocks)} (128 × 128 blocks)" if what == "fp8" and len(shape) == 2 else ""
        raise CheckpointError(
            f"{stored.file}: {stored.name} has the shape {list(stored.shape)}; for a weight of {list(shape)} Ignis "
            f"reads one scale, [{rows}, 1]{also}."
        )
    return Entry(name, what, shape, {"codes": codes, "scale": scale}, kind)


def _modelopt(name: str, key: str, shape: tuple[int, ...], table: Table) -> Entry:
    entry = _nvfp4(name, key, f"{key}_scale_2", shape, table)
    base = key.removesuffix("weight")
    return _with_input_scale(entry, f"{base}input_scale", table)


def _compressed_tensors(name: str, key: str, shape: tuple[int, ...], table: Table) -> Entry:
    entry = replace(_nvfp4(name, f"{key}_packed", f"{key}_global_scale", shape, table, f"{key}_scale"), divisor=True)
    base = key.removesuffix("weight")
    return _with_input_scale(entry, f"{base}input_global_scale", table)


def _nvfp4(
    name: str, codes: str, global_scale: str, shape: tuple[int, ...], table: Table, block_scale: str | None = None
) -> Entry:
    parts = {"codes": table[codes]}
    stored = parts["codes"][1]
    if len(shape) != 2 or shape[1] % BLOCK:
        raise CheckpointError(f"{stored.file}: {codes} is NVFP4, but {name} {list(shape)} cannot be: {_AGAIN}")
    for part, key in (("block_scale", block_scale or f"{codes}_scale"), ("global_scale", global_scale)):
        if key not in table:
            raise CheckpointError(f"{stored.file}: {codes} is NVFP4 but has no {key}; {_AGAIN}")
        parts[part] = table[key]
    _check_dtype(stored, "U8")
    _check_shape(stored, (shape[0], shape[1] // 2))
    _check_dtype(parts["block_scale"][1], "F8_E4M3")
    _check_shape(parts["block_scale"][1], (shape[0], shape[1] // BLOCK))
    _check_scalar(parts["global_scale"][1])
    return Entry(name, "nvfp4", shape, parts)


def _fragments(name: str, key: str, shape: tuple[int, ...], table: Table) -> Entry:
    parts = {"codes": table[key]}
    stored = parts["codes"][1]
    if len(shape) != 2:
        raise CheckpointError(f"{stored.file}: {key} is in fragments, but {name} {list(shape)} is no matrix: {_AGAIN}")
    for part, suffix in (("block_scale", "scale"), ("global_scale", "scale_2")):
        if f"{key}_{suffix}" not in table:
            raise CheckpointError(f"{stored.file}: {key} is in fragments but has no {key}_{suffix}; convert it again.")
        parts[part] = table[f"{key}_{suffix}"]
    fragments = (-(-shape[0] // ROWS) * ROWS // TILE, -(-shape[1] // COLUMNS))
    _check_shape(stored, (*fragments, 1024))
    _check_dtype(parts["block_scale"][1], "I32")
    _check_shape(parts["block_scale"][1], (*fragments, 128))
    _check_scalar(parts["global_scale"][1])
    base = key.removesuffix("weight")
    return _with_input_scale(Entry(name, "fragments", shape, parts), f"{base}input_scale", table)


def _with_input_scale(entry: Entry, key: str, table: Table) -> Entry:
    if key not in table:
        return entry
    _check_scalar(table[key][1])
    return replace(entry, parts={**entry.parts, "input_scale": table[key]})


def _check_scalar(stored: Stored) -> None:
    _check_dtype(stored, *_SCALES)
    if stored.shape not in ((), (1,), (1, 1)):
        raise CheckpointError(
            f"{stored.file}: {stored.name} has the shape {list(stored.shape)}, not one value; {_AGAIN}"
        )


def _check_dtype(stored: Stored, *allowed: str) -> None:
    if stored.dtype not in allowed:
        raise CheckpointError(f"{stored.file}: {stored.name} has the dtype {stored.dtype}, not {' or '.join(allowed)}.")


def _check_shape(stored: Stored, shape: tuple[int, ...]) -> None:
    if stored.shape != shape:
        raise CheckpointError(
            f"{stored.file}: {stored.name} has the shape {list(stored.shape)}, but config.json asks for {list(shape)}; "
            "the files do not belong together."
        )
