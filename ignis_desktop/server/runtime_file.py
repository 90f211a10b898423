"""How local commands find a running server: one small file an instance, readable by its owner only.

The file names the address, the process and a token; the server accepts the token as a key. Files left behind by
a process that is gone are ignored, also when its process number was given to another process since.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from ignis_desktop.store.paths import data_dir


@dataclass(frozen=True)
class Instance:
    """A running server. ``started`` is its process's start time, seconds since 1970."""

    url: str
    pid: int
    token: str
    started: float

    @classmethod
    def of_this_process(cls, url: str, token: str) -> Instance:
        return cls(url, os.getpid(), token, psutil.Process().create_time())

    @property
    def alive(self) -> bool:
        try:
            process = psutil.Process(self.pid)
            return process.is_running() and abs(process.create_time() - self.started) < 1.0
        except psutil.Error:
            return False


def runtime_directory() -> Path:
    """Under the user's data, not in a runtime directory: sessions over ssh or from cron may have none."""
    return data_dir() / "run"


def write(instance: Instance, directory: Path | None = None) -> Path:
    """Publish an instance; returns the file. The content never lies readable to others, not even for a moment."""
    directory = directory or runtime_directory()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    _sweep(directory)
    path = directory / f"server-{instance.pid}.json"
    handle, temporary = tempfile.mkstemp(dir=directory, prefix=".server-")  # 0600 by definition
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(asdict(instance), file)
    os.replace(temporary, path)
    return path


def read(directory: Path | None = None) -> Instance | None:
    """The instance that was started last and is still alive, or None."""
    try:
        directory = directory or runtime_directory()
    except OSError:  # a home that cannot be written: no server can have published there
        return None
    alive = [found for path in _files(directory) if (found := _load(path)) and found.alive]
    return max(alive, key=lambda instance: instance.started, default=None)


def remove(instance: Instance, directory: Path | None = None) -> None:
    """Take back what ``write`` published, unless another server of this process has published since."""
    path = (directory or runtime_directory()) / f"server-{instance.pid}.json"
    if _load(path) == instance:
        path.unlink(missing_ok=True)


def _files(directory: Path) -> list[Path]:
    try:
        return sorted(directory.glob("server-*.json"))
    except OSError:
        return []


def _load(path: Path) -> Instance | None:
    """What a file says, or None when it is unreadable, malformed or another user's."""
    try:
        if hasattr(os, "getuid") and path.stat().st_uid != os.getuid():
            return None
        raw = json.loads(path.read_text(encoding="utf-8"))
        return Instance(str(raw["url"]), int(raw["pid"]), str(raw["token"]), float(raw["started"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _sweep(directory: Path) -> None:
    """Delete what dead processes left behind."""
    for path in _files(directory):
        instance = _load(path)
        if instance is not None and not instance.alive:
            with contextlib.suppress(OSError):
                path.unlink()
