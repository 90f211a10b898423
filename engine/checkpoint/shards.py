"""Safetensors files as bytes: headers read and checked against the file before any data is touched.

Format: 8 bytes little-endian header length N, N bytes of JSON (name → dtype, shape, data_offsets), then the data
(https://huggingface.co/docs/safetensors). Reading here, instead of through the library, gives errors that name the
tensor, and rows of a tensor without mapping it all.
"""

from __future__ import annotations

import io
import json
import math
import os
import struct
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import torch

from engine.checkpoint.errors import CheckpointError
from engine.checkpoint.json_file import read_json

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
MAX_HEADER = 100_000_000

DTYPES: dict[str, torch.dtype] = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


@dataclass(frozen=True)
class Stored:
    """One tensor of one file. ``start`` and ``end`` are byte offsets in the file."""

    name: str
    file: Path
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int

    @property
    def nbytes(self) -> int:
        return self.end - self.start


class Shard:
    """One safetensors file, opened at the first read. Threads may read at once: nothing is shared but the file, and the
    interpreter's lock is not held while the system copies."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.tensors, self.metadata = _read_header(file)
        self._handle: io.FileIO | None = None
        self._lock = threading.Lock()

    def rows(self, stored: Stored, first: int, last: int) -> torch.Tensor:
        """Rows ``[first, last)`` of the leading axis (a scalar has one row), as a tensor of its own, on the CPU."""
        count = stored.shape[0] if stored.shape else 1
        row = stored.nbytes // count if count else 0
        data = self._bytes(stored.start + first * row, stored.start + last * row)
        shape = (last - first, *stored.shape[1:]) if stored.shape else ()
        return data.view(DTYPES[stored.dtype]).view(shape)

    def sample(self, stored: Stored, start: int, size: int) -> bytes:
        """Up to ``size`` bytes at offset ``start`` of a tensor."""
        first = stored.start + start
        return self._bytes(first, min(first + size, stored.end)).numpy().tobytes()

    def close(self) -> None:
        with self._lock:
            if self._handle is not None:
                self._handle.close()
                self._handle = None

    def _bytes(self, start: int, end: int) -> torch.Tensor:
        """uint8, bytes ``[start, end)`` of the file: copied from the page cache once, without a page fault for every
        4 KiB as a mapped file has them."""
        data = torch.empty(end - start, dtype=torch.uint8)
        view: memoryview = data.numpy().data
        done = 0
        while done < len(view):
            read = self._read_at(start + done, view[done:])
            if read == 0:
                raise CheckpointError(
                    f"{self.file} ended at {start + done:,} bytes while it was read; download it again."
                )
            done += read
        return data

    def _read_at(self, position: int, into: memoryview) -> int:
        with self._lock:
            if self._handle is None:
                self._handle = self.file.open("rb", buffering=0)
            handle = self._handle
            if not hasattr(os, "preadv"):  # Windows reads at the file's position only
                handle.seek(position)
                return handle.readinto(into) or 0
        return os.preadv(handle.fileno(), [into], position)


def open_shards(folder: Path) -> tuple[list[Shard], dict[str, tuple[Shard, Stored]]]:
    """Every shard of a checkpoint folder and name → (shard, tensor). Checks headers, offsets, sizes and the index."""
    index = folder / INDEX
    if index.is_file():
        return _open_indexed(index)
    files = [folder / SINGLE] if (folder / SINGLE).is_file() else sorted(folder.glob("*.safetensors"))
    if not files:
        raise CheckpointError(f"{folder} holds no *.safetensors file; give the folder of a downloaded checkpoint.")
    shards = [Shard(file) for file in files]
    table: dict[str, tuple[Shard, Stored]] = {}
    for shard in shards:
        for name, stored in shard.tensors.items():
            if name in table:
                raise CheckpointError(
                    f"{name} is in both {table[name][1].file.name} and {shard.file.name}; remove the file that does "
                    "not belong to this checkpoint."
                )
            table[name] = (shard, stored)
    return shards, table


def _open_indexed(index: Path) -> tuple[list[Shard], dict[str, tuple[Shard, Stored]]]:
    parsed = read_json(index)
    places = parsed.get("weight_map")
    if not isinstance(places, dict) or not places or not all(isinstance(file, str) for file in places.values()):
        raise CheckpointError(f"{index} has no weight_map of tensor names to file names; download it again.")
    shards: dict[str, Shard] = {}
    for file in _in_order(places.values()):
        path = index.parent / file
        if Path(file).name != file:
            raise CheckpointError(f"{index} points outside its folder, to {file!r}; download it again.")
        if not path.is_file():
            raise CheckpointError(
                f"{index.name} lists the shard {file}, which is missing in {index.parent}; download it."
            )
        shards[file] = Shard(path)
    table: dict[str, tuple[Shard, Stored]] = {}
    for name, file in places.items():
        stored = shards[file].tensors.get(name)
        if stored is None:
            raise CheckpointError(f"{index.name} says that {name} is in {file}, but it is not; download both again.")
        table[name] = (shards[file], stored)
    return list(shards.values()), table


def _in_order(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _read_header(file: Path) -> tuple[dict[str, Stored], dict[str, str]]:
    """The tensors by name, and what the writer says of the file."""
    try:
        size = file.stat().st_size
        with file.open("rb") as handle:
            prefix = handle.read(8)
            length = struct.unpack("<Q", prefix)[0] if len(prefix) == 8 else 0
            if not 2 <= length <= MAX_HEADER:
                raise CheckpointError(f"{file} is not a safetensors file; replace it with the published one.")
            if 8 + length > size:
                raise CheckpointError(f"{file} is truncated inside its header ({size:,} bytes); download it again.")
            raw = handle.read(length)
    except OSError as error:
        raise CheckpointError(f"{file} cannot be read: {error.strerror or error}.") from None
    try:
        entries = json.loads(raw.decode("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        entries = None
    if not isinstance(entries, dict):
        raise CheckpointError(f"{file} is not a safetensors file; replace it with the published one.")
    metadata = entries.pop("__metadata__", None)
    tensors = [_entry(file, name, entry, 8 + length) for name, entry in entries.items()]
    _check_offsets(file, tensors, 8 + length, size)
    about = metadata if isinstance(metadata, dict) else {}
    return {stored.name: stored for stored in tensors}, {str(key): str(value) for key, value in about.items()}


def _entry(file: Path, name: str, entry: object, base: int) -> Stored:
    broken = f"{file}: the header entry of {name} is malformed; download it again."
    if not isinstance(entry, dict):
        raise CheckpointError(broken)
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(dtype, str) or not _naturals(shape) or not _naturals(offsets) or len(offsets) != 2:
        raise CheckpointError(broken)
    if dtype not in DTYPES:
        raise CheckpointError(f"{file}: {name} has the dtype {dtype}, which Ignis does not read.")
    stored = Stored(name, file, dtype, tuple(shape), base + offsets[0], base + offsets[1])
    wanted = math.prod(stored.shape) * DTYPES[dtype].itemsize
    if stored.nbytes != wanted:
        raise CheckpointError(
            f"{file}: {name} {list(shape)} {dtype} needs {wanted:,} bytes but its entry spans {stored.nbytes:,}; "
            "download it again."
        )
    return stored


def _naturals(values: Any) -> TypeGuard[list[int]]:
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)


def _check_offsets(file: Path, tensors: list[Stored], base: int, size: int) -> None:
    position = base
    for stored in sorted(tensors, key=lambda stored: (stored.start, stored.end)):
        if stored.start != position:
            raise CheckpointError(
                f"{file}: the data of {stored.name} does not follow its neighbour; download it again."
            )
        if stored.end > size:
            raise CheckpointError(
                f"{file} is truncated at {size:,} bytes, inside {stored.name}, which ends at {stored.end:,}; "
                "download it again."
            )
        position = stored.end
    if position != size:
        raise CheckpointError(f"{file} has {size - position:,} bytes after its last tensor; download it again.")
