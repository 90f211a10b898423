"""Questions that were asked of a picture, each with where it led: one column, painted, for keys and mouse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QLabel,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.theme import mono_font, tokens, ui_font
from ignis_desktop.widgets.tips import plain
from ignis_desktop.widgets.tokens import RADIUS

ROW_HEIGHT = 48
_ROW = Qt.ItemDataRole.UserRole
Index = QModelIndex | QPersistentModelIndex
_NO_INDEX = QModelIndex()


@dataclass(frozen=True)
class QuestionRow:
    number: int
    question: str
    outcome: str
    """Coordinates, or why there are none."""
    detail: str
    """Stands at the right: how long it took."""
    tone: str = "secondary"
    """Of the outcome."""
    tip: str = ""


class QuestionList(QWidget):
    chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("sidePane")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._model = _Model(self)
        self._title = QLabel(tr("screen.questions"))
        self._title.setProperty("kind", "section")
        self._hint = QLabel(tr("screen.no_questions"), wordWrap=True)
        self._hint.setProperty("tone", "secondary")
        self.view = QListView()
        self.view.setModel(self._model)
        self.view.setItemDelegate(_Delegate(self.view))
        self.view.setAccessibleName(tr("screen.questions"))
        self.view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.view.setMouseTracking(True)
        self.view.setUniformItemSizes(True)
        self.view.clicked.connect(self._choose)
        self.view.activated.connect(self._choose)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 12, 8, 8)
        layout.setSpacing(8)
        for label in (self._title, self._hint):
            label.setContentsMargins(8, 0, 8, 0)
            layout.addWidget(label)
        layout.addWidget(self.view, 1)

    @property
    def rows(self) -> Sequence[QuestionRow]:
        return self._model.rows

    def set_rows(self, rows: Sequence[QuestionRow], shown: int | None) -> None:
        """The newest last; ``shown`` is the number of the one whose answer is on the picture."""
        added = len(rows) > len(self._model.rows)
        self._model.set_rows(rows)
        self._hint.setVisible(not rows)
        place = next((i for i, row in enumerate(rows) if row.number == shown), None)
        if place is None:
            self.view.clearSelection()
        else:
            self.view.setCurrentIndex(self._model.index(place))
        if added:
            self.view.scrollToBottom()

    def _choose(self, index: QModelIndex) -> None:
        self.chosen.emit(index.data(_ROW).number)


class _Model(QAbstractListModel):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.rows: Sequence[QuestionRow] = ()

    def set_rows(self, rows: Sequence[QuestionRow]) -> None:
        if len(rows) == len(self.rows):
            self.rows = rows
            if rows:
                self.dataChanged.emit(self.index(0), self.index(len(rows) - 1))
            return
        self.beginResetModel()
        self.rows = rows
        self.endResetModel()

    def rowCount(self, parent: Index = _NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row = self.rows[index.row()]
        if role == _ROW:
            return row
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{row.question}: {row.outcome}, {row.detail}"
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain(row.tip or row.question)
        return row.question if role == Qt.ItemDataRole.DisplayRole else None


class _Delegate(QStyledItemDelegate):
    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(0, ROW_HEIGHT)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        theme, row = tokens(), index.data(_ROW)
        state = option.state
        box: QRect = option.rect.adjusted(0, 1, 0, -1)
        selected = bool(state & QStyle.StateFlag.State_Selected)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if selected or state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.pressed if selected else theme.hover))
            painter.drawRoundedRect(box, RADIUS, RADIUS)
        if selected:  # the picked one is live: its answer is on the picture
            painter.setBrush(QColor(theme.accent))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.drawRoundedRect(QRect(box.left(), box.top() + 10, 3, box.height() - 20), 1.5, 1.5)
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QColor(theme.accent))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(0, 0, -1, -1), RADIUS, RADIUS)
        inner = box.adjusted(12, 5, -10, -5)
        upper = QRect(inner.left(), inner.top(), inner.width(), inner.height() // 2)
        lower = QRect(inner.left(), upper.bottom() + 1, inner.width(), inner.height() // 2)
        painter.setFont(ui_font(13))
        painter.setPen(QColor(theme.text))
        line = painter.fontMetrics().elidedText(row.question, Qt.TextElideMode.ElideRight, upper.width())
        painter.drawText(upper, Qt.AlignmentFlag.AlignVCenter, line)
        painter.setFont(mono_font(12))
        painter.setPen(QColor(theme.secondary))
        painter.drawText(lower, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, row.detail)
        room = lower.width() - painter.fontMetrics().horizontalAdvance(row.detail) - 8
        painter.setPen(QColor(getattr(theme, row.tone)))
        painter.setFont(ui_font(12) if row.tone != "secondary" else mono_font(12))
        outcome = painter.fontMetrics().elidedText(row.outcome, Qt.TextElideMode.ElideRight, room)
        painter.drawText(lower, Qt.AlignmentFlag.AlignVCenter, outcome)
        painter.restore()
