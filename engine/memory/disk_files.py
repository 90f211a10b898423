"""Kept states in files: two each, of which a crash at any moment leaves either a whole state or none.

``<key>.safetensors`` holds the tensors. ``<key>.json``, written when that is safely on the disk, says what they are and
makes them count: without it, or when anything does not fit what it says, the state does not exist.
"""

from __future__ import annotations

import json
import logging
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from hashlib import blake2b
from pathlib import Path
from typing import Any, get_args

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from engine.config import ConfigError
from engine.memory.stored import StoredState
from engine.messages import RequestClass

FORMAT = 1
_HEADER_BYTES = 4096
"""A header's size, as file systems round it up."""
_FOLDER = "ignis-states"
_OURS = re.compile(r"([0-9a-f]{32})\.(safetensors|json)(\.part)?")
_log = logging.getLogger(__name__)


class DamagedError(Exception):
    """A state's files are not what was written."""


@dataclass(frozen=True)
class Entry:
    """What a header says."""

    key: bytes
    tokens: int
    rope_delta: int
    request_class: RequestClass
    complete: bool
    """Whether the last column's residual is there."""
    data_bytes: int
    checksum: str
    """BLAKE2b of the data file, 32 bytes in hex."""

    @property
    def nbytes(self) -> int:
        """What both files take."""
        return self.data_bytes + _HEADER_BYTES


_FIELDS = tuple(field.name for field in dataclass_fields(Entry) if field.name != "key")


def private_folder(folder: Path) -> Path:
    """A folder of its own inside ``folder``, which nobody but this user may enter: what is kept is what people wrote.

    Raises:
        ConfigError: it cannot be made or written to, or belongs to somebody else.
    """
    own = folder / _FOLDER
    try:
        own.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = own.lstat()
        if hasattr(os, "geteuid") and (not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid()):
            raise ConfigError(f"{own} is not this user's own folder; remove it, or name another disk_tier.")
        own.chmod(0o700)
    except OSError as error:
        raise ConfigError(
            f"disk_tier {folder} cannot be used: {error}. Name a folder that can be written to."
        ) from None
    if not os.access(own, os.W_OK | os.X_OK):
        raise ConfigError(f"disk_tier {folder} cannot be written to; name another folder.")
    return own


def write(
    folder: Path, state: StoredState, *, identity: str, block: int, step: Callable[[str], None] = lambda _: None
) -> Entry:
    """Write a state's files, header last.

    Args:
        identity: what the numbers depend on (weights, compute type, …); a state is read under the same one only.
        step: called before each thing that changes the folder.

    Raises:
        OSError: the disk is full or gone; what was written so far is ignored from now on.
    """
    data = safetensors.torch.save({name: tensor.contiguous() for name, tensor in state.tensors.items()})
    entry = Entry(
        key=state.key,
        tokens=state.tokens,
        rope_delta=state.rope_delta,
        request_class=state.request_class,
        complete=state.last is not None,
        data_bytes=len(data),
        checksum=blake2b(data, digest_size=32).hexdigest(),
    )
    # For people who look: reading relies on the data file's own table, which the checksum covers.
    tensors = {name: [str(tensor.dtype), list(tensor.shape)] for name, tensor in state.tensors.items()}
    _put(folder, data_file(folder, state.key), data, step)
    _put(folder, header_file(folder, state.key), _header(entry, tensors, identity, block), step)
    return entry


def read(folder: Path, entry: Entry) -> StoredState:
    """A state as it was written.

    Raises:
        DamagedError: its data is not what its header says.
        OSError: it cannot be read, or is gone.
    """
    data = data_file(folder, entry.key).read_bytes()
    if blake2b(data, digest_size=32).hexdigest() != entry.checksum:
        raise DamagedError(f"{data_file(folder, entry.key)} has changed since it was written")
    try:
        tensors: dict[str, Tensor] = safetensors.torch.load(data)
        kv, conv, recurrent = tensors["kv"], tensors["conv"], tensors["recurrent"]
    except (SafetensorError, KeyError) as error:
        raise DamagedError(f"{data_file(folder, entry.key)} holds no state: {error}") from None
    return StoredState(
        entry.key, entry.tokens, entry.rope_delta, entry.request_class, kv, conv, recurrent, tensors.get("last")
    )


def scan(folder: Path, *, identity: str, block: int) -> list[Entry]:
    """The whole states of this ``identity``, least recently used first. Everything else that this program wrote here
    before is removed; files of other names are left alone."""
    entries: list[tuple[int, Entry]] = []
    for file in list(folder.iterdir()):
        match = _OURS.fullmatch(file.name)
        if match is None:
            continue
        key, kind, part = bytes.fromhex(match[1]), match[2], match[3]
        if part:
            _unlink(file)
        elif kind == "json":
            entry = _read_header(file, key, identity, block)
            if entry is None or _size(data_file(folder, key)) != entry.data_bytes:
                remove(folder, key)
            else:
                entries.append((file.stat().st_mtime_ns, entry))
        elif not header_file(folder, key).exists():
            _unlink(file)
    return [entry for _, entry in sorted(entries, key=lambda found: found[0])]


def touch(folder: Path, key: bytes) -> None:
    """Mark a state as used now."""
    try:
        os.utime(header_file(folder, key))
    except OSError as error:
        _log.debug("a state of the disk tier is gone: %s", error)


def remove(folder: Path, key: bytes) -> None:
    """Remove a state, header first: without it the rest does not count."""
    _unlink(header_file(folder, key))
    _unlink(data_file(folder, key))


def data_file(folder: Path, key: bytes) -> Path:
    return folder / f"{key.hex()}.safetensors"


def header_file(folder: Path, key: bytes) -> Path:
    return folder / f"{key.hex()}.json"


def _put(folder: Path, file: Path, content: bytes, step: Callable[[str], None]) -> None:
    """Write beside its place, wait until it is on the disk, rename, wait until that is."""
    part = file.with_name(file.name + ".part")
    step(f"create {part.name}")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb", buffering=0) as out:
        step(f"write {part.name}")
        rest = memoryview(content)
        while rest:
            rest = rest[out.write(rest) :]
        step(f"sync {part.name}")
        os.fsync(out.fileno())
    step(f"rename {part.name}")
    os.replace(part, file)
    step(f"sync folder after {file.name}")
    if hasattr(os, "O_DIRECTORY"):  # Windows syncs no folders
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _header(entry: Entry, tensors: dict[str, Any], identity: str, block: int) -> bytes:
    fields = {**vars(entry), "key": entry.key.hex(), "format": FORMAT, "identity": identity, "block": block}
    fields["tensors"] = tensors
    return json.dumps({**fields, "check": _check(fields)}, indent=1).encode()


def _check(fields: dict[str, Any]) -> str:
    """A header's own checksum: one wrong digit in it would restore a wrong state."""
    return blake2b(json.dumps(fields, sort_keys=True).encode(), digest_size=16).hexdigest()


def _read_header(file: Path, key: bytes, identity: str, block: int) -> Entry | None:
    """None for a header that is damaged, or of another model, format or block size."""
    try:
        fields = json.loads(file.read_bytes())
        check = fields.pop("check")
        if check != _check(fields):
            return None
        if (fields["format"], fields["identity"], fields["block"]) != (FORMAT, identity, block):
            return None
        entry = Entry(key=key, **{name: fields[name] for name in _FIELDS})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return entry if fields["key"] == key.hex() and entry.request_class in get_args(RequestClass) else None


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return -1


def _unlink(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        _log.warning("a file of the disk tier cannot be removed: %s", error)
