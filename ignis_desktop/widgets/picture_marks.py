"""What is drawn over a picture: where something is, and where the model looked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPen

from ignis_desktop.widgets.theme import tokens

_ARM = 14.0
_LEAST_RING = 7.0
_FILL = 38
_VEIL = 110
"""Opacity, 0–255, of what is laid over the picture so that the heat shows."""
_RIM = QColor(255, 255, 255, 220)


@dataclass(frozen=True)
class Mark:
    """A place in the picture's pixels; ``radius`` is how uncertain it is, ``box`` the extent (left, top, right, bottom)
    where it is known."""

    x: float
    y: float
    radius: float
    box: tuple[float, float, float, float] | None = None


def draw_heat(painter: QPainter, whole: QRectF, cells: QImage) -> None:
    """``cells``: a grey picture with a pixel a cell, spread evenly over ``whole``."""
    theme = tokens()
    veil = QColor(theme.window)
    veil.setAlpha(_VEIL)
    painter.fillRect(whole, veil)
    tinted = QImage(cells.size(), QImage.Format.Format_ARGB32)
    tinted.fill(QColor(theme.accent))
    tinted.setAlphaChannel(cells)
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
    painter.drawImage(whole, tinted.convertToFormat(QImage.Format.Format_ARGB32_Premultiplied))


def draw_mark(painter: QPainter, mark: Mark, at: Callable[[float, float], QPointF], scale: float, grown: float) -> None:
    """A crosshair with a ring as wide as the place is uncertain.

    Args:
        at: where a pixel of the picture is.
        scale: logical pixels a pixel of the picture.
        grown: factor on the ring, while it closes in.
    """
    accent = QColor(tokens().accent)
    painter.save()
    # With a light rim it shows on whatever the picture has there.
    strokes = ((_RIM, 4.0), (accent, 2.0))
    if mark.box is not None:
        frame = QRectF(at(*mark.box[:2]), at(*mark.box[2:]))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for colour, width in ((_RIM, 3.0), (accent, 1.0)):
            painter.setPen(QPen(colour, width))
            painter.drawRoundedRect(frame, 2, 2)
    centre = at(mark.x, mark.y)
    ring = max(mark.radius * scale, _LEAST_RING) * grown
    fill = QColor(accent)
    fill.setAlpha(_FILL)
    painter.setBrush(fill)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.drawEllipse(centre, ring, ring)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for colour, width in strokes:
        painter.setPen(QPen(colour, width, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
        painter.drawEllipse(centre, ring, ring)
        for way in (QPointF(1, 0), QPointF(-1, 0), QPointF(0, 1), QPointF(0, -1)):
            painter.drawLine(centre + way * ring, centre + way * (ring + _ARM))
    painter.setPen(Qt.PenStyle.NoPen)
    for colour, size in ((_RIM, 3.0), (accent, 2.0)):
        painter.setBrush(colour)
        painter.drawEllipse(centre, size, size)
    painter.restore()
