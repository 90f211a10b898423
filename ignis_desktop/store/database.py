"""A SQLite file that several threads share: opened when it is first used, one statement at a time."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class Database:
    """One connection behind a lock. Everything raises ``sqlite3.Error`` when the file cannot be used."""

    def __init__(self, path: Path, schema: str, version: int) -> None:
        """``schema``: statements that make what is missing. ``version``: of the schema; a newer file is refused."""
        self._path, self._schema, self._version = path, schema, version
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._closed = False

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._open().execute(sql, values).fetchall()

    def write(self, *statements: tuple[str, Sequence[Any]]) -> int:
        """All statements or none; returns how many rows the last one changed."""
        with self._lock, self._open() as connection:
            changed = 0
            for sql, values in statements:
                changed = connection.execute(sql, values).rowcount
            return changed

    def erase(self, sql: str, values: Sequence[Any] = ()) -> int:
        """A DELETE after which nothing of its rows is left in the file or beside it; returns how many there were."""
        with self._lock:
            erased = self.write((sql, values))
            self._open().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            return erased

    def close(self) -> None:
        """For good. May be called again, and before anything was read."""
        with self._lock:
            self._closed = True
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._closed:
            raise sqlite3.ProgrammingError(f"{self._path.name} was closed.")
        if self._connection is None:
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                # The file holds what people asked and uploaded: readable by its owner only.
                self._path.touch(mode=0o600)
            except OSError as error:
                raise sqlite3.OperationalError(f"{self._path.name} cannot be made: {error.strerror}") from error
            connection = sqlite3.connect(self._path, timeout=5.0, check_same_thread=False)
            try:
                # secure_delete: what is deleted is overwritten.
                connection.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA secure_delete=ON;")
                found = connection.execute("PRAGMA user_version").fetchone()[0]
                if found > self._version:
                    message = f"{self._path.name} was written by a newer Ignis (format {found}); update Ignis."
                    raise sqlite3.DatabaseError(message)
                connection.executescript(self._schema)
                connection.execute(f"PRAGMA user_version={self._version}")
            except sqlite3.Error:
                connection.close()
                raise
            self._connection = connection
        return self._connection
