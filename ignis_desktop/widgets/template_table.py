"""Templates of a log: how many lines are like one another, and where the first of them stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from ignis_desktop.widgets.conversation_list import Index
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.theme import mono_font, tokens
from ignis_desktop.widgets.tips import plain

_COLUMNS = ("count", "template", "first")
COUNT, TEMPLATE, FIRST = range(3)
_ROW_HEIGHT = 28
_ROOT = QModelIndex()


@dataclass(frozen=True, slots=True)
class TemplateRow:
    """``text``: slots in angle brackets; ``line``: of the first of its ``count`` lines, which begins with
    ``example``."""

    number: int
    text: str
    count: int
    line: int
    example: str


class TemplateModel(QAbstractTableModel):
    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.rows: list[TemplateRow] = []
        self._sorted = (COUNT, Qt.SortOrder.AscendingOrder)

    def set_rows(self, rows: Sequence[TemplateRow]) -> None:
        """The most frequent first."""
        self.beginResetModel()
        self.rows = sorted(rows, key=lambda row: (-row.count, row.line))
        self.endResetModel()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        keys = {COUNT: lambda row: (-row.count, row.line), TEMPLATE: lambda row: row.text, FIRST: lambda row: row.line}
        self._sorted = (column, order)
        self.layoutAboutToBeChanged.emit()
        self.rows.sort(key=keys[column], reverse=order == Qt.SortOrder.DescendingOrder)
        self.layoutChanged.emit()

    def rowCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(_COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation == Qt.Orientation.Horizontal:
            if role == Qt.ItemDataRole.DisplayRole:
                arrow = "▾" if self._sorted[1] == Qt.SortOrder.AscendingOrder else "▴"
                return tr(f"templates.{_COLUMNS[section]}") + (f" {arrow}" if self._sorted[0] == section else "")
            if role == Qt.ItemDataRole.TextAlignmentRole:
                return _side(section)
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row, column = self.rows[index.row()], index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return {COUNT: f"{row.count:,}", TEMPLATE: row.text, FIRST: f"{row.line:,}"}[column]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _side(column)
        if role == Qt.ItemDataRole.FontRole:
            return mono_font(13)
        if role == Qt.ItemDataRole.ForegroundRole and column == COUNT:
            return QColor(tokens().secondary)
        if role == Qt.ItemDataRole.ToolTipRole and column == TEMPLATE:
            return plain(f"{row.text}\n\n{row.example}")
        return None


def _side(column: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignLeft if column == TEMPLATE else Qt.AlignmentFlag.AlignRight
    return side | Qt.AlignmentFlag.AlignVCenter


class TemplateTable(QTableView):
    """A click or Enter shows the lines of a template; one on the first line's number goes to that line."""

    chosen = Signal(object)
    first_wanted = Signal(object)
    """``TemplateRow`` both."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.templates = TemplateModel(self)
        self.setModel(self.templates)
        self.setAccessibleName(tr("log.templates"))
        self.verticalHeader().hide()
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().setDefaultSectionSize(_ROW_HEIGHT)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTabKeyNavigation(False)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.setSectionResizeMode(TEMPLATE, QHeaderView.ResizeMode.Stretch)
        self.setColumnWidth(COUNT, 104)
        self.setColumnWidth(FIRST, 112)
        header.setSortIndicator(COUNT, Qt.SortOrder.AscendingOrder)
        self.setSortingEnabled(True)
        self.clicked.connect(self._press)

    def show_rows(self, rows: Sequence[TemplateRow]) -> None:
        self.templates.set_rows(rows)
        self.sortByColumn(COUNT, Qt.SortOrder.AscendingOrder)
        if rows:
            self.setCurrentIndex(self.templates.index(0, TEMPLATE))

    def _press(self, index: Index) -> None:
        row = self.templates.rows[index.row()]
        (self.first_wanted if index.column() == FIRST else self.chosen).emit(row)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.currentIndex().isValid():
            self._press(self.currentIndex())
            return
        super().keyPressEvent(event)
