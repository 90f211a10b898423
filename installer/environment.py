"""The project's own virtual environment: where it lies and whether it holds what pyproject.toml asks for.

Looking is all that a second start does, so this module imports little.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path


class Environment:
    """``.venv`` in a project folder.

    A *stamp*, written last, names what was installed. A *marker*, written first and removed last, tells a
    half-made environment from a whole one and from one that somebody else made.
    """

    def __init__(self, project: Path) -> None:
        self.project = project
        self.folder = project / ".venv"
        self.lock_file = project / ".venv.lock"
        self.stamp_file = self.folder / "ignis-stamp.json"
        self.marker_file = self.folder / "ignis-installing"
        self.log_file = self.folder / "ignis-install.log"

    @property
    def python(self) -> Path:
        return self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    def key(self) -> str:
        """Changes when the installation must be renewed: other requirements, another Python, a moved project."""
        digest = hashlib.sha256((self.project / "pyproject.toml").read_bytes())
        for part in (sys.implementation.cache_tag, sys.platform, str(self.project)):
            digest.update(f"\0{part}".encode())
        return digest.hexdigest()

    def stamp(self) -> dict[str, object]:
        """What the stamp says; empty when there is none or it is damaged."""
        try:
            stamp = json.loads(self.stamp_file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return stamp if isinstance(stamp, dict) else {}

    def extras(self) -> set[str]:
        """The extras that are installed."""
        extras = self.stamp().get("extras", [])
        return {str(extra) for extra in extras} if isinstance(extras, list) else set()

    def is_current(self, extras: set[str]) -> bool:
        """Whether everything, ``extras`` included, is installed as pyproject.toml now asks for it."""
        stamp = self.stamp()
        return (
            stamp.get("key") == self.key()
            and extras <= self.extras()
            and not self.marker_file.exists()
            and self.python.exists()
        )

    def write_stamp(self, extras: set[str]) -> None:
        """Atomically: a stamp is whole or not there."""
        text = json.dumps({"key": self.key(), "python": sys.version.split()[0], "extras": sorted(extras)})
        draft = self.stamp_file.with_suffix(".draft")
        draft.write_text(text, encoding="utf-8")
        draft.replace(self.stamp_file)
