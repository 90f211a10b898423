"""Whether a window can be shown is known before Qt is loaded."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from ignis_desktop.cli import display
from ignis_desktop.system_libraries import Package

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Windows always has a display")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """No display, all libraries there."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(display, "missing_libraries", lambda **_: {})


def test_no_display() -> None:
    assert "There is no display" in (display.missing_display() or "")


@pytest.mark.parametrize("name", [":987", "unix:987.0", "nonsense", "127.0.0.1:59000"])
def test_display_that_nobody_serves(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Left over from a session that ended: Qt would abort the process."""
    monkeypatch.setenv("DISPLAY", name)
    assert display.missing_display() is not None


def test_x11_over_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("DISPLAY", f"127.0.0.1:{server.getsockname()[1] - 6000}.0")
        assert display.missing_display() is None


def test_wayland(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    assert display.missing_display() is not None
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "wayland-0"))
        server.listen()
        assert display.missing_display() is None


def test_offscreen_needs_no_display(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    assert display.missing_display() is None


def test_missing_library_is_named_with_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    monkeypatch.setattr(display, "missing_libraries", lambda **_: {"libEGL.so.1": Package("libegl1", "egl", "egl")})
    sentence = display.missing_display() or ""
    assert "libEGL.so.1" in sentence
    assert "libegl1" in sentence or "egl" in sentence
