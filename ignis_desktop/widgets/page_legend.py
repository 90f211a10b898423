"""What the colours of the page map mean, each with how many pages have it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from ignis_desktop.widgets.page_map import paint_page
from ignis_desktop.widgets.theme import tokens, ui_font

_LINE = 20
_CELL = 11
_GAP = 16


class PageLegend(QWidget):
    """As many lines as its width asks for."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._items: tuple[tuple[str, str], ...] = ()
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.setFont(ui_font(12))

    def show_items(self, items: Sequence[tuple[str, str]]) -> None:
        """(kind of page, words) each."""
        items = tuple(items)
        if items != self._items:
            self._items = items
            self.setAccessibleName(", ".join(words for _, words in items))
            self.updateGeometry()
            self.update()

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        places = self._places(width)
        return (places[-1].bottom() + 1) if places else _LINE

    def sizeHint(self) -> QSize:
        return QSize(360, self.heightForWidth(self.width() or 360))

    def minimumSizeHint(self) -> QSize:
        return QSize(120, _LINE)

    def _places(self, width: int) -> list[QRect]:
        """One behind the other where all fit in a line, else in columns of equal width."""
        metrics = self.fontMetrics()
        wanted = [_CELL + 6 + metrics.horizontalAdvance(words) for _, words in self._items]
        if sum(wanted) + _GAP * (len(wanted) - 1) <= width:
            starts = accumulate((one + _GAP for one in wanted), initial=0)
            return [QRect(x, 0, one, _LINE) for x, one in zip(starts, wanted, strict=False)]
        columns = max(1, min(width // (max(wanted) + _GAP), -(-len(wanted) // 2)))
        step = width // columns
        return [QRect(i % columns * step, i // columns * _LINE, one, _LINE) for i, one in enumerate(wanted)]

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(QColor(tokens().secondary))
        for (kind, words), place in zip(self._items, self._places(self.width()), strict=True):
            painter.save()
            paint_page(painter, QRect(place.x(), place.y() + (_LINE - _CELL) // 2, _CELL, _CELL), kind)
            painter.restore()
            painter.drawText(place.adjusted(_CELL + 6, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, words)
        painter.end()
