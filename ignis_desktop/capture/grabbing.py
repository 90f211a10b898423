"""What can be captured and what a capture brings: one protocol, a back end for each kind of desktop.

Knows no Qt, so that the server captures with the same code as the window.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ignis_desktop.capture.coordinates import CoordinateError, CoordinateMap, Rect

if TYPE_CHECKING:
    from PIL import Image

ALL_MONITORS = 0
"""The number that stands for every monitor in one picture."""
_BLACK = 4
"""Largest value of a channel, 0–255, in a picture that shows nothing."""
_TARGET = 'capture is one of {"monitor": 1}, {"region": [x, y, width, height]} and {"window": "part of its title"}'


class CaptureError(Exception):
    """Nothing could be captured; the message says why and what to do. ``code`` is for programs."""

    def __init__(self, message: str, code: str = "capture_failed") -> None:
        super().__init__(message)
        self.message = message
        self.code = code


@dataclass(frozen=True)
class Monitor:
    """``area`` is in desktop pixels; its origin may be negative. ``number`` counts from 1."""

    number: int
    name: str
    area: Rect
    primary: bool = False


@dataclass(frozen=True)
class Window:
    """``area`` is the window with its frame, in desktop pixels."""

    id: int
    title: str
    area: Rect


@dataclass(frozen=True)
class MonitorTarget:
    number: int
    """``ALL_MONITORS``, or a ``Monitor.number``."""


@dataclass(frozen=True)
class RegionTarget:
    area: Rect


@dataclass(frozen=True)
class WindowTarget:
    """The window ``id``, or the front one whose title contains ``title``, whatever the case."""

    title: str
    id: int | None = None


Target = MonitorTarget | RegionTarget | WindowTarget


@dataclass(frozen=True)
class Shot:
    """A captured picture (RGB) and where on the desktop it lies."""

    image: Image.Image
    coordinates: CoordinateMap

    def cropped(self, left: int, top: int, width: int, height: int) -> Shot:
        """A part of it, in its own pixels."""
        part = self.image.crop((left, top, left + width, top + height))
        return Shot(part, self.coordinates.cropped(left, top, width, height))


class Grabber(Protocol):
    """A back end. All of it may take a while, may be called from any thread and raises ``CaptureError``."""

    watchable: bool
    """Whether it may capture again and again: no dialog, no flash, no file for each picture."""

    def monitors(self) -> Sequence[Monitor]:
        """The main one first."""
        ...

    def windows(self) -> Sequence[Window]:
        """Windows with a title that are shown, the front one first. Empty where the desktop tells nobody."""
        ...

    def grab(self, target: Target) -> Shot: ...


Cancelled = Callable[[], bool]


def never() -> bool:
    return False


def choose_grabber(layout: Sequence[Monitor] = (), cancelled: Cancelled = never) -> Grabber:
    """The back end for this desktop.

    Args:
        layout: the monitors in the units in which Wayland places the pointer, for whoever knows (a portal tells
            nothing of them). Ignored elsewhere.

    Raises:
        CaptureError: there is no display.
    """
    if sys.platform.startswith("linux"):
        if os.environ.get("WAYLAND_DISPLAY") or os.environ.get("XDG_SESSION_TYPE") == "wayland":
            from ignis_desktop.capture.portal import PortalGrabber

            return PortalGrabber(layout, cancelled)
        if not os.environ.get("DISPLAY"):
            raise CaptureError(
                "There is no display to capture (neither DISPLAY nor WAYLAND_DISPLAY is set); send an image instead.",
                "no_display",
            )
    from ignis_desktop.capture.pixels import MssGrabber

    return MssGrabber()


def target_of(raw: Mapping[str, Any]) -> Target:
    """What a request's ``capture`` names. Raises ``CaptureError`` when it names nothing."""
    if len(raw) != 1:
        raise CaptureError(f"{_TARGET}, not {_shown(raw)}.", "invalid_value")
    (kind, value), *_ = raw.items()
    if kind == "monitor" and isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return MonitorTarget(value)
    if kind == "window" and isinstance(value, str) and value.strip():
        return WindowTarget(value.strip())
    numbers = value if kind == "region" and isinstance(value, list) else []
    if len(numbers) == 4 and all(isinstance(n, int | float) and not isinstance(n, bool) for n in numbers):
        try:
            return RegionTarget(Rect(*numbers))
        except (CoordinateError, OverflowError) as error:
            raise CaptureError(f"capture.region: {error}", "invalid_value") from None
    raise CaptureError(f"{_TARGET}, not {_shown(raw)}.", "invalid_value")


def find_window(windows: Sequence[Window], target: WindowTarget) -> Window:
    """The window that ``target`` names; ``windows`` are the front one first. Raises ``CaptureError``."""
    wanted = target.title.casefold()
    for window in windows:
        if window.id == target.id or (target.id is None and wanted in window.title.casefold()):
            return window
    if target.id is not None:
        raise CaptureError(f"The window “{target.title}” is gone; choose another one.", "window_not_found")
    titles = ", ".join(f"“{window.title[:40]}”" for window in windows[:8]) or "none"
    raise CaptureError(
        f"No window's title contains “{target.title[:80]}”; windows that are open: {titles}.", "window_not_found"
    )


def find_monitor(monitors: Sequence[Monitor], number: int) -> Monitor:
    """The monitor ``number``. Raises ``CaptureError``."""
    for monitor in monitors:
        if monitor.number == number:
            return monitor
    known = "the one monitor is 1" if len(monitors) == 1 else f"monitors are 1 to {len(monitors)}"
    raise CaptureError(f"There is no monitor {number}: {known}, and 0 is all in one picture.", "monitor_not_found")


def checked(shot: Shot) -> Shot:
    """The shot unless it shows nothing. A black picture is what a desktop hands out that forbids captures, and pointing
    at something on it would be a made-up answer."""
    extremes = shot.image.getextrema()
    if all(high <= _BLACK for _, high in extremes):  # type: ignore[misc]
        raise CaptureError(
            "The captured picture is all black: the screen is off or locked, or the desktop forbids captures. "
            "Wake it and try again, or open an image instead.",
            "black_capture",
        )
    return shot


def _shown(raw: Mapping[str, Any]) -> str:
    text = repr(dict(raw))
    return text if len(text) <= 80 else text[:79] + "…"
