"""Files that clients uploaded, in SQLite. Synchronous and safe to use from any thread.

Times are seconds since the epoch.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ignis_desktop.store.database import Database

_SCHEMA = """
CREATE TABLE IF NOT EXISTS files (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, purpose TEXT NOT NULL,
    size INTEGER NOT NULL, created REAL NOT NULL, expires REAL, data BLOB NOT NULL
);
"""
_COLUMNS = "id, name, kind, purpose, size, created, expires"
_ALIVE = "(expires IS NULL OR expires >= ?)"
PREFIX = "file-"
"""Of every id: no address and no data URI begins so."""


@dataclass(frozen=True)
class StoredFile:
    """``kind``: its media type; ``size``: bytes; ``purpose``: what its client says it is for."""

    id: str
    name: str
    kind: str
    purpose: str
    size: int
    created: float
    expires: float | None = None


class StorageFull(Exception):
    """A file does not fit beside those that are kept."""


class FileDatabase:
    """Keeps up to ``limit`` bytes; nothing makes room by itself but files that have expired."""

    def __init__(self, path: Path, limit: int) -> None:
        self._db = Database(path, _SCHEMA, 1)
        self._limit = limit

    def close(self) -> None:
        self._db.close()

    def add(self, name: str, kind: str, purpose: str, data: bytes, lifetime: float | None = None) -> StoredFile:
        """``lifetime``: seconds after which it expires. Raises ``StorageFull``."""
        now = time.time()
        expires = None if lifetime is None else now + lifetime
        file = StoredFile(f"{PREFIX}{uuid.uuid4().hex[:24]}", name, kind, purpose, len(data), now, expires)
        self._db.write(("DELETE FROM files WHERE expires < ?", (now,)))
        # One statement checks and adds: two uploads at once cannot both take the last room.
        added = self._db.write(
            (
                f"INSERT INTO files ({_COLUMNS}, data) SELECT ?, ?, ?, ?, ?, ?, ?, ?"
                " WHERE (SELECT COALESCE(SUM(size), 0) FROM files) + ? <= ?",
                (file.id, name, kind, purpose, file.size, now, expires, data, file.size, self._limit),
            )
        )
        if not added:
            raise StorageFull
        return file

    def get(self, file_id: str) -> StoredFile | None:
        rows = self._db.read(f"SELECT {_COLUMNS} FROM files WHERE id = ? AND {_ALIVE}", (file_id, time.time()))
        return StoredFile(*rows[0]) if rows else None

    def data(self, file_id: str) -> bytes | None:
        rows = self._db.read(f"SELECT data FROM files WHERE id = ? AND {_ALIVE}", (file_id, time.time()))
        return rows[0][0] if rows else None

    def list(
        self,
        *,
        limit: int,
        after: str | None = None,
        order: Literal["asc", "desc"] = "desc",
        purpose: str | None = None,
    ) -> list[StoredFile]:
        """Up to ``limit`` files by when they came, beginning behind the file ``after``."""
        sql = f"SELECT {_COLUMNS} FROM files WHERE {_ALIVE}"
        parameters: list[object] = [time.time()]
        if purpose is not None:
            sql += " AND purpose = ?"
            parameters.append(purpose)
        if after is not None:
            sql += f" AND (created, id) {'<' if order == 'desc' else '>'} (SELECT created, id FROM files WHERE id = ?)"
            parameters.append(after)
        direction = order.upper()
        sql += f" ORDER BY created {direction}, id {direction} LIMIT ?"
        return [StoredFile(*row) for row in self._db.read(sql, (*parameters, limit))]

    def delete(self, file_id: str) -> bool:
        """Whether there was one."""
        return self._db.erase("DELETE FROM files WHERE id = ?", (file_id,)) > 0
