"""What was written for the recipe by hand, a folder a kind, a file a subject: events of logs, labels of interfaces,
choices, conversations, and texts with what they mean."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

FOLDER = Path(__file__).parent
UNSEEN = 10
"""Of 256: rows that training never sees, so that it is measured on what nobody taught as well."""


def is_unseen(text: str) -> bool:
    """Whether a row is kept for measuring, by what it says: about one in 25."""
    return hashlib.sha256(text.encode()).digest()[0] < UNSEEN


@lru_cache
def subjects(kind: str) -> dict[str, tuple[str, ...]]:
    """File's name -> its lines but comments and empty ones, in the order of the names; empty where nothing was written
    of that kind."""
    found = {}
    for file in sorted((FOLDER / kind).glob("*.txt")):
        lines = file.read_text(encoding="utf-8").splitlines()
        found[file.stem] = tuple(line for line in lines if line.strip() and not line.startswith("#"))
    return found


def rows(kind: str) -> tuple[str, ...]:
    """All lines of ``subjects(kind)``. Raises ``FileNotFoundError`` where nothing was written of that kind."""
    found = subjects(kind)
    if not found:
        raise FileNotFoundError(f"{FOLDER / kind} holds no .txt files.")
    return tuple(line for lines in found.values() for line in lines)


@lru_cache
def sections(kind: str) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """(file's name, heading, lines) of what stands under every heading, a ``#`` line right above rows, in the order of
    ``rows(kind)``. A file's rows before its first heading have an empty one."""
    found: list[tuple[str, str, list[str]]] = []
    for file in sorted((FOLDER / kind).glob("*.txt")):
        heading, fresh = "", True
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("#"):
                heading, fresh = line.lstrip("#").strip(), True
            elif line.strip():
                if fresh:
                    found.append((file.stem, heading, []))
                    fresh = False
                found[-1][2].append(line)
    return tuple((name, heading, tuple(lines)) for name, heading, lines in found)
