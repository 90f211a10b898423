"""One installation at a time in one folder."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from installer.faults import InstallError


def _try_lock(file: IO[str]) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def exclusive(path: Path, *, poll_seconds: float = 0.5) -> Iterator[int]:
    """Hold the lock file; wait, and say so, while another process does. Yields its descriptor.

    The system drops the lock with its last holder. A child that inherits the descriptor keeps it, so that a pip
    which outlives a killed installer still keeps others out.
    """
    try:
        file = open(path, "a+", encoding="utf-8")  # noqa: SIM115 - closed below
    except OSError as fault:
        raise InstallError(f"Cannot write to the project folder ({fault.strerror}): {path.parent}") from fault
    with file:
        if not _try_lock(file):
            print("Another installation is at work in this folder; waiting for it.", file=sys.stderr, flush=True)
            while not _try_lock(file):
                time.sleep(poll_seconds)
        if os.name != "nt":
            os.set_inheritable(file.fileno(), True)
        yield file.fileno()
