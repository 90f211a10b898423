"""A picture that is zoomed and moved, with a mark where something was found and the attention that found it."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, QTimer, QVariantAnimation, Signal
from PySide6.QtGui import (
    QColor,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QWidget

from ignis_desktop.widgets.picture_marks import Mark, draw_heat, draw_mark
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.theme import tokens

MARGIN = 16
_MOST = 16.0
"""Device pixels a pixel of the picture, at most."""
_FIT_MOST = 2.0
"""A small picture is not enlarged further by itself."""
_STEP = 1.25
_PAN = 64
_SETTLE_MS = 120
_ARRIVE_MS = 120


class PictureView(QWidget):
    """``covered``: logical pixels at the bottom over which something else floats."""

    zoomed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("screen.picture"))
        self.setMouseTracking(False)
        self.covered = 0
        self._picture = QPixmap()
        self._heat: QImage | None = None
        self._heat_shown = False
        self._mark: Mark | None = None
        self._fitted = True
        self._scale = 1.0
        self._offset = QPointF()
        self._dragged: QPointF | None = None
        self._smooth = QPixmap()
        """The picture at the scale it is shown at, where that is smaller than its own."""
        self._settle = QTimer(self, singleShot=True, interval=_SETTLE_MS)
        self._settle.timeout.connect(self._make_smooth)
        self._arrival = QVariantAnimation(self, startValue=3.0, endValue=1.0, duration=_ARRIVE_MS)
        self._arrival.valueChanged.connect(lambda _value: self.update())

    # What is shown

    def set_picture(self, image: QImage | None) -> None:
        same_size = image is not None and not self._picture.isNull() and image.size() == self._picture.size()
        self._picture = QPixmap() if image is None else QPixmap.fromImage(image)
        self._smooth = QPixmap()
        self.set_mark(None)
        self.set_heat(None)
        if same_size:
            self._make_smooth()
        else:
            self.fit()

    def set_mark(self, mark: Mark | None, *, arrives: bool = False) -> None:
        """``arrives``: whether a ring closes in on it, to show where it is."""
        self._mark = mark
        self._arrival.stop()
        if mark is not None and arrives:
            self._arrival.start()
        if mark is not None and not self._area().contains(self.at(mark.x, mark.y)):
            self._centre(mark.x, mark.y)
        self.update()

    def set_heat(self, cells: QImage | None) -> None:
        """``cells``: a grey picture with a pixel for each cell that covers the picture evenly, brightest is most."""
        self._heat = cells
        self.update()

    def show_heat(self, on: bool) -> None:
        self._heat_shown = on
        self.update()

    # Zoom

    @property
    def zoom(self) -> float:
        """Device pixels a pixel of the picture."""
        return self._scale * self.devicePixelRatioF()

    def at(self, x: float, y: float) -> QPointF:
        """Where a pixel of the picture is in the widget."""
        return QPointF(x, y) * self._scale + self._offset

    def fit(self) -> None:
        """All of the picture, as large as there is room."""
        self._fitted = True
        if self._picture.isNull():
            self.update()
            return
        area = self._area()
        width, height = self._picture.width(), self._picture.height()
        most = _FIT_MOST / self.devicePixelRatioF()
        self._scale = max(min(area.width() / width, area.height() / height, most), 0.01)
        self._offset = area.center() - QPointF(width, height) * (self._scale / 2)
        self._make_smooth()
        self.zoomed.emit()

    def refit(self) -> None:
        """After something else covers it: what was fitted is fitted again."""
        if self._fitted:
            self.fit()
        else:
            self._keep_in_sight()

    def zoom_by(self, factor: float, around: QPointF | None = None) -> None:
        """``around``: the place in the widget that stays where it is; its middle by default."""
        if self._picture.isNull():
            return
        around = around or self._area().center()
        most, least = _MOST / self.devicePixelRatioF(), self._least()
        scale = min(max(self._scale * factor, least), most)
        if scale <= least:
            self.fit()
            return
        held = (around - self._offset) / self._scale
        self._scale, self._fitted = scale, False
        self._offset = around - held * scale
        self._keep_in_sight()
        self._settle.start()
        self.zoomed.emit()

    def _least(self) -> float:
        area = self._area()
        return min(area.width() / self._picture.width(), area.height() / self._picture.height(), 1.0)

    def _area(self) -> QRectF:
        """Where the picture can be seen whole."""
        area = QRectF(self.rect()).adjusted(MARGIN, MARGIN, -MARGIN, -MARGIN - self.covered)
        return area if area.width() > 1 and area.height() > 1 else QRectF(self.rect())

    def _centre(self, x: float, y: float) -> None:
        self._fitted = False
        self._offset = self._area().center() - QPointF(x, y) * self._scale
        self._keep_in_sight()

    def _move(self, by: QPointF) -> None:
        self._fitted = False
        self._offset += by
        self._keep_in_sight()

    def _keep_in_sight(self) -> None:
        """No edge of the picture comes further in than the area's; what is smaller than the area stays inside."""
        area = self._area()
        width, height = self._picture.width() * self._scale, self._picture.height() * self._scale
        x, y = self._offset.x(), self._offset.y()
        low, high = sorted((area.left(), area.right() - width))
        x = min(max(x, low), high)
        low, high = sorted((area.top(), area.bottom() - height))
        self._offset = QPointF(x, min(max(y, low), high))
        self.update()

    def _make_smooth(self) -> None:
        """Painting scales fast and coarsely; what stays is scaled well, once."""
        zoom = self.zoom
        if self._picture.isNull() or zoom >= 1:
            self._smooth = QPixmap()
        else:
            size = QSize(max(1, round(self._picture.width() * zoom)), max(1, round(self._picture.height() * zoom)))
            if self._smooth.size() != size:
                self._smooth = self._picture.scaled(
                    size, Qt.AspectRatioMode.IgnoreAspectRatio, Qt.TransformationMode.SmoothTransformation
                )
        self.update()

    # Events

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.refit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        steps = event.angleDelta().y() / 120
        if steps:
            self.zoom_by(_STEP**steps, event.position())
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() in (Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton) and not self._picture.isNull():
            self._dragged = event.position()
            self.setCursor(Qt.CursorShape.ClosedHandCursor)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._dragged is not None:
            self._move(event.position() - self._dragged)
            self._dragged = event.position()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._dragged = None
        self.unsetCursor()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if self._fitted:
            self.zoom_by(1 / self.zoom if self.zoom < 1 else 2.0, event.position())
        else:
            self.fit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        moves = {
            Qt.Key.Key_Left: QPointF(_PAN, 0),
            Qt.Key.Key_Right: QPointF(-_PAN, 0),
            Qt.Key.Key_Up: QPointF(0, _PAN),
            Qt.Key.Key_Down: QPointF(0, -_PAN),
        }
        key = Qt.Key(event.key())
        if key in moves and not self._picture.isNull():
            self._move(moves[key])
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.zoom_by(_STEP)
        elif key == Qt.Key.Key_Minus:
            self.zoom_by(1 / _STEP)
        elif key == Qt.Key.Key_0:
            self.fit()
        else:
            super().keyPressEvent(event)

    # Painting

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = tokens()
        painter = QPainter(self)
        painter.fillRect(event.rect(), QColor(theme.window))
        if self._picture.isNull():
            painter.end()
            return
        whole = QRectF(self._offset.x(), self._offset.y(), *self._shown_size())
        seen = whole.intersected(QRectF(event.rect()))
        if not seen.isEmpty():
            self._draw_picture(painter, whole, seen)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self._heat is not None and self._heat_shown:
            draw_heat(painter, whole, self._heat)
        painter.setPen(QPen(QColor(theme.line), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(whole.adjusted(-0.5, -0.5, 0.5, 0.5))
        if self._mark is not None:
            running = self._arrival.state() == QVariantAnimation.State.Running
            draw_mark(painter, self._mark, self.at, self._scale, self._arrival.currentValue() if running else 1.0)
        if self.hasFocus():
            painter.setPen(QPen(QColor(theme.accent), 2))
            painter.drawRect(QRectF(self.rect()).adjusted(1, 1, -1, -1))
        painter.end()

    def _shown_size(self) -> tuple[float, float]:
        return self._picture.width() * self._scale, self._picture.height() * self._scale

    def _draw_picture(self, painter: QPainter, whole: QRectF, seen: QRectF) -> None:
        """Only the part that is seen: a large picture that is zoomed in is not scaled as a whole."""
        source = self._picture
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, self.zoom < 2)
        if not self._smooth.isNull() and abs(self._smooth.width() - whole.width() * self.devicePixelRatioF()) <= 1:
            source = self._smooth
        across, down = source.width() / whole.width(), source.height() / whole.height()
        part = seen.translated(-whole.topLeft())
        painter.drawPixmap(
            seen, source, QRectF(part.x() * across, part.y() * down, part.width() * across, part.height() * down)
        )
