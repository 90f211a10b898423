"""What pip cannot bring: Qt's shared libraries, a font, Python's venv module, Xvfb for the tests.

As root on Debian or Ubuntu they are installed; elsewhere the line to run is printed. Lacking Qt's libraries stops no
installation: server and command line work without.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

# Shared library → package, for Debian and Ubuntu, Fedora, Arch.
_QT_LIBRARIES: dict[str, tuple[str, str, str]] = {
    "libEGL.so.1": ("libegl1", "libglvnd-egl", "libglvnd"),
    "libGL.so.1": ("libgl1", "libglvnd-glx", "libglvnd"),
    "libxkbcommon.so.0": ("libxkbcommon0", "libxkbcommon", "libxkbcommon"),
    "libxkbcommon-x11.so.0": ("libxkbcommon-x11-0", "libxkbcommon-x11", "libxkbcommon-x11"),
    "libdbus-1.so.3": ("libdbus-1-3", "dbus-libs", "dbus"),
    "libfontconfig.so.1": ("libfontconfig1", "fontconfig", "fontconfig"),
    "libglib-2.0.so.0": ("libglib2.0-0", "glib2", "glib2"),
    "libX11-xcb.so.1": ("libx11-xcb1", "libX11-xcb", "libx11"),
    "libxcb-cursor.so.0": ("libxcb-cursor0", "xcb-util-cursor", "xcb-util-cursor"),
    "libxcb-icccm.so.4": ("libxcb-icccm4", "xcb-util-wm", "xcb-util-wm"),
    "libxcb-image.so.0": ("libxcb-image0", "xcb-util-image", "xcb-util-image"),
    "libxcb-keysyms.so.1": ("libxcb-keysyms1", "xcb-util-keysyms", "xcb-util-keysyms"),
    "libxcb-render-util.so.0": ("libxcb-render-util0", "xcb-util-renderutil", "xcb-util-renderutil"),
    "libxcb-shape.so.0": ("libxcb-shape0", "libxcb", "libxcb"),
}
_FONT = ("fonts-dejavu-core", "dejavu-sans-fonts", "ttf-dejavu")
_XVFB = ("xvfb", "xorg-x11-server-Xvfb", "xorg-server-xvfb")
_MANAGERS = (
    ("apt-get", "apt-get install -y --no-install-recommends"),
    ("dnf", "dnf install -y"),
    ("pacman", "pacman -S --needed"),
)
_APT_SECONDS = 600.0


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def has_font() -> bool:
    """Whether any scalable font lies where fontconfig looks."""
    home = Path.home()
    folders = ("/usr/share/fonts", "/usr/local/share/fonts", home / ".local/share/fonts", home / ".fonts")
    return any(
        name.lower().endswith((".ttf", ".otf", ".ttc"))
        for folder in folders
        for _, _, names in os.walk(folder)
        for name in names
    )


def missing(*, tests: bool = False) -> list[tuple[str, str, str]]:
    """The packages that the window (and the tests) lack, by package manager."""
    if not sys.platform.startswith("linux"):
        return []
    lacking = [packages for library, packages in _QT_LIBRARIES.items() if not _loads(library)]
    if not has_font():
        lacking.append(_FONT)
    if tests and shutil.which("Xvfb") is None:
        lacking.append(_XVFB)
    return lacking


def provide(packages: Sequence[tuple[str, str, str]], purpose: str) -> bool:
    """Install them if this is root with apt-get, else print the line to run. True when they were installed."""
    if not packages:
        return True
    column = next((i for i, (manager, _) in enumerate(_MANAGERS) if shutil.which(manager)), None)
    if column is None:
        names = " ".join(sorted({package[0] for package in packages}))
        print(f"For {purpose}, install these with your package manager (Debian's names): {names}", file=sys.stderr)
        return False
    chosen = sorted({package[column] for package in packages})
    if column == 0 and os.geteuid() == 0:
        print(f"Installing system packages for {purpose}: {' '.join(chosen)}", file=sys.stderr, flush=True)
        if _apt_install(chosen):
            return True
    elevate = "" if os.geteuid() == 0 else "sudo "
    print(f"For {purpose}, run: {elevate}{_MANAGERS[column][1]} {' '.join(chosen)}", file=sys.stderr)
    return False


def _apt_install(names: Sequence[str]) -> bool:
    options = ["-q", "-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20", "-o", "DPkg::Lock::Timeout=120"]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", *names]):
        try:
            done = subprocess.run(
                ["apt-get", *options, *command],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_APT_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        if done.returncode != 0 and command[0] == "install":
            return False
    return True
