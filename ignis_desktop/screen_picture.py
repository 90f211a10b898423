"""The picture that the Screen panel asks about: where it came from, and how it is captured or read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from PIL import Image
from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QGuiApplication, QImage, QPainter, QScreen
from PySide6.QtWidgets import QWidget

from engine.answers.point import PointAnswer as PointAnswer  # noqa: PLC0414 - for panels, which name no engine
from engine.answers.point import Screen as Screen  # noqa: PLC0414
from engine.images import MAX_SOURCE_PIXELS, decode_image
from engine.messages import EngineError, RequestError
from ignis_desktop.capture.change import Thumbnail
from ignis_desktop.capture.coordinates import CoordinateMap, Rect
from ignis_desktop.capture.grabbing import (
    Cancelled,
    CaptureError,
    Grabber,
    Monitor,
    Shot,
    Target,
    Window,
    choose_grabber,
    never,
)
from ignis_desktop.jobs import Job

FILE_LIMIT = 64 << 20
"""Bytes; a larger file is no picture that anybody wants to ask about."""
T = TypeVar("T")


@dataclass(frozen=True)
class Picture:
    """``target`` is what was captured, None for a file or a pasted picture (``path`` is the file's)."""

    name: str
    image: Image.Image
    shown: QImage
    coordinates: CoordinateMap
    thumbnail: Thumbnail
    target: Target | None = None
    path: Path | None = None

    @classmethod
    def of(
        cls, name: str, image: Image.Image, coordinates: CoordinateMap | None = None, **source: Target | Path | None
    ) -> Picture:
        """``image`` is RGB. Takes a while: call it beside the window."""
        width, height = image.size
        shown = QImage(image.tobytes(), width, height, 3 * width, QImage.Format.Format_RGB888)
        # A copy in the format that is painted fastest, which owns its pixels.
        shown = shown.convertToFormat(QImage.Format.Format_RGB32)
        known = coordinates or CoordinateMap.identity(width, height)
        return cls(name, image, shown, known, Thumbnail.of(image), **source)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Sources:
    """What can be captured now."""

    monitors: tuple[Monitor, ...]
    windows: tuple[Window, ...]
    watchable: bool


def list_sources(layout: tuple[Monitor, ...], own: int) -> Sources:
    """``own``: the window to leave out. Raises ``EngineError``."""

    def ask(grabber: Grabber) -> Sources:
        windows = tuple(window for window in grabber.windows() if window.id != own)
        return Sources(tuple(grabber.monitors()), windows, grabber.watchable)

    return _with_grabber(layout, ask)


def capture(layout: tuple[Monitor, ...], target: Target, job: Job) -> Shot:
    """``job``: the one it is done in. Raises ``EngineError``."""
    return _with_grabber(layout, lambda grabber: grabber.grab(target), lambda: job.cancelled)


def _with_grabber(layout: tuple[Monitor, ...], use: Callable[[Grabber], T], cancelled: Cancelled = never) -> T:
    try:
        return use(choose_grabber(layout, cancelled))
    except CaptureError as error:
        raise EngineError(error.message, code=error.code) from error


def open_file(path: Path) -> Picture:
    """Raises ``EngineError``."""
    try:
        if path.stat().st_size > FILE_LIMIT:
            raise RequestError(f"{path.name} is larger than {FILE_LIMIT >> 20} MiB; open a smaller picture.")
        data = path.read_bytes()
    except OSError as error:
        raise EngineError(f"{path.name} cannot be read: {error.strerror or error}.") from error
    return Picture.of(path.name, decode_image(data), path=path)


def open_pasted(name: str, pasted: QImage) -> Picture:
    """Of a picture from the clipboard or another program. Raises ``EngineError``."""
    if pasted.isNull() or pasted.width() * pasted.height() > MAX_SOURCE_PIXELS:
        raise RequestError("The pasted picture cannot be read; save it to a file and open that.")
    opaque = QImage(pasted.size(), QImage.Format.Format_RGB888)
    opaque.fill(Qt.GlobalColor.white)
    painter = QPainter(opaque)
    painter.drawImage(opaque.rect(), pasted)
    painter.end()
    rows = np.frombuffer(opaque.constBits(), np.uint8).reshape(opaque.height(), opaque.bytesPerLine())
    return Picture.of(name, Image.fromarray(rows[:, : 3 * opaque.width()].reshape(opaque.height(), -1, 3)))


def screen_layout() -> tuple[Monitor, ...]:
    """The monitors as Qt knows them, in the units in which Wayland places the pointer."""
    screens = sorted(QGuiApplication.screens(), key=lambda screen: screen is not QGuiApplication.primaryScreen())
    return tuple(
        Monitor(number, screen.name(), _rect(screen.geometry()), number == 1)
        for number, screen in enumerate(screens, start=1)
    )


def _rect(area: QRect) -> Rect:
    return Rect(area.x(), area.y(), area.width(), area.height())


def desktop_area(screen: QScreen, area: QRect) -> Rect:
    """Where a rectangle in Qt's pixels lies on the desktop. Qt leaves a screen's origin as the system has it and
    scales what is inside; on Wayland both are the same."""
    ratio = 1.0 if QGuiApplication.platformName().startswith("wayland") else screen.devicePixelRatio()
    origin = screen.geometry().topLeft()
    offset = area.topLeft() - origin
    return Rect(
        origin.x() + offset.x() * ratio,
        origin.y() + offset.y() * ratio,
        max(area.width(), 1) * ratio,
        max(area.height(), 1) * ratio,
    )


def window_area(window: QWidget) -> Rect | None:
    """Where a window lies on the desktop; None when it is not shown."""
    if not window.isVisible() or window.isMinimized():
        return None
    return desktop_area(window.screen(), window.frameGeometry())
