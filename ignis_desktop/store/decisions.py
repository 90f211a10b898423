"""Decide requests that were answered, kept over the end of the program: the newest first, few and small."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ignis_desktop.store.paths import data_dir

log = logging.getLogger(__name__)

MOST = 30
LARGEST = 1 << 20
"""Characters of a request that is kept: with pictures it may be many times that."""


@dataclass(frozen=True)
class Decided:
    """``time``: seconds since 1970; ``request``: as JSON; ``response``: what came of it."""

    time: float
    request: str
    response: dict[str, Any]


class Decisions:
    """Reads its file when it is made and writes it after each request; not thread-safe."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or data_dir() / "decisions.json"
        self.items: list[Decided] = self._read()

    def add(self, item: Decided) -> None:
        """One that is too large to be kept stays until the program ends. Raises ``OSError``."""
        self.items = [item, *(old for old in self.items if old.request != item.request)][:MOST]
        self._write()

    def clear(self) -> None:
        """Raises ``OSError``."""
        self.items = []
        self._write()

    def _write(self) -> None:
        kept = [asdict(item) for item in self.items if len(item.request) <= LARGEST]
        temporary = self._path.with_suffix(".tmp")
        temporary.write_text(json.dumps(kept, ensure_ascii=False), encoding="utf-8")
        temporary.replace(self._path)

    def _read(self) -> list[Decided]:
        try:
            raw = json.loads(self._path.read_text(encoding="utf-8"))
            return [Decided(float(item["time"]), str(item["request"]), dict(item["response"])) for item in raw]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("%s cannot be read (%s); the history starts anew", self._path, error)
            return []
