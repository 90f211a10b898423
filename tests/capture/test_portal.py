"""The desktop portal over a real message bus; the portal itself is played."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from ignis_desktop.capture.coordinates import CoordinateMap, Rect
from ignis_desktop.capture.grabbing import (
    CaptureError,
    Monitor,
    MonitorTarget,
    RegionTarget,
    WindowTarget,
    choose_grabber,
)
from tests.xvfb import require

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="portals are Linux's")

if sys.platform.startswith("linux"):
    from jeepney import DBusAddress, message_bus, new_method_return, new_signal
    from jeepney.io.blocking import Proxy, open_dbus_connection

    from ignis_desktop.capture import portal
    from ignis_desktop.capture.portal import PortalGrabber, coordinates_of

Answer = Callable[[], tuple[int, dict]]


@pytest.fixture
def bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a session bus of its own."""
    require("dbus-daemon")
    address = f"unix:path={tmp_path}/bus"
    command = ["dbus-daemon", "--session", "--nofork", "--nosyslog", f"--address={address}", "--print-address"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as daemon:
        assert daemon.stdout is not None
        assert daemon.stdout.readline().startswith(address)
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
        monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
        yield address
        daemon.terminate()


@pytest.fixture
def serve_portal(bus: str) -> Iterator[Callable[[Answer], None]]:
    """Plays the portal: answers one request with what a function returns."""
    threads: list[threading.Thread] = []

    def serve(answer: Answer) -> None:
        ready = threading.Event()

        def play() -> None:
            with open_dbus_connection(bus) as connection:
                Proxy(message_bus, connection).RequestName("org.freedesktop.portal.Desktop")
                ready.set()
                call = connection.receive(timeout=20)
                while call.header.fields.get(3) != "Screenshot":
                    call = connection.receive(timeout=20)
                assert call.body[1]["interactive"] == ("b", False)
                sender = call.header.fields[7].removeprefix(":").replace(".", "_")
                token = call.body[1]["handle_token"][1]
                handle = f"/org/freedesktop/portal/desktop/request/{sender}/{token}"
                connection.send(new_method_return(call, "o", (handle,)))
                request = DBusAddress(handle, interface="org.freedesktop.portal.Request")
                connection.send(new_signal(request, "Response", "ua{sv}", answer()))

        thread = threading.Thread(target=play)
        thread.start()
        threads.append(thread)
        assert ready.wait(20)

    yield serve
    for thread in threads:
        thread.join(20)


def picture(folder: Path, colour: str = "navy", size: tuple[int, int] = (400, 200)) -> Path:
    file = folder / "Bildschirmfoto 1.png"
    Image.new("RGBA", size, colour).save(file)
    return file


def test_the_picture_is_read_and_its_file_removed(serve_portal, tmp_path: Path) -> None:
    file = picture(tmp_path)
    serve_portal(lambda: (0, {"uri": ("s", file.as_uri())}))
    grabber = choose_grabber()
    assert not grabber.watchable
    assert grabber.windows() == ()
    shot = grabber.grab(MonitorTarget(1))
    assert (shot.image.size, shot.image.mode) == ((400, 200), "RGB")
    assert shot.coordinates == CoordinateMap.identity(400, 200)
    assert not file.exists()


def test_one_monitor_of_two_at_150_percent(serve_portal, tmp_path: Path) -> None:
    layout = (Monitor(1, "eDP-1", Rect(0, 0, 200, 100), True), Monitor(2, "DP-1", Rect(-200, 0, 200, 100)))
    file = picture(tmp_path, size=(600, 150))
    serve_portal(lambda: (0, {"uri": ("s", file.as_uri())}))
    shot = choose_grabber(layout).grab(MonitorTarget(2))
    assert shot.image.size == (300, 150)
    assert shot.coordinates.to_desktop(150, 75) == pytest.approx((-100, 50))


def test_a_region_across_monitors(serve_portal, tmp_path: Path) -> None:
    layout = (Monitor(1, "", Rect(0, 0, 200, 100), True), Monitor(2, "", Rect(200, 0, 200, 100)))
    file = picture(tmp_path, size=(800, 200))
    serve_portal(lambda: (0, {"uri": ("s", file.as_uri())}))
    shot = choose_grabber(layout).grab(RegionTarget(Rect(150, 10, 100, 50)))
    assert shot.image.size == (200, 100)
    assert shot.coordinates.desktop_pixel(199, 99) == (249, 59)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((1, {}), "the capture was declined"),
        ((2, {}), "the desktop portal refused"),
        ((0, {}), "left no picture"),
        ((0, {"uri": ("s", "https://example.org/a.png")}), "left no picture"),
        ((0, {"uri": ("s", "file:///nowhere/at/all.png")}), "cannot be read"),
    ],
)
def test_what_a_portal_may_refuse(serve_portal, answer: tuple[int, dict], words: str) -> None:
    serve_portal(lambda: answer)
    with pytest.raises(CaptureError, match=words):
        choose_grabber().grab(MonitorTarget(1))


def test_a_black_picture_is_refused(serve_portal, tmp_path: Path) -> None:
    file = picture(tmp_path, "black")
    serve_portal(lambda: (0, {"uri": ("s", file.as_uri())}))
    with pytest.raises(CaptureError, match="all black"):
        choose_grabber().grab(MonitorTarget(0))
    assert not file.exists()


def test_a_portal_that_never_answers(serve_portal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portal, "ANSWER_SECONDS", 0.3)
    ended = threading.Event()
    serve_portal(lambda: (ended.wait(20), (2, {}))[1])
    with pytest.raises(CaptureError, match="did not answer"):
        choose_grabber().grab(MonitorTarget(1))
    ended.set()


def test_nobody_waits_any_more(serve_portal) -> None:
    ended = threading.Event()
    serve_portal(lambda: (ended.wait(20), (2, {}))[1])
    began = time.monotonic()
    with pytest.raises(CaptureError, match="given up") as caught:
        choose_grabber(cancelled=lambda: True).grab(MonitorTarget(1))
    assert time.monotonic() - began < 10
    assert caught.value.code == "cancelled"
    ended.set()


def test_no_portal(bus: str) -> None:
    with pytest.raises(CaptureError, match="no portal for screenshots"):
        PortalGrabber().grab(MonitorTarget(1))


def test_no_bus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", f"unix:path={tmp_path}/none")
    with pytest.raises(CaptureError, match="session bus cannot be reached"):
        PortalGrabber().grab(MonitorTarget(1))


def test_what_wayland_does_not_allow() -> None:
    with pytest.raises(CaptureError, match="single window"):
        PortalGrabber().grab(WindowTarget("Firefox"))
    with pytest.raises(CaptureError, match="no monitor 2"):
        PortalGrabber().grab(MonitorTarget(2))


SCALES = (1.0, 1.25, 1.5, 1.75, 2.0)


@given(st.sampled_from(SCALES), st.integers(-2000, 2000), st.integers(200, 2000), st.integers(-500, 500), st.data())
def test_mixed_scales_and_negative_origins(scale: float, x: int, width: int, y: int, data: st.DataObject) -> None:
    """The picture has the largest scale; a monitor with a smaller one is drawn enlarged."""
    layout = (Monitor(1, "", Rect(x, y, 1920, 1080), True), Monitor(2, "", Rect(x + 1920, y - 100, width, 800)))
    size = round((1920 + width) * scale), round(1180 * scale)
    coordinates = coordinates_of(size, layout)
    at = data.draw(st.sampled_from(layout)).area
    centre = at.x + at.width / 2, at.y + at.height / 2
    assert coordinates.to_desktop(*coordinates.from_desktop(*centre)) == pytest.approx(centre, abs=1e-6)
    assert coordinates.from_desktop(*centre)[0] == pytest.approx((centre[0] - x) * scale, abs=1)


def test_a_picture_of_another_shape_has_its_own_pixels() -> None:
    layout = (Monitor(1, "", Rect(0, 0, 200, 100), True),)
    assert coordinates_of((300, 300), layout) == CoordinateMap.identity(300, 300)
