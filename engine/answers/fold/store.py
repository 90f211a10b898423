"""Where the bytes of a text lie: in memory, or in a file that is read piece by piece and never mapped.

A mapped log that its writer cuts short ends the process (SIGBUS); a read only comes back short.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import stat
import tempfile
import threading
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Protocol, cast

from engine.messages import EngineError, RequestError

LIMIT = (1 << 32) - 1
"""Bytes of a text, unpacked; row numbers are 32 bits wide."""
SPOOL = 32 << 20
"""Bytes of a stream or an unpacked file that are held in memory; more goes to a temporary file."""
_PIECE = 1 << 18
_ZSTD_PIECE = 1 << 10
"""Four packed bytes may stand for 128 KiB, so little is unpacked at a time."""
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"

Given = str | bytes | bytearray | memoryview | os.PathLike[str] | IO[bytes]
"""A text as callers have it. A ``str`` is the text itself, a path names a file."""


class Store(Protocol):
    """Bytes by position. Thread-safe."""

    size: int

    def read(self, start: int, stop: int) -> bytes:
        """Bytes from ``start`` to ``stop``, which lie inside.

        Raises:
            EngineError: the file became shorter or can no longer be read.
        """

    def close(self) -> None: ...


class MemoryStore:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read(self, start: int, stop: int) -> bytes:
        return self._data[start:stop]

    def close(self) -> None:
        self._data = b""


class FileStore:
    """``size`` is the file's when it was opened: what is appended later does not belong to the text."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self._name = name
        self._lock = threading.Lock()
        self.size = file.seek(0, io.SEEK_END)

    def read(self, start: int, stop: int) -> bytes:
        try:
            with self._lock:
                self._file.seek(start)
                data = self._file.read(stop - start)
                while len(data) < stop - start and (more := self._file.read(stop - start - len(data))):
                    data += more
        except (OSError, ValueError) as error:
            raise EngineError(
                f"{self._name} can no longer be read: {error}. Open it again.", code="text_gone"
            ) from None
        if len(data) < stop - start:
            raise EngineError(f"{self._name} became shorter while it was read. Open it again.", code="text_changed")
        return data

    def close(self) -> None:
        self._file.close()


def open_store(given: Given) -> Store:
    """The bytes of a text, unpacked when they are gzip or Zstandard.

    Raises:
        RequestError: no such file, broken packed data, more than ``LIMIT`` bytes.
        EngineError: no room to unpack it.
    """
    store, name = _as_given(given)
    try:
        packed = not isinstance(given, str) and store.read(0, min(4, store.size)).startswith((_GZIP, _ZSTD))
        opened = _unpacked(store, name) if packed else store
    except BaseException:
        store.close()
        raise
    if opened is not store:
        store.close()
    if opened.size > LIMIT:
        opened.close()
        raise _too_long(name)
    return opened


def _as_given(given: Given) -> tuple[Store, str]:
    if isinstance(given, str):
        return MemoryStore(given.encode("utf-8", "surrogatepass")), "The text"
    if isinstance(given, bytes | bytearray | memoryview):
        return MemoryStore(bytes(given)), "The text"
    if isinstance(given, os.PathLike):
        path = Path(given)
        try:
            mode = path.stat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
                raise RequestError(f"{path} is not a file; name a file.", code="no_file")
            # Unbuffered: a buffer would go on answering for a file that is no longer so.
            file = path.open("rb", buffering=0)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise RequestError(f"{path} cannot be opened: {reason}.", code="no_file") from None
        if stat.S_ISREG(mode):
            return FileStore(cast("IO[bytes]", file), str(path)), str(path)
        with file:
            return _spooled(cast("IO[bytes]", file), str(path)), str(path)
    return _spooled(given, "The stream"), "The stream"


def _unpacked(store: Store, name: str) -> Store:
    if store.read(0, 2) == _GZIP:
        with gzip.GzipFile(fileobj=io.BufferedReader(_Reader(store), _PIECE)) as file:
            return _spooled(cast("IO[bytes]", file), name)
    return _kept(_zstd_pieces(store), name)


def _zstd_pieces(store: Store) -> Iterator[bytes]:
    """What the frames hold. The library's own reader takes a frame that is cut off for a whole one."""
    import zstandard

    frame = zstandard.ZstdDecompressor().decompressobj()
    begun = False
    for at in range(0, store.size, _ZSTD_PIECE):
        packed = store.read(at, min(at + _ZSTD_PIECE, store.size))
        while packed:
            begun = True
            yield frame.decompress(packed)
            packed = frame.unused_data if frame.eof else b""
            if frame.eof:
                frame, begun = zstandard.ZstdDecompressor().decompressobj(), False
    if begun:
        raise EOFError("the last frame does not end")


def _spooled(stream: IO[bytes], name: str) -> FileStore:
    return _kept(iter(lambda: stream.read(_PIECE), b""), name)


def _kept(pieces: Iterable[bytes], name: str) -> FileStore:
    """All of a stream, so that any part can be read again."""
    import zstandard

    with contextlib.ExitStack() as unless_kept:
        spool = unless_kept.enter_context(tempfile.SpooledTemporaryFile(SPOOL))
        try:
            size = 0
            for piece in pieces:
                size += len(piece)
                if size > LIMIT:
                    raise _too_long(name)
                spool.write(piece)
        except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError) as error:
            raise RequestError(f"{name} is packed, and broken or cut off: {error}.", code="broken_pack") from None
        except OSError as error:
            raise EngineError(f"{name} cannot be read or kept in a temporary file: {error}.", code="no_room") from None
        unless_kept.pop_all()
    return FileStore(cast("IO[bytes]", spool), name)


def _too_long(name: str) -> RequestError:
    return RequestError(f"{name} has more than {LIMIT:,} bytes; cut it into smaller files.", code="text_too_long")


class _Reader(io.RawIOBase):
    """A store as a stream, for what unpacks streams."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        stop = min(self._at + len(view), self._store.size)
        data = self._store.read(self._at, stop)
        view[: len(data)] = data
        self._at = stop
        return len(data)
