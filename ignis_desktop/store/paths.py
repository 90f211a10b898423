"""Where this program keeps its files; ``IGNIS_DATA_DIR`` moves all of them (tests, portable installs)."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def data_path() -> Path:
    """Where conversations and settings are kept; it need not be there yet."""
    override = os.environ.get("IGNIS_DATA_DIR")
    return Path(override) if override else Path(platformdirs.user_data_dir("ignis-desktop", appauthor=False))


def data_dir() -> Path:
    """The same, made when missing."""
    path = data_path()
    path.mkdir(parents=True, exist_ok=True)
    return path


def log_file() -> Path:
    """The window's log; its directory is made when missing."""
    override = os.environ.get("IGNIS_DATA_DIR")
    path = Path(override) / "logs" if override else Path(platformdirs.user_log_dir("ignis-desktop", appauthor=False))
    path.mkdir(parents=True, exist_ok=True)
    return path / "ignis.log"


def assets_dir() -> Path:
    """The read-only files that ship with the program; ``assets`` stands beside ``ignis_desktop`` in a checkout
    and in an installation alike."""
    return Path(__file__).resolve().parents[2] / "assets"
