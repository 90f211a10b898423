"""The window's settings: one small JSON file, written whole and atomically."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from ignis_desktop.store.paths import data_dir

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WindowSettings:
    """What a person set. Empty engine values mean the engine's own defaults."""

    theme: str = "system"
    language: str = "system"
    model: str = ""
    """Checkpoint directory; empty is the bundled Ember."""
    threads: int | None = None
    max_context: int | None = None
    lanes: int | None = None
    kv_format: str = ""
    yarn: int | None = None
    headroom: int | None = None
    """MiB of memory left to other programs."""
    host_tier: int | None = None
    """MiB of host memory for kept state."""
    host: str = "127.0.0.1"
    port: int = 8000
    api_key: str = ""
    cors: bool = False
    capture: bool = True
    """Whether the server's clients may capture this screen."""
    serve: bool = True
    """Whether the server starts with the window."""
    geometry: str = ""
    """QMainWindow.saveGeometry, base64."""
    conversations_shown: bool = True


class SettingsFile:
    """Reads and writes ``WindowSettings``. A file that cannot be read is set aside, never silently overwritten."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or data_dir() / "settings.json"
        self.values = self._read()

    def change(self, **values: Any) -> WindowSettings:
        """Replaces some values and writes the file; raises ``TypeError`` for a name that is no setting."""
        self.values = replace(self.values, **values)
        temporary = self.path.with_suffix(".tmp")
        # The file may hold the API key: readable by its owner only.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(self.values), file, indent=1)
        temporary.replace(self.path)
        return self.values

    def _read(self) -> WindowSettings:
        try:
            raw = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return WindowSettings()
        except (OSError, ValueError) as error:
            aside = self.path.with_suffix(".unreadable.json")
            log.warning("%s cannot be read (%s); it was set aside as %s", self.path, error, aside.name)
            if self.path.exists():
                self.path.replace(aside)
            return WindowSettings()
        known = {}
        defaults = WindowSettings()
        for field in fields(WindowSettings):
            value = raw.get(field.name) if isinstance(raw, dict) else None
            if value is not None and _fits(value, getattr(defaults, field.name)):
                known[field.name] = value
        return WindowSettings(**known)


def _fits(value: object, default: object) -> bool:
    """Whether a value from the file has the type of its setting; optional settings are whole numbers."""
    return type(value) is (int if default is None else type(default))
