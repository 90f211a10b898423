"""A scroll bar that shows where things are: marks beside its handle, each a click away."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QScrollBar, QWidget

from ignis_desktop.widgets.theme import tokens

_NEAR = 4
"""Pixels from a mark at which a click still means it."""
WIDTH = 16


@dataclass(frozen=True)
class Marks:
    """Rows of a view: the picked one, those that were ranked after it, those that were found."""

    picked: int | None = None
    ranked: tuple[int, ...] = ()
    found: npt.NDArray[np.int64] | None = None


class MarkedScrollBar(QScrollBar):
    mark_pressed = Signal(object)
    """The row of the mark."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Vertical, parent)
        self.setObjectName("marked")
        self.marks = Marks()
        self._count = 0
        self._lines: tuple[int, list[int]] = (-1, [])

    def show_marks(self, marks: Marks, count: int) -> None:
        """``count``: rows of the view."""
        self.marks, self._count = marks, count
        self._lines = (-1, [])
        self.update()

    def place(self, row: int) -> int:
        """The pixel of a row's mark."""
        return round((self.height() - 4) * (row + 0.5) / max(self._count, 1)) + 2

    def _found_lines(self) -> list[int]:
        """Pixels where something was found; many rows share one."""
        if self._lines[0] != self.height():
            found = self.marks.found
            lines: list[int] = []
            if found is not None:
                places = (self.height() - 4) * (found + 0.5) // max(self._count, 1) + 2
                lines = np.unique(places.astype(np.int64)).tolist()
            self._lines = (self.height(), lines)
        return self._lines[1]

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        theme = tokens()
        painter = QPainter(self)
        colour = QColor(theme.class_interactive)
        for y in self._found_lines():
            painter.fillRect(QRectF(self.width() - 5, y - 0.5, 4, 1.5), colour)
        for row in self.marks.ranked:
            painter.fillRect(QRectF(1, self.place(row) - 1, self.width() - 2, 2), QColor(theme.secondary))
        if self.marks.picked is not None:
            painter.fillRect(QRectF(0, self.place(self.marks.picked) - 1.5, self.width(), 3), QColor(theme.accent))
        painter.end()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        marked = [*self.marks.ranked, *([] if self.marks.picked is None else [self.marks.picked])]
        y = event.position().y()
        nearest = min(marked, key=lambda row: abs(self.place(row) - y), default=None)
        if nearest is not None and abs(self.place(nearest) - y) <= _NEAR:
            self.mark_pressed.emit(nearest)
            event.accept()
            return
        super().mousePressEvent(event)
