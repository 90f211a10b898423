"""Captures through mss: the pixels of an X11 or Windows desktop.

There one pixel of the picture is one of the desktop, whatever scale a monitor has: X11 knows no other unit, and on
Windows mss makes the process aware of each monitor's scale.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import mss
from mss.exception import ScreenShotError
from PIL import Image

from ignis_desktop.capture.coordinates import CoordinateMap, Rect, Tile
from ignis_desktop.capture.grabbing import (
    ALL_MONITORS,
    CaptureError,
    Monitor,
    MonitorTarget,
    RegionTarget,
    Shot,
    Target,
    Window,
    checked,
    find_monitor,
    find_window,
)

_SLACK = 1e-6
"""Pixels that come from rounding: they do not widen a picture."""


class MssGrabber:
    """A connection a call: captures are seconds apart, and displays come and go."""

    watchable = True

    def monitors(self) -> Sequence[Monitor]:
        with _opened() as screen:
            return _monitors(screen)

    def windows(self) -> Sequence[Window]:
        if sys.platform == "win32":
            from ignis_desktop.capture.win32_windows import list_windows
        else:
            from ignis_desktop.capture.x11_windows import list_windows
        return list_windows()

    def grab(self, target: Target) -> Shot:
        with _opened() as screen:
            monitors = _monitors(screen)
            if isinstance(target, MonitorTarget) and target.number != ALL_MONITORS:
                wanted = find_monitor(monitors, target.number).area
            elif isinstance(target, RegionTarget):
                wanted = target.area
            elif isinstance(target, MonitorTarget):
                wanted = _bounds(monitors)
            else:
                wanted = find_window(self.windows(), target).area
            left, top, width, height = _visible(wanted, _bounds(monitors))
            try:
                raw = screen.grab({"left": left, "top": top, "width": width, "height": height})
            except ScreenShotError as error:
                raise CaptureError(f"The screen could not be captured: {error}.") from error
        image = Image.frombytes("RGB", raw.size, raw.bgra, "raw", "BGRX")
        return checked(Shot(image, _coordinates(Rect(left, top, width, height), monitors)))


@contextmanager
def _opened() -> Iterator[Any]:
    try:
        screen = mss.MSS()
    except Exception as error:  # a missing X library comes as another class than a display that is gone
        raise CaptureError(f"The display cannot be reached ({error}); send an image instead.", "no_display") from error
    with screen:
        yield screen


def _monitors(screen: Any) -> list[Monitor]:
    """The main one first, numbered from 1. mss's first entry is the whole desktop: it stands in for a server that
    names no monitors."""
    try:
        whole, *single = screen.monitors
    except ScreenShotError as error:
        raise CaptureError(f"The monitors cannot be listed: {error}.") from error
    found = [
        Monitor(0, str(one.get("name") or one.get("output") or ""), _area(one), bool(one.get("is_primary")))
        for one in single or [whole]
    ]
    found.sort(key=lambda monitor: not monitor.primary)
    return [Monitor(number, one.name, one.area, one.primary) for number, one in enumerate(found, start=1)]


def _area(raw: dict[str, Any]) -> Rect:
    return Rect(raw["left"], raw["top"], raw["width"], raw["height"])


def _bounds(monitors: Sequence[Monitor]) -> Rect:
    left = min(monitor.area.x for monitor in monitors)
    top = min(monitor.area.y for monitor in monitors)
    right = max(monitor.area.x + monitor.area.width for monitor in monitors)
    bottom = max(monitor.area.y + monitor.area.height for monitor in monitors)
    return Rect(left, top, right - left, bottom - top)


def _visible(wanted: Rect, desktop: Rect) -> tuple[int, int, int, int]:
    """(left, top, width, height) of the whole pixels that ``wanted`` has on the desktop."""
    part = wanted.intersected(desktop)
    if part is None:
        raise CaptureError(
            f"Nothing of {wanted} is on a monitor; the desktop is {desktop} (x, y, width, height).",
            "outside_the_desktop",
        )
    left, top = math.floor(part.x + _SLACK), math.floor(part.y + _SLACK)
    right, bottom = math.ceil(part.x + part.width - _SLACK), math.ceil(part.y + part.height - _SLACK)
    return left, top, max(right - left, 1), max(bottom - top, 1)


def _coordinates(area: Rect, monitors: Sequence[Monitor]) -> CoordinateMap:
    """One tile a monitor that the picture shows a part of, so that no answer lies in a gap between monitors."""
    parts = [part for monitor in monitors if (part := monitor.area.intersected(area)) is not None]
    tiles = tuple(Tile(part.moved(-area.x, -area.y), part) for part in parts or [area])
    return CoordinateMap(round(area.width), round(area.height), tiles)
