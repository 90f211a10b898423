"""A display of its own for tests that need a real one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


def require(*programs: str) -> None:
    """Skips the test when a program it stands on is not installed."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (installer/test.py installs them as root)")


@contextmanager
def display(width: int = 1280, height: int = 800) -> Iterator[str]:
    """An X server without a screen to look at; yields its DISPLAY."""
    require("Xvfb")
    reading, writing = os.pipe()
    command = [
        "Xvfb",
        "-displayfd",
        str(writing),
        "-screen",
        "0",
        f"{width}x{height}x24",
        "-nolisten",
        "tcp",
        "-noreset",
    ]
    server = subprocess.Popen(command, pass_fds=(writing,), stderr=subprocess.DEVNULL)
    os.close(writing)
    try:
        with os.fdopen(reading) as answer:
            number = answer.readline().strip()
        assert number, "Xvfb ended before it served"
        yield f":{number}"
    finally:
        server.terminate()
        server.wait(10)


def environment(display: str) -> dict[str, str]:
    """For programs that shall show themselves there and nowhere else."""
    kept = {k: v for k, v in os.environ.items() if k not in ("WAYLAND_DISPLAY", "XDG_SESSION_TYPE", "QT_SCALE_FACTOR")}
    return kept | {"DISPLAY": display, "QT_QPA_PLATFORM": "xcb", "XDG_SESSION_TYPE": "x11"}
