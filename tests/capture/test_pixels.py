"""Captures of an X11 desktop: of a real one, and of made-up monitors."""

from __future__ import annotations

from typing import Any

import mss
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mss.exception import ScreenShotError

from ignis_desktop.capture.coordinates import Rect
from ignis_desktop.capture.grabbing import (
    CaptureError,
    MonitorTarget,
    RegionTarget,
    WindowTarget,
    choose_grabber,
    target_of,
)
from ignis_desktop.capture.pixels import MssGrabber


class Desktop:
    """Stands in for mss.MSS: every pixel's red and green tell where on the desktop it is."""

    def __init__(self, monitors: list[tuple[int, int, int, int]], primary: int = 0) -> None:
        left, top = min(m[0] for m in monitors), min(m[1] for m in monitors)
        right, bottom = max(m[0] + m[2] for m in monitors), max(m[1] + m[3] for m in monitors)
        whole = {"left": left, "top": top, "width": right - left, "height": bottom - top}
        names = ("left", "top", "width", "height")
        single = [
            dict(zip(names, m, strict=True)) | {"is_primary": i == primary, "output": f"DP-{i}"}
            for i, m in enumerate(monitors)
        ]
        self.monitors = [whole, *single]
        self.fault: Exception | None = None

    def __enter__(self) -> Desktop:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def grab(self, area: dict[str, int]) -> Any:
        if self.fault is not None:
            raise self.fault
        x, y = area["left"] + np.arange(area["width"]), area["top"] + np.arange(area["height"])
        pixels = np.empty((area["height"], area["width"], 4), np.uint8)
        pixels[..., 0], pixels[..., 1] = 9, (y % 256)[:, None]
        pixels[..., 2], pixels[..., 3] = x % 256, 0

        class Raw:
            size = (area["width"], area["height"])
            bgra = pixels.tobytes()

        return Raw()


@pytest.fixture
def desktop(monkeypatch: pytest.MonkeyPatch) -> Desktop:
    """A main monitor with another one left of it and higher."""
    made = Desktop([(0, 0, 640, 480), (-320, -100, 320, 240)])
    monkeypatch.setattr(mss, "MSS", lambda: made)
    return made


def colour_at(shot, x: int, y: int) -> tuple[int, int]:
    return shot.image.getpixel((x, y))[:2]


def test_monitors_are_numbered_from_the_main_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mss, "MSS", lambda: Desktop([(-320, 0, 320, 200), (0, 0, 640, 480)], primary=1))
    monitors = MssGrabber().monitors()
    assert [(m.number, m.name, m.area.x, m.primary) for m in monitors] == [
        (1, "DP-1", 0, True),
        (2, "DP-0", -320, False),
    ]
    assert MssGrabber().grab(MonitorTarget(2)).image.size == (320, 200)


def test_a_monitor_with_a_negative_origin(desktop: Desktop) -> None:
    shot = MssGrabber().grab(MonitorTarget(2))
    assert shot.coordinates.to_desktop(0, 0) == (-320, -100)
    assert shot.coordinates.desktop_pixel(10.5, 20.5) == (-310, -80)
    assert colour_at(shot, 10, 20) == (-310 % 256, -80 % 256)


def test_all_monitors_in_one_picture(desktop: Desktop) -> None:
    shot = MssGrabber().grab(MonitorTarget(0))
    assert shot.image.size == (960, 580)
    assert [tile.desktop for tile in shot.coordinates.tiles] == [Rect(0, 0, 640, 480), Rect(-320, -100, 320, 240)]
    assert shot.coordinates.desktop_pixel(100, 300) == (-220, 139)  # below the left one nothing can be clicked


numbers = st.integers(-400, 700)


@given(numbers, numbers, st.integers(1, 300), st.integers(1, 300))
def test_every_pixel_of_a_region_knows_its_place(x: int, y: int, width: int, height: int) -> None:
    made = Desktop([(0, 0, 640, 480), (-320, -100, 320, 240)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mss, "MSS", lambda: made)
        area = Rect(x, y, width, height)
        if area.intersected(Rect(-320, -100, 960, 580)) is None:
            with pytest.raises(CaptureError, match="on a monitor"):
                MssGrabber().grab(RegionTarget(area))
            return
        shot = MssGrabber().grab(RegionTarget(area))
    for tile in shot.coordinates.tiles:
        px, py = int(tile.image.x + tile.image.width / 2), int(tile.image.y + tile.image.height / 2)
        at = shot.coordinates.desktop_pixel(px + 0.5, py + 0.5)
        assert colour_at(shot, px, py) == (at[0] % 256, at[1] % 256)
        assert area.contains(*at)


def test_fractions_of_a_region_widen_it(desktop: Desktop) -> None:
    shot = MssGrabber().grab(RegionTarget(Rect(10.6, 20.2, 5, 5)))
    assert shot.image.size == (6, 6)
    assert shot.coordinates.to_desktop(0, 0) == (10, 20)
    assert MssGrabber().grab(RegionTarget(Rect(10, 20, 5.0000000001, 4.9999999999))).image.size == (5, 5)


def test_faults_of_the_display(desktop: Desktop, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CaptureError, match="no monitor 3: monitors are 1 to 2"):
        MssGrabber().grab(MonitorTarget(3))
    desktop.fault = ScreenShotError("XGetImage() failed")
    with pytest.raises(CaptureError, match="could not be captured"):
        MssGrabber().grab(MonitorTarget(1))

    def gone() -> None:
        raise ScreenShotError("Unable to open display")

    monkeypatch.setattr(mss, "MSS", gone)
    with pytest.raises(CaptureError, match="cannot be reached") as caught:
        MssGrabber().monitors()
    assert caught.value.code == "no_display"


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"monitor": 1, "window": "a"},
        {"monitor": -1},
        {"monitor": True},
        {"monitor": "1"},
        {"window": " "},
        {"region": [0, 0, 10]},
        {"region": [0, 0, 0, 10]},
        {"region": [0, 0, float("inf"), 10]},
        {"region": [0, 0, 10**400, 10]},
        {"region": [0, 0, "1", 10]},
        {"screen": 1},
    ],
)
def test_targets_that_name_nothing(raw: dict) -> None:
    with pytest.raises(CaptureError, match="capture"):
        target_of(raw)


def test_targets() -> None:
    assert target_of({"monitor": 0}) == MonitorTarget(0)
    assert target_of({"window": " Firefox "}) == WindowTarget("Firefox")
    assert target_of({"region": [-5, 0.5, 10, 20]}) == RegionTarget(Rect(-5, 0.5, 10, 20))


# A real display


def test_a_real_window_is_found_and_captured(real_display: str) -> None:
    grabber = choose_grabber()
    assert [m.area for m in grabber.monitors()] == [Rect(0, 0, 1280, 800)]
    (window,) = grabber.windows()
    assert window.title == "Buttons"
    assert (window.area.width, window.area.height) == (640, 320)
    shot = grabber.grab(WindowTarget("button"))
    assert shot.image.size == (640, 320)
    assert shot.coordinates.to_desktop(0, 0) == (window.area.x, window.area.y)
    whole = grabber.grab(MonitorTarget(1))
    box = (int(window.area.x), int(window.area.y), int(window.area.x) + 640, int(window.area.y) + 320)
    assert whole.image.crop(box).tobytes() == shot.image.tobytes()
    assert grabber.grab(WindowTarget("", id=window.id)).image.size == (640, 320)


def test_windows_that_are_not_there(real_display: str) -> None:
    with pytest.raises(CaptureError, match="No window's title contains “Firefox”; windows that are open: “Buttons”"):
        choose_grabber().grab(WindowTarget("Firefox"))
    with pytest.raises(CaptureError, match="is gone"):
        choose_grabber().grab(WindowTarget("Buttons", id=1))


def test_a_black_picture_is_no_capture(real_display: str) -> None:
    with pytest.raises(CaptureError, match="all black") as caught:
        choose_grabber().grab(RegionTarget(Rect(1100, 600, 100, 100)))
    assert caught.value.code == "black_capture"


def test_no_display(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "XDG_SESSION_TYPE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(CaptureError, match="no display") as caught:
        choose_grabber()
    assert caught.value.code == "no_display"


@pytest.mark.parametrize("name", [":987", "nonsense"])
def test_a_display_that_nobody_serves(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("XDG_SESSION_TYPE", "x11")
    monkeypatch.setenv("DISPLAY", name)
    grabber = choose_grabber()
    for call in (grabber.monitors, grabber.windows, lambda: grabber.grab(MonitorTarget(1))):
        with pytest.raises(CaptureError, match="cannot be reached"):
            call()
