"""Whether a window can be shown, told before Qt is asked: Qt ends the process when it cannot."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

from ignis_desktop.system_libraries import install_line, missing_libraries

CONNECT_SECONDS = 3.0


def missing_display() -> str | None:
    """Why no window can be shown, as a sentence; None when one can."""
    if not sys.platform.startswith("linux"):
        return None
    platform = os.environ.get("QT_QPA_PLATFORM", "").partition(":")[0]
    if platform in ("offscreen", "minimal", "vnc", "linuxfb"):
        return _without_libraries()
    wayland, x11 = display_server()
    if not wayland and not x11:
        return "There is no display (neither DISPLAY nor WAYLAND_DISPLAY leads to one)."
    return _without_libraries(x11=not wayland, wayland=wayland)


def display_server() -> tuple[bool, bool]:
    """(Wayland answers, X11 answers)."""
    return _wayland_answers(), _x11_answers()


def _without_libraries(*, x11: bool = False, wayland: bool = False) -> str | None:
    missing = missing_libraries(x11=x11, wayland=wayland)
    if not missing:
        return None
    return f"No window can be shown without {', '.join(missing)} ({install_line(missing.values())})."


def _wayland_answers() -> bool:
    name = os.environ.get("WAYLAND_DISPLAY")
    if not name:
        return False
    return _connects(str(Path(os.environ.get("XDG_RUNTIME_DIR", "/run/user")) / name))


def _x11_answers() -> bool:
    """Whether the display that DISPLAY names ([host]:number[.screen]) takes connections."""
    host, colon, number = os.environ.get("DISPLAY", "").rpartition(":")
    number = number.partition(".")[0]
    if not colon or not number.isdigit():
        return False
    if host in ("", "unix"):
        path = f"/tmp/.X11-unix/X{number}"
        return _connects(path) or _connects(f"\0{path}")
    try:
        with socket.create_connection((host, 6000 + int(number)), timeout=CONNECT_SECONDS):
            return True
    except OSError:
        return False


def _connects(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(CONNECT_SECONDS)
        try:
            client.connect(path)
        except OSError:
            return False
    return True
