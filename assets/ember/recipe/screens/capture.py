"""Real desktop programs on a virtual screen: a screenshot and what the accessibility bus says is where.

`Session` starts Xvfb, a private message bus, the accessibility bus and a window manager with its own settings (GTK
theme, icon theme, HiDPI factor); `Session.shoot` returns the picture and the elements. Needs Debian's packages xvfb,
dbus-x11, at-spi2-core, python3-pyatspi, xfwm4, x11-xserver-utils, xdotool and imagemagick.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

_DUMP = Path(__file__).with_name("atspi_dump.py")


def _property(name: str, value: str) -> str:
    return f'<property name="{name}" type="string" value="{value}"/>'


class Session:
    """A screen of `width` × `height` pixels with one theme. Use as a context manager."""

    def __init__(
        self,
        width: int,
        height: int,
        theme: str = "Adwaita",
        icons: str = "elementary-xfce",
        dark: bool = False,
        scale: int = 1,
        manager: str = "xfwm4",
        decoration: str = "Default",
        font: str = "DejaVu Sans 10",
        user: str | None = None,
    ) -> None:
        self.width, self.height, self.scale, self.manager = width, height, scale, manager
        self.home = Path(tempfile.mkdtemp(prefix="screen-"))
        self.display = f":{next(n for n in range(70, 200) if not Path(f'/tmp/.X{n}-lock').exists())}"
        gtk3 = self.home / ".config/gtk-3.0"
        gtk3.mkdir(parents=True)
        settings = {
            "theme-name": theme,
            "icon-theme-name": icons,
            "font-name": font,
            "application-prefer-dark-theme": int(dark),
        }
        (gtk3 / "settings.ini").write_text("[Settings]\n" + "".join(f"gtk-{k}={v}\n" for k, v in settings.items()))
        (self.home / ".gtkrc-2.0").write_text(
            "".join(f'gtk-{k}="{v}"\n' for k, v in settings.items() if isinstance(v, str))
        )
        self._xfconf("xfwm4", f'<property name="general" type="empty">{_property("theme", decoration)}</property>')
        names = _property("ThemeName", theme) + _property("IconThemeName", icons)
        self._xfconf("xsettings", f'<property name="Net" type="empty">{names}</property>')
        self.env = {
            **{k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "TZ")},
            "HOME": str(self.home),
            "SHELL": "/bin/sh",  # the account's own may be one that ends at once, and a terminal with it
            "DISPLAY": self.display,
            "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(self.home),
            "GTK_MODULES": "gail:atk-bridge",
            "QT_ACCESSIBILITY": "1",
            "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1",
            "NO_AT_BRIDGE": "0",
            "GDK_SCALE": str(scale),
            "QT_SCALE_FACTOR": str(scale),
            "QT_QPA_PLATFORMTHEME": "gtk3" if not dark else "",
            "GTK_THEME": f"{theme}:dark" if dark and theme == "Adwaita" else "",
            "XDG_CURRENT_DESKTOP": "XFCE",
            "GSETTINGS_BACKEND": "memory",
            "QT_STYLE_OVERRIDE": "Adwaita-Dark" if dark else "",
        }
        self.env = {k: v for k, v in self.env.items() if v}
        self.user = user  # programs warn when they run as root
        self.group = pwd.getpwnam(user).pw_gid if user else None
        self.running: list[subprocess.Popen[bytes]] = []

    def _xfconf(self, channel: str, properties: str) -> None:
        """Write an Xfce settings channel before anything reads it."""
        folder = self.home / ".config/xfce4/xfconf/xfce-perchannel-xml"
        folder.mkdir(parents=True, exist_ok=True)
        text = f'<?xml version="1.0"?><channel name="{channel}" version="1.0">{properties}</channel>'
        (folder / f"{channel}.xml").write_text(text)

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        """Start a program on the screen; it ends with the session."""
        process = subprocess.Popen(
            command,
            env=self.env,
            cwd=self.home,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            user=self.user,
            group=self.group,
        )
        self.running.append(process)
        return process

    def __enter__(self) -> Session:
        shutil.copy(_DUMP, self.home)  # the user may not be let into this folder
        if self.user is not None:
            for path in (self.home, *self.home.rglob("*")):
                shutil.chown(path, self.user, self.group)
        self.start(
            "Xvfb",
            self.display,
            "-screen",
            "0",
            f"{self.width}x{self.height}x24",
            "-dpi",
            str(96 * self.scale),
            "-nolisten",
            "tcp",
        )
        for _ in range(100):
            if Path(f"/tmp/.X11-unix/X{self.display[1:]}").exists():
                break
            time.sleep(0.1)
        bus = subprocess.run(
            ["dbus-daemon", "--session", "--fork", "--print-address=1", "--print-pid=1"],
            env=self.env,
            capture_output=True,
            text=True,
            user=self.user,
            group=self.group,
        ).stdout.split()
        self.env["DBUS_SESSION_BUS_ADDRESS"], self.bus = bus[0], int(bus[1])
        self.start("/usr/libexec/at-spi-bus-launcher", "--launch-immediately", "--a11y=1")
        time.sleep(0.5)
        self.start(self.manager)
        self.start("xsetroot", "-solid", "#2e5c7a")
        time.sleep(0.7)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in reversed(self.running):
            try:
                os.killpg(process.pid, signal.SIGTERM)
            except ProcessLookupError:
                continue
        time.sleep(0.3)
        for process in self.running:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            process.wait()
        try:
            os.kill(self.bus, signal.SIGTERM)
        except ProcessLookupError:
            pass

    def tool(self, *words: str) -> str:
        """An xdotool command; returns what it prints."""
        return subprocess.run(
            ["xdotool", *words], env=self.env, capture_output=True, text=True, timeout=20, user=self.user
        ).stdout

    def wait_for_window(self, name: str, seconds: float = 25) -> str | None:
        """The id of the first visible window whose title or class has `name`."""
        end = time.time() + seconds
        while time.time() < end:
            for by in ("--name", "--class"):
                found = self.tool("search", "--onlyvisible", by, name).split()
                if found:
                    return found[-1]
            time.sleep(0.3)
        return None

    def place(self, window: str, x: int, y: int, width: int, height: int) -> None:
        self.tool("windowsize", window, str(width), str(height))
        self.tool("windowmove", window, str(x), str(y))
        time.sleep(0.5)

    def keys(self, *keys: str) -> None:
        for key in keys:
            self.tool("key", key)
            time.sleep(0.25)

    def shoot(self, path: Path) -> list[dict[str, Any]]:
        """Screenshot into `path` (PNG) and the elements on the screen, inside its bounds."""
        subprocess.run(["import", "-window", "root", str(path)], env=self.env, check=True, timeout=60)
        said = subprocess.run(
            ["/usr/bin/python3", self.home / _DUMP.name],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=90,
            user=self.user,
        ).stdout
        elements = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        for element in elements:  # GTK reports logical pixels on HiDPI screens
            element["box"] = [v * self.scale for v in element["box"]]
        return [
            e
            for e in elements
            if e["box"][0] >= -2
            and e["box"][1] >= -2
            and e["box"][2] <= self.width + 2
            and e["box"][3] <= self.height + 2
        ]
