"""Conversations in SQLite. Messages form a tree: editing or regenerating adds a branch and loses nothing.

Everything here is synchronous and belongs to one thread; the window goes through ``chat_worker``.
Times are seconds since the epoch.
"""

from __future__ import annotations

import json
import sqlite3
import time
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

Role = Literal["user", "assistant"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS conversations (
    id TEXT PRIMARY KEY, title TEXT NOT NULL, created REAL NOT NULL, updated REAL NOT NULL,
    system_prompt TEXT NOT NULL DEFAULT '', preset TEXT NOT NULL DEFAULT 'model',
    thinking INTEGER NOT NULL DEFAULT 0, head TEXT, deleted REAL
);
CREATE TABLE IF NOT EXISTS messages (
    id TEXT PRIMARY KEY, conversation TEXT NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
    parent TEXT, role TEXT NOT NULL, content TEXT NOT NULL, thinking TEXT NOT NULL DEFAULT '',
    numbers TEXT NOT NULL DEFAULT '{}', error TEXT NOT NULL DEFAULT '', created REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS messages_of ON messages(conversation);
CREATE TABLE IF NOT EXISTS images (
    message TEXT NOT NULL REFERENCES messages(id) ON DELETE CASCADE, place INTEGER NOT NULL,
    name TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (message, place)
);
"""
_VERSION = 1


@dataclass(frozen=True)
class Picture:
    """An attached picture as it was given: file name and encoded bytes."""

    name: str
    data: bytes


@dataclass(frozen=True)
class Message:
    """One message. ``numbers`` holds what the engine reported (tokens, seconds, reason); ``error`` a sentence."""

    id: str
    conversation: str
    parent: str | None
    role: Role
    content: str
    thinking: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    created: float = 0.0
    images: tuple[Picture, ...] = ()


@dataclass(frozen=True)
class Conversation:
    id: str
    title: str
    created: float
    updated: float
    system_prompt: str = ""
    preset: str = "model"
    thinking: bool = False
    head: str | None = None
    """The last message of the branch that is shown."""


def new_id() -> str:
    """A name for a conversation or a message; unique without asking the database."""
    return uuid.uuid4().hex


class ChatDatabase:
    """The file with all conversations. Raises ``sqlite3.Error`` when it cannot be opened or is not a database."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, timeout=5.0)
        try:
            self._db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;")
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            if version > _VERSION:
                raise sqlite3.DatabaseError(
                    f"{path.name} was written by a newer Ignis (format {version}); update Ignis."
                )
            self._db.executescript(_SCHEMA)
            self._db.execute(f"PRAGMA user_version={_VERSION}")
            # What was deleted in an earlier run can no longer be undone.
            with self._db:
                self._db.execute("DELETE FROM conversations WHERE deleted IS NOT NULL")
        except sqlite3.Error:
            self._db.close()
            raise

    def close(self) -> None:
        self._db.close()

    def conversations(self, search: str = "") -> list[Conversation]:
        """Newest first; with ``search``, those whose title or any message contains it (case-insensitive for ASCII)."""
        sql = (
            "SELECT id, title, created, updated, system_prompt, preset, thinking, head FROM conversations c"
            " WHERE deleted IS NULL"
        )
        values: tuple[str, ...] = ()
        if search.strip():
            pattern = "%" + escape_like(search.strip()) + "%"
            sql += (
                " AND (title LIKE ? ESCAPE '\\' OR EXISTS (SELECT 1 FROM messages m WHERE m.conversation = c.id"
                " AND m.content LIKE ? ESCAPE '\\'))"
            )
            values = (pattern, pattern)
        rows = self._db.execute(sql + " ORDER BY updated DESC", values)
        return [
            Conversation(key, title, created, updated, system_prompt, preset, bool(thinking), head)
            for key, title, created, updated, system_prompt, preset, thinking, head in rows
        ]

    def messages(self, conversation: str) -> list[Message]:
        """Every message of every branch, oldest first."""
        pictures: dict[str, list[Picture]] = {}
        for message, name, data in self._db.execute(
            "SELECT i.message, i.name, i.data FROM images i JOIN messages m ON m.id = i.message"
            " WHERE m.conversation = ? ORDER BY i.message, i.place",
            (conversation,),
        ):
            pictures.setdefault(message, []).append(Picture(name, data))
        rows = self._db.execute(
            "SELECT id, conversation, parent, role, content, thinking, numbers, error, created FROM messages"
            " WHERE conversation = ? ORDER BY created, rowid",
            (conversation,),
        )
        return [
            Message(
                key,
                home,
                parent,
                role,
                content,
                thinking,
                json.loads(numbers),
                error,
                created,
                tuple(pictures.get(key, ())),
            )
            for key, home, parent, role, content, thinking, numbers, error, created in rows
        ]

    def save_conversation(self, conversation: Conversation) -> None:
        """Adds it or replaces what is kept of it; does not touch its messages."""
        with self._db:
            self._db.execute(
                "INSERT INTO conversations (id, title, created, updated, system_prompt, preset, thinking, head)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(id) DO UPDATE SET title=excluded.title,"
                " updated=excluded.updated, system_prompt=excluded.system_prompt, preset=excluded.preset,"
                " thinking=excluded.thinking, head=excluded.head",
                (
                    conversation.id,
                    conversation.title,
                    conversation.created,
                    conversation.updated,
                    conversation.system_prompt,
                    conversation.preset,
                    int(conversation.thinking),
                    conversation.head,
                ),
            )

    def save_message(self, message: Message) -> None:
        """Adds it with its pictures, or replaces its text, numbers and error."""
        with self._db:
            self._db.execute(
                "INSERT INTO messages (id, conversation, parent, role, content, thinking, numbers, error, created)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(id) DO UPDATE SET content=excluded.content,"
                " thinking=excluded.thinking, numbers=excluded.numbers, error=excluded.error",
                (
                    message.id,
                    message.conversation,
                    message.parent,
                    message.role,
                    message.content,
                    message.thinking,
                    json.dumps(message.numbers),
                    message.error,
                    message.created,
                ),
            )
            self._db.executemany(
                "INSERT OR IGNORE INTO images (message, place, name, data) VALUES (?, ?, ?, ?)",
                [(message.id, place, picture.name, picture.data) for place, picture in enumerate(message.images)],
            )

    def set_deleted(self, conversation: str, deleted: bool) -> None:
        """Hides a conversation, or brings it back with everything in it. Hidden ones go for good at the next start."""
        with self._db:
            self._db.execute(
                "UPDATE conversations SET deleted = ? WHERE id = ?", (time.time() if deleted else None, conversation)
            )


def escape_like(text: str) -> str:
    """``text`` with LIKE's wildcards taken literally."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


class MessageTree:
    """The messages of one conversation in memory, with the branch that is shown."""

    def __init__(self, messages: list[Message], head: str | None) -> None:
        self._messages = {message.id: message for message in messages}
        self.head = head if head in self._messages else (messages[-1].id if messages else None)

    def __getitem__(self, message_id: str) -> Message:
        return self._messages[message_id]

    def __contains__(self, message_id: object) -> bool:
        return message_id in self._messages

    def __len__(self) -> int:
        return len(self._messages)

    def messages(self) -> list[Message]:
        """Every message of every branch, oldest first."""
        return list(self._messages.values())

    def add(self, message: Message) -> None:
        """Adds a message and shows its branch."""
        self._messages[message.id] = message
        self.head = message.id

    def update(self, message_id: str, **values: Any) -> Message:
        """Replaces fields of a message and returns it."""
        message = replace(self._messages[message_id], **values)
        self._messages[message_id] = message
        return message

    def branch(self, upto: str | None = None) -> list[Message]:
        """Messages from the first to ``upto`` (default: the head) along their parents."""
        path: list[Message] = []
        current = self.head if upto is None else upto
        while current is not None:
            message = self._messages[current]
            path.append(message)
            current = message.parent
        path.reverse()
        return path

    def siblings(self, message_id: str) -> list[Message]:
        """All messages with the same parent, oldest first, ``message_id`` among them."""
        parent = self._messages[message_id].parent
        return [message for message in self._messages.values() if message.parent == parent]

    def show(self, message_id: str) -> None:
        """Shows the newest branch that goes through ``message_id``."""
        current = message_id
        while children := [message for message in self._messages.values() if message.parent == current]:
            current = children[-1].id
        self.head = current
