"""What Qt needs of the operating system and pip cannot bring, and the line that installs it.

Standard library only: the installer reads this before anything is installed.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Package:
    """One package under its names in Debian and Ubuntu, Fedora, Arch."""

    debian: str
    fedora: str
    arch: str


FONT = Package("fonts-dejavu-core", "dejavu-sans-fonts", "ttf-dejavu")
_QT = {
    "libEGL.so.1": Package("libegl1", "libglvnd-egl", "libglvnd"),
    "libGL.so.1": Package("libgl1", "libglvnd-glx", "libglvnd"),
    "libxkbcommon.so.0": Package("libxkbcommon0", "libxkbcommon", "libxkbcommon"),
    "libdbus-1.so.3": Package("libdbus-1-3", "dbus-libs", "dbus"),
    "libfontconfig.so.1": Package("libfontconfig1", "fontconfig", "fontconfig"),
    "libglib-2.0.so.0": Package("libglib2.0-0", "glib2", "glib2"),
    "libgssapi_krb5.so.2": Package("libgssapi-krb5-2", "krb5-libs", "krb5"),
}
_X11 = {
    "libX11-xcb.so.1": Package("libx11-xcb1", "libX11-xcb", "libx11"),
    "libxcb-cursor.so.0": Package("libxcb-cursor0", "xcb-util-cursor", "xcb-util-cursor"),
    "libxcb-icccm.so.4": Package("libxcb-icccm4", "xcb-util-wm", "xcb-util-wm"),
    "libxcb-image.so.0": Package("libxcb-image0", "xcb-util-image", "xcb-util-image"),
    "libxcb-keysyms.so.1": Package("libxcb-keysyms1", "xcb-util-keysyms", "xcb-util-keysyms"),
    "libxcb-render-util.so.0": Package("libxcb-render-util0", "xcb-util-renderutil", "xcb-util-renderutil"),
    "libxcb-shape.so.0": Package("libxcb-shape0", "libxcb", "libxcb"),
    "libxkbcommon-x11.so.0": Package("libxkbcommon-x11-0", "libxkbcommon-x11", "libxkbcommon-x11"),
}
_WAYLAND = {"libwayland-cursor.so.0": Package("libwayland-cursor0", "libwayland-cursor", "wayland")}
_LINES = {
    "debian": ("apt-get", "apt-get install -y --no-install-recommends"),
    "fedora": ("dnf", "dnf install -y"),
    "arch": ("pacman", "pacman -S --needed"),
}


def missing_libraries(*, x11: bool = True, wayland: bool = False) -> dict[str, Package]:
    """Shared library → package, for those that Qt loads and this system lacks, with the back ends' that are named."""
    if not sys.platform.startswith("linux"):
        return {}
    wanted = _QT | (_X11 if x11 else {}) | (_WAYLAND if wayland else {})
    return {library: package for library, package in wanted.items() if not _loads(library)}


def has_font() -> bool:
    """Whether any scalable font lies where fontconfig looks; without one a window shows no text."""
    if not sys.platform.startswith("linux"):
        return True
    home = Path.home()
    folders = ("/usr/share/fonts", "/usr/local/share/fonts", home / ".local/share/fonts", home / ".fonts")
    files = (name for folder in folders for _, _, names in os.walk(folder) for name in names)
    return any(name.lower().endswith((".ttf", ".otf", ".ttc")) for name in files)


def install_line(packages: Iterable[Package]) -> str:
    """The command that installs the packages here, with sudo unless this is root."""
    chosen = set(packages)
    for family, (manager, line) in _LINES.items():
        if shutil.which(manager):
            names = sorted({getattr(package, family) for package in chosen})
            elevate = "sudo " if hasattr(os, "geteuid") and os.geteuid() != 0 else ""
            return f"{elevate}{line} {' '.join(names)}"
    return f"install with your package manager (Debian's names): {' '.join(sorted({p.debian for p in chosen}))}"


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
