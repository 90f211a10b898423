"""Installs what pip cannot bring as root on Debian or Ubuntu; elsewhere prints the line to run.

Lacking Qt's libraries stops no installation: server and command line work without.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable

from ignis_desktop.system_libraries import FONT, Package, has_font, install_line, missing_libraries

XVFB = Package("xvfb", "xorg-x11-server-Xvfb", "xorg-server-xvfb")
XDOTOOL = Package("xdotool", "xdotool", "xdotool")
DBUS = Package("dbus-daemon", "dbus-daemon", "dbus")
_TEST_PROGRAMS = {"Xvfb": XVFB, "xdotool": XDOTOOL, "dbus-daemon": DBUS}
_APT_SECONDS = 600.0
_APT_OPTIONS = ("-q", "-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20", "-o", "DPkg::Lock::Timeout=120")


def missing(*, tests: bool = False) -> set[Package]:
    """What the window, and the tests if asked, lack."""
    lacking = set(missing_libraries().values())
    if not has_font():
        lacking.add(FONT)
    if tests and sys.platform.startswith("linux"):
        lacking |= {package for program, package in _TEST_PROGRAMS.items() if shutil.which(program) is None}
    return lacking


def provide(packages: Iterable[Package], purpose: str) -> bool:
    """Whether they are there afterwards. Where they cannot be installed from here, the line to run is printed."""
    wanted = set(packages)
    if not wanted:
        return True
    if shutil.which("apt-get") and os.geteuid() == 0:
        names = sorted(package.debian for package in wanted)
        print(f"Installing system packages for {purpose}: {' '.join(names)}", file=sys.stderr, flush=True)
        if _apt_get("update") and _apt_get("install", "-y", "--no-install-recommends", *names):
            return True
    print(f"For {purpose}: {install_line(wanted)}", file=sys.stderr, flush=True)
    return False


def _apt_get(*arguments: str) -> bool:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", *_APT_OPTIONS, *arguments]
    try:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=_APT_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
