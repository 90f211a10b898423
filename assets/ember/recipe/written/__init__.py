"""What was written for the recipe by hand, a folder a kind, a file a subject: events of logs, labels of interfaces,
choices, conversations, and texts with what they mean."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

FOLDER = Path(__file__).parent


@lru_cache
def rows(kind: str) -> tuple[str, ...]:
    """All lines of ``written/<kind>/*.txt`` but comments and empty ones, file by file in the order of their names.

    Raises ``FileNotFoundError`` where nothing was written of that kind.
    """
    files = sorted((FOLDER / kind).glob("*.txt"))
    if not files:
        raise FileNotFoundError(f"{FOLDER / kind} holds no .txt files.")
    lines = (line for file in files for line in file.read_text(encoding="utf-8").splitlines())
    return tuple(line for line in lines if line.strip() and not line.startswith("#"))
