"""A lane's last minute as a picture that moves: only columns that are new are drawn, the rest stays as it is.

The picture is a ring. A column of device pixels stands for a fixed slice of time and keeps its place; what moves is
where the ring begins. Drawing a frame costs two copies, however much has happened in the minute.
"""

from __future__ import annotations

import math

from PySide6.QtCore import QPoint, QRect, QRectF
from PySide6.QtGui import QBrush, QColor, QPainter, QPen, QPixmap

from ignis_desktop.widgets.lane_history import SECONDS, LaneHistory, Span
from ignis_desktop.widgets.theme import tokens

_HATCH = 6
"""Logical pixels from one stripe to the next."""
_HAIR = 3
"""Hair's breadths that a span must be wide to be set off from the one before."""
_PALE = 0.22
"""How much of its tint lies under the stripes."""


def tint_colour(tint: str) -> QColor:
    """The colour of a request's class; grey for none."""
    theme = tokens()
    return QColor({"interactive": theme.class_interactive, "agent": theme.class_agent}.get(tint, theme.secondary))


def mixed(colour: QColor, ground: QColor, share: float) -> QColor:
    """``share`` of ``colour`` on ``ground``."""
    parts = zip(colour.getRgb()[:3], ground.getRgb()[:3], strict=True)  # type: ignore[index]
    return QColor(*(round(share * c + (1 - share) * g) for c, g in parts))


class Timeline:
    """Draws one ``LaneHistory``. Sizes are logical pixels."""

    def __init__(self, history: LaneHistory) -> None:
        self._history = history
        self._ring: QPixmap | None = None
        self._brushes: dict[tuple[str, str], QBrush] = {}
        self._width = self._height = 1
        self._ratio = 1.0
        self._last = 0
        """The newest column that is drawn, counted from the clock's beginning."""

    def resize(self, width: int, height: int, ratio: float) -> None:
        """``ratio``: device pixels in a logical one."""
        size = max(1, round(width * ratio)), max(1, round(height * ratio))
        if (*size, ratio) != (self._width, self._height, self._ratio):
            self._width, self._height = size
            self._ratio = ratio
            self.restyle()

    def restyle(self) -> None:
        """Draws everything anew when it is next asked for: colours or sizes have changed."""
        self._ring = None
        self._brushes.clear()

    def advance(self, now: float) -> bool:
        """Moves on to ``now``; whether anything looks different."""
        column = self._column(now)
        history = self._history
        if self._ring is None:
            self._ring = QPixmap(self._width, self._height)
            self._draw(column - self._width + 1, column)
            return True
        if column == self._last and history.touched == math.inf:
            return False
        touched = self._column(min(history.touched, now))
        # How the end of a span looks, and whether it is set off, shows only a few columns later.
        first = min(self._last, touched) - (_HAIR + 1) * self._line
        self._draw(max(first, column - self._width + 1), column)
        return True

    def paint(self, painter: QPainter, at: QPoint) -> None:
        """The minute up to the last ``advance``, newest at the right."""
        if self._ring is None:
            return
        begin = (self._last + 1) % self._width
        tail = self._width - begin
        x, y, ratio = at.x(), at.y(), self._ratio
        height = self._height / ratio
        painter.drawPixmap(QRectF(x, y, tail / ratio, height), self._ring, QRectF(begin, 0, tail, self._height))
        if begin:
            painter.drawPixmap(
                QRectF(x + tail / ratio, y, begin / ratio, height), self._ring, QRectF(0, 0, begin, self._height)
            )

    def moment(self, x: float, now: float) -> float:
        """The time that lies ``x`` logical pixels from the left edge."""
        return now - SECONDS * (1 - x * self._ratio / self._width)

    def _column(self, moment: float) -> int:
        return math.floor(moment * self._width / SECONDS)

    def _draw(self, first: int, last: int) -> None:
        """Draws the columns from ``first`` to ``last``."""
        assert self._ring is not None
        self._last = last
        self._history.touched = math.inf
        # In the ring the columns may lie in two pieces.
        painter = QPainter(self._ring)
        while first <= last:
            base = first - first % self._width
            end = min(last, base + self._width - 1)
            self._draw_piece(painter, base, first, end)
            first = end + 1
        painter.end()

    def _draw_piece(self, painter: QPainter, base: int, first: int, last: int) -> None:
        """``base``: the column that lies at the ring's left edge."""
        place = QRect(first - base, 0, last - first + 1, self._height)
        painter.setClipRect(place)
        painter.fillRect(place, QColor(tokens().track))
        found = list(self._history.since(first * SECONDS / self._width))
        for span in reversed(found):
            start = self._column(span.start)
            end = last + 1 if span.end == math.inf else max(self._column(span.end), start + 1)
            if start <= last:
                self._draw_span(painter, span, base, start, end)

    def _draw_span(self, painter: QPainter, span: Span, base: int, start: int, end: int) -> None:
        line = self._line
        box = QRect(start - base, 0, end - start, self._height)
        if span.state == "parked":
            colour, width, height = tint_colour(span.tint), box.width(), box.height()
            painter.fillRect(box.x(), 0, width, line, colour)
            painter.fillRect(box.x(), height - line, width, line, colour)
            painter.fillRect(box.x(), 0, line, height, colour)
            if span.end < math.inf:  # else it is still open at its right
                painter.fillRect(box.right() + 1 - line, 0, line, height, colour)
            return
        painter.setBrushOrigin(-(base % self._stripe()), 0)
        painter.fillRect(box, self._brush(span.state, span.tint))
        if end - start > _HAIR * line:
            # A hair's breadth between two requests that follow each other.
            painter.fillRect(QRect(start - base, 0, line, self._height), QColor(tokens().track))

    @property
    def _line(self) -> int:
        """Device pixels of the thinnest line."""
        return max(1, round(self._ratio))

    def _stripe(self) -> int:
        return max(4, round(_HATCH * self._ratio))

    def _brush(self, state: str, tint: str) -> QBrush:
        key = state, tint
        if key not in self._brushes:
            colour = tint_colour(tint)
            self._brushes[key] = QBrush(colour) if state == "decode" else QBrush(self._hatching(colour))
        return self._brushes[key]

    def _hatching(self, colour: QColor) -> QPixmap:
        """A tile of stripes that fits to itself at every side."""
        size = self._stripe()
        tile = QPixmap(size, size)
        tile.fill(mixed(colour, QColor(tokens().track), _PALE))
        painter = QPainter(tile)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(colour, size / 3.2))
        for shift in (-size, 0, size):
            painter.drawLine(shift - 1, size + 1, shift + size + 1, -1)
        painter.end()
        return tile
