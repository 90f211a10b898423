"""Choosing a part of the desktop: a still picture of every screen, on which a rectangle is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QObject, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QImage, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QRegion, QScreen
from PySide6.QtWidgets import QWidget

from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.theme import tokens, ui_font

LEAST = 8
"""Pixels of the picture a side; less is a click, not a rectangle."""
_SHADE = QColor(0, 0, 0, 130)


@dataclass(frozen=True)
class Still:
    """What one screen shows: ``part`` of the picture of the whole desktop, in the picture's pixels."""

    screen: QScreen
    part: QRectF


class RegionPicker(QObject):
    """One window a screen. Ends with ``picked`` (a rectangle in the picture's pixels) or ``cancelled``, once."""

    picked = Signal(QRectF)
    cancelled = Signal()

    def __init__(self, picture: QImage, stills: Sequence[Still], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._over = False
        self.windows = [_ScreenWindow(picture, still) for still in stills]
        for window in self.windows:
            window.picked.connect(self._pick)
            window.cancelled.connect(lambda: self._pick(None))

    def open(self) -> None:
        for window in self.windows:
            window.open()
        self.windows[0].activateWindow()
        self.windows[0].setFocus()

    def _pick(self, area: QRectF | None) -> None:
        if self._over:
            return
        self._over = True
        for window in self.windows:
            window.close()
            window.deleteLater()
        if area is None:
            self.cancelled.emit()
        else:
            self.picked.emit(area)
        self.deleteLater()


class _ScreenWindow(QWidget):
    """Mouse: drag. Keys: arrows move the rectangle, with Shift they size it, Enter takes it, Esc gives up."""

    picked = Signal(QRectF)
    cancelled = Signal()

    def __init__(self, picture: QImage, still: Still) -> None:
        super().__init__(None, Qt.WindowType.FramelessWindowHint | Qt.WindowType.WindowStaysOnTopHint)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setCursor(Qt.CursorShape.CrossCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("screen.pick_hint"))
        self._picture, self._still = picture, still
        self._begun: QPointF | None = None
        self.area = QRectF()
        """The rectangle, in the widget's pixels."""

    def open(self) -> None:
        self.setScreen(self._still.screen)
        self.setGeometry(self._still.screen.geometry())
        self.showFullScreen()

    @property
    def _scale(self) -> tuple[float, float]:
        """Pixels of the picture a pixel of the widget."""
        return self._still.part.width() / self.width(), self._still.part.height() / self.height()

    def _in_picture(self) -> QRectF:
        across, down = self._scale
        part = self._still.part
        return QRectF(
            part.x() + self.area.x() * across,
            part.y() + self.area.y() * down,
            self.area.width() * across,
            self.area.height() * down,
        )

    def _take(self) -> None:
        area = self._in_picture()
        if area.width() >= LEAST and area.height() >= LEAST:
            self.picked.emit(area)

    # Events

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._begun = event.position()
            self.area = QRectF(self._begun, self._begun)
            self.update()
        else:
            self.cancelled.emit()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._begun is not None:
            self.area = QRectF(self._begun, event.position()).normalized().intersected(QRectF(self.rect()))
            self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self._begun is not None:
            self._begun = None
            self._take()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        moves = {
            Qt.Key.Key_Left: QPointF(-8, 0),
            Qt.Key.Key_Right: QPointF(8, 0),
            Qt.Key.Key_Up: QPointF(0, -8),
            Qt.Key.Key_Down: QPointF(0, 8),
        }
        key = Qt.Key(event.key())
        if key == Qt.Key.Key_Escape:
            self.cancelled.emit()
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if self.area.isEmpty():
                self.area = QRectF(self.rect())
            self._take()
        elif key in moves:
            self._move(moves[key], sizes=bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier))
        else:
            super().keyPressEvent(event)

    def _move(self, by: QPointF, *, sizes: bool) -> None:
        whole = QRectF(self.rect())
        if self.area.isEmpty():
            self.area = QRectF(0, 0, self.width() / 2, self.height() / 2)
            self.area.moveCenter(whole.center())
        elif sizes:
            right = min(max(self.area.right() + by.x(), self.area.left() + 8), whole.right())
            bottom = min(max(self.area.bottom() + by.y(), self.area.top() + 8), whole.bottom())
            self.area = QRectF(self.area.topLeft(), QPointF(right, bottom))
        else:
            left = min(max(self.area.left() + by.x(), 0), whole.right() - self.area.width())
            top = min(max(self.area.top() + by.y(), 0), whole.bottom() - self.area.height())
            self.area.moveTopLeft(QPointF(left, top))
        self.update()

    # Painting

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = tokens()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        painter.drawImage(QRectF(self.rect()), self._picture, self._still.part)
        outside = QRegion(self.rect()).subtracted(QRegion(self.area.toAlignedRect()))
        painter.setClipRegion(outside)
        painter.fillRect(self.rect(), _SHADE)
        painter.setClipping(False)
        if not self.area.isEmpty():
            painter.setPen(QPen(QColor(theme.accent), 2))
            painter.drawRect(self.area)
        self._draw_words(painter)
        painter.end()

    def _draw_words(self, painter: QPainter) -> None:
        """What to do, and how large the rectangle is, in a box at the top that keeps out of its way."""
        picked = self._in_picture()
        words = tr("screen.pick_hint")
        if not self.area.isEmpty():
            words = f"{picked.width():.0f} × {picked.height():.0f}"
        painter.setFont(ui_font(14))
        width = painter.fontMetrics().horizontalAdvance(words) + 32
        box = QRectF((self.width() - width) / 2, 32, width, 40)
        if box.intersects(self.area):
            box.moveBottom(self.height() - 32)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(255, 255, 255, 70), 1))
        painter.setBrush(QColor(0, 0, 0, 210))
        painter.drawRoundedRect(box, 6, 6)
        painter.setPen(QColor("white"))
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, words)
