"""A checkpoint on disk: everything is checked when it is opened, data is read when it is asked for."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.checkpoint.errors import CheckpointError
from engine.checkpoint.formats import Entry, Format, Table, find_entry
from engine.checkpoint.json_file import read_json
from engine.checkpoint.layout import TEXT_PREFIX, expected_tensors, is_ignored
from engine.checkpoint.quantize import Fragments, Packed
from engine.checkpoint.shards import Shard, open_shards
from engine.config import ConfigError, ModelConfig

Progress = Callable[[int, int, str], None]
"""Called with (bytes read, bytes in all, name of the tensor just read)."""

_SAMPLE = 4096
HASH = "ignis_content_hash"
"""In the metadata of a converted checkpoint's files: the identity of the weights it was made of."""


class Checkpoint:
    """A checked checkpoint; get one from :func:`open_checkpoint`.

    Names are Hugging Face's for the multimodal model (``model.language_model.…``) whatever the files use; every weight
    reads the same whatever its format.
    """

    def __init__(self, path: Path, config: dict[str, Any], entries: Mapping[str, Entry], shards: list[Shard]) -> None:
        self.path = path
        self.config = config
        self.on_progress: Progress | None = None
        self._entries = entries
        self._shards = shards
        self._read: set[str] = set()
        self._bytes_read = 0

    @cached_property
    def nbytes(self) -> int:
        """Bytes of all tensors that the model needs, as stored."""
        return sum(entry.nbytes for entry in self._entries.values())

    def names(self) -> list[str]:
        return list(self._entries)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._entries[name].shape

    def format_of(self, name: str) -> Format:
        return self._entries[name].format

    def formats(self) -> dict[str, int]:
        """Format → number of weights stored in it, most frequent first."""
        return dict(Counter(entry.format for entry in self._entries.values()).most_common())

    def tensor(self, name: str, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu") -> Tensor:
        """One weight, dequantised, as a new tensor. Unpacking takes a few rows at a time, so that beside the result
        only some tens of MB are held."""
        out = torch.empty(self._entries[name].shape, dtype=dtype, device=device)
        self.copy_into(name, out)
        return out

    def fragments(self, name: str) -> Fragments:
        """A matrix of a converted checkpoint as the card's kernels read it, on the CPU; of any other ``ValueError``."""
        fragments = self._entries[name].fragments()
        self._note(self._entries[name])
        return fragments

    def copy_into(self, name: str, out: Tensor) -> None:
        """One weight, dequantised, into an existing tensor (or view) of its shape, on any device."""
        entry = self._entries[name]
        if out.shape != entry.shape:
            raise ValueError(f"{name} has the shape {list(entry.shape)}, not {list(out.shape)}")
        entry.copy_into(out)
        self._note(entry)

    def packed(self, name: str) -> Packed:
        """The quantised parts of an FP8 or NVFP4 weight, on the CPU. ``ValueError`` for any other format."""
        packed = self._entries[name].packed()
        self._note(self._entries[name])
        return packed

    def content_hash(self) -> str:
        """Identity of the weights: SHA-256 over name, format, dtype and shape of every needed tensor and 4 KiB from its
        beginning, middle and end. It does not depend on how the tensors are spread over files, and reads a few MB only;
        two checkpoints that differ in a few unsampled values alone would share it. A converted checkpoint has its
        source's."""
        for shard in self._shards:
            if HASH in shard.metadata:
                return shard.metadata[HASH]
        digest = hashlib.sha256()
        for name in sorted(self._entries):
            entry = self._entries[name]
            for part in sorted(entry.parts):
                shard, stored = entry.parts[part]
                digest.update(f"{name}\0{entry.format}\0{part}\0{stored.dtype}\0{list(stored.shape)}\0".encode())
                last = max(stored.nbytes - _SAMPLE, 0)
                for start in sorted({0, last // 2, last}):
                    digest.update(shard.sample(stored, start, _SAMPLE))
        return digest.hexdigest()

    def close(self) -> None:
        for shard in self._shards:
            shard.close()

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _note(self, entry: Entry) -> None:
        if entry.name not in self._read:
            self._read.add(entry.name)
            self._bytes_read += entry.nbytes
        if self.on_progress is not None:
            self.on_progress(self._bytes_read, self.nbytes, entry.name)


def open_checkpoint(path: Path) -> Checkpoint:
    """Open a checkpoint folder: config.json and one or several safetensors files.

    Checks headers, offsets, file sizes, the index, and name, dtype and shape of every tensor before any data is read.
    Raises ``CheckpointError`` with one sentence naming the file and tensor.
    """
    path = Path(path)
    if not path.is_dir():
        what = "is a file" if path.exists() else "does not exist"
        raise CheckpointError(f"{path} {what}; give the folder that holds config.json and the *.safetensors files.")
    raw = read_json(path / "config.json")
    try:
        config = ModelConfig.from_dict(raw)
    except ConfigError as error:
        raise CheckpointError(f"{path / 'config.json'}: {error.message.removeprefix('config.json: ')}") from None
    shards, table = open_shards(path)
    entries = _find_entries(config, table)
    return Checkpoint(path, raw, entries, shards)


def _find_entries(config: ModelConfig, table: Table) -> dict[str, Entry]:
    """Checks the files against the model: nothing missing, nothing of another shape, nothing unknown left over."""
    text_only = not any(name.startswith(TEXT_PREFIX) for name in table)
    entries: dict[str, Entry] = {}
    for name, shape in expected_tensors(config).items():
        stored_name = name.replace(TEXT_PREFIX, "model.", 1) if text_only else name
        entries[name] = find_entry(name, shape, table, stored_name)
    used = {stored.name for entry in entries.values() for _, stored in entry.parts.values()}
    for name, (_, stored) in table.items():
        if name not in used and not is_ignored(name, config):
            raise CheckpointError(
                f"{stored.file}: {name} is no tensor of this model; config.json and the files do not belong together."
            )
    return entries
