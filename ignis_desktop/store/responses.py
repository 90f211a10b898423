"""Responses that clients may come back to, in SQLite. Synchronous and safe to use from any thread.

A response goes on from the one before it; a conversation is the chain of them. Times are seconds since the epoch.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ignis_desktop.store.database import Database

_SCHEMA = """
CREATE TABLE IF NOT EXISTS responses (
    id TEXT PRIMARY KEY, previous TEXT, created REAL NOT NULL, input TEXT NOT NULL, body TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS responses_by_age ON responses(created);
"""
LIFETIME = 30 * 24 * 3600.0
"""Seconds that a response is kept."""
MOST = 10_000
"""Responses that are kept; the oldest go first."""
LONGEST_CHAIN = 2_000
"""Turns of one conversation: a chain that is longer, or bites its own tail, is not followed to its end."""


@dataclass(frozen=True)
class StoredResponse:
    """``input``: items that were new in its request, as sent, each with an id; ``body``: the response as answered."""

    id: str
    previous: str | None
    input: list[dict[str, Any]]
    body: dict[str, Any]


class ResponseDatabase:
    def __init__(self, path: Path) -> None:
        self._db = Database(path, _SCHEMA, 1)

    def close(self) -> None:
        self._db.close()

    def save(self, response: StoredResponse) -> None:
        """Adds it or replaces it; drops what is too old or too many."""
        now = time.time()
        self._db.write(
            (
                "INSERT OR REPLACE INTO responses (id, previous, created, input, body) VALUES (?, ?, ?, ?, ?)",
                (response.id, response.previous, now, _text(response.input), _text(response.body)),
            ),
            (
                "DELETE FROM responses WHERE created < ? OR id IN"
                " (SELECT id FROM responses ORDER BY created DESC, rowid DESC LIMIT -1 OFFSET ?)",
                (now - LIFETIME, MOST),
            ),
        )

    def get(self, response_id: str) -> StoredResponse | None:
        rows = self._db.read(
            "SELECT id, previous, input, body FROM responses WHERE id = ? AND created >= ?",
            (response_id, time.time() - LIFETIME),
        )
        return _stored(rows[0]) if rows else None

    def chain(self, response_id: str) -> list[StoredResponse] | None:
        """A response and all that it goes on from, the first turn first; None when one of them is gone."""
        found: list[StoredResponse] = []
        wanted: str | None = response_id
        while wanted is not None:
            response = self.get(wanted)
            if response is None or len(found) == LONGEST_CHAIN:
                return None
            found.append(response)
            wanted = response.previous
        return found[::-1]

    def delete(self, response_id: str) -> bool:
        """Whether there was one."""
        return self._db.erase("DELETE FROM responses WHERE id = ?", (response_id,)) > 0


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _stored(row: tuple[Any, ...]) -> StoredResponse:
    response_id, previous, items, body = row
    return StoredResponse(response_id, previous, json.loads(items), json.loads(body))
