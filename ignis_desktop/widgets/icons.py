"""Lucide icons (assets/icons), tinted with the theme's colours when they are drawn."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from ignis_desktop.store.paths import assets_dir
from ignis_desktop.widgets.theme import tokens

_CRISP_RATIOS = (1.0, 1.25, 1.5, 2.0, 3.0)


@lru_cache(maxsize=64)
def _source(name: str) -> str:
    return (assets_dir() / "icons" / f"{name}.svg").read_text(encoding="utf-8")


@lru_cache(maxsize=512)
def pixmap(name: str, colour: str, size: int = 16, ratio: float = 1.0) -> QPixmap:
    """Icon ``name`` in ``colour``, ``size`` logical pixels a side at ``ratio`` device pixels each."""
    image = QPixmap(QSize(round(size * ratio), round(size * ratio)))
    image.fill(Qt.GlobalColor.transparent)
    renderer = QSvgRenderer(QByteArray(_source(name).replace("currentColor", colour).encode()))
    painter = QPainter(image)
    renderer.render(painter, QRectF(0, 0, image.width(), image.height()))
    painter.end()
    image.setDevicePixelRatio(ratio)
    return image


def icon(name: str, tone: str = "text", size: int = 16) -> QIcon:
    """Icon ``name`` in the theme's colour ``tone``, sharp at every usual scale; disabled in the disabled colour.

    Colours are those of the theme now: ask again when the palette changes.
    """
    theme = tokens()
    result = QIcon()
    for ratio in _CRISP_RATIOS:
        result.addPixmap(pixmap(name, getattr(theme, tone), size, ratio), QIcon.Mode.Normal)
        result.addPixmap(pixmap(name, theme.disabled, size, ratio), QIcon.Mode.Disabled)
    return result


def app_icon() -> QIcon:
    """The program's icon: a flame in the accent of the light theme, which shows on light and dark task bars."""
    result = QIcon()
    for size in (16, 24, 32, 48, 64, 128, 256):
        result.addPixmap(pixmap("flame", "#D9541E", size))
    return result
