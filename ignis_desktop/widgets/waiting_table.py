"""Those without a lane: parked requests first, then the queue in its order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QSize, Qt, Signal
from PySide6.QtGui import QColor, QContextMenuEvent, QIcon, QKeyEvent, QPixmap
from PySide6.QtWidgets import QAbstractItemView, QApplication, QHeaderView, QLabel, QMenu, QTableView, QWidget

from ignis_desktop.widgets import icons
from ignis_desktop.widgets.conversation_list import Index
from ignis_desktop.widgets.lane_timeline import tint_colour
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.theme import mono_font, tokens
from ignis_desktop.widgets.tips import plain

_ROW_HEIGHT = 28
_COLUMNS = ("class", "request", "mark", "tokens", "time")
_WIDTHS = {"class": 36, "mark": 32, "tokens": 72, "time": 72}
_RIGHT = frozenset({"tokens", "time"})


@dataclass(frozen=True, slots=True)
class WaitingRow:
    """``mark`` is an icon's name and ``tip`` what the row and the mark mean; texts are ready to be shown."""

    request: str
    tint: str
    title: str
    tokens: str
    time: str
    mark: str = ""
    tip: str = ""


class WaitingModel(QAbstractTableModel):
    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[WaitingRow] = []

    @property
    def rows(self) -> Sequence[WaitingRow]:
        return self._rows

    def set_rows(self, rows: Sequence[WaitingRow]) -> None:
        """Takes the new state; a row that stays where it is keeps its selection."""
        if len(rows) < len(self._rows):
            self.beginRemoveRows(QModelIndex(), len(rows), len(self._rows) - 1)
            del self._rows[len(rows) :]
            self.endRemoveRows()
        for i, row in enumerate(rows[: len(self._rows)]):
            if row != self._rows[i]:
                self._rows[i] = row
                self.dataChanged.emit(self.index(i, 0), self.index(i, len(_COLUMNS) - 1))
        if len(rows) > len(self._rows):
            self.beginInsertRows(QModelIndex(), len(self._rows), len(rows) - 1)
            self._rows += rows[len(self._rows) :]
            self.endInsertRows()

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index | None = None) -> int:
        return len(_COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation == Qt.Orientation.Horizontal and _COLUMNS[section] not in ("class", "mark"):
            if role == Qt.ItemDataRole.DisplayRole:
                return tr(f"waiting.{_COLUMNS[section]}")
            if role == Qt.ItemDataRole.TextAlignmentRole:
                return _side(_COLUMNS[section])
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row, column = self._rows[index.row()], _COLUMNS[index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return {"request": row.title, "tokens": row.tokens, "time": row.time}.get(column)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _side(column)
        if role == Qt.ItemDataRole.FontRole:
            return mono_font(12) if column in _RIGHT else None
        if role == Qt.ItemDataRole.ForegroundRole:
            return QColor(tokens().text if column == "request" else tokens().secondary)
        if role == Qt.ItemDataRole.DecorationRole:
            return _decoration(row, column)
        if role == Qt.ItemDataRole.AccessibleTextRole and column == "class":
            return tr(f"class.{row.tint}")
        if role == Qt.ItemDataRole.AccessibleDescriptionRole:
            return row.tip
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain(row.tip)
        return None


def _side(column: str) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if column in _RIGHT else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter


def _decoration(row: WaitingRow, column: str) -> QIcon | QPixmap | None:
    if column == "mark" and row.mark:
        return icons.icon(row.mark, "secondary", 14)
    return _swatch(tint_colour(row.tint).name()) if column == "class" else None


@lru_cache(maxsize=8)
def _swatch(colour: str) -> QPixmap:
    swatch = QPixmap(10, 10)
    swatch.fill(QColor(colour))
    return swatch


class WaitingTable(QTableView):
    """Says so when nobody waits."""

    cancel_wanted = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.waiting = WaitingModel(self)
        self.setModel(self.waiting)
        self.setAccessibleName(tr("lanes.waiting"))
        self.verticalHeader().hide()
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().setDefaultSectionSize(_ROW_HEIGHT)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setIconSize(QSize(14, 14))
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionsClickable(False)
        header.setMinimumSectionSize(24)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.setSectionResizeMode(_COLUMNS.index("request"), QHeaderView.ResizeMode.Stretch)
        for column, width in _WIDTHS.items():
            self.setColumnWidth(_COLUMNS.index(column), width)
        self._empty = QLabel(tr("lanes.nobody_waits"), self.viewport(), alignment=Qt.AlignmentFlag.AlignCenter)
        self._empty.setProperty("tone", "secondary")
        self._empty.setWordWrap(True)

    def show_rows(self, rows: Sequence[WaitingRow]) -> None:
        self.waiting.set_rows(rows)
        self._empty.setVisible(not rows)

    def chosen(self) -> str:
        """The request of the selected row; "" when none is."""
        index = self.currentIndex()
        return self.waiting.rows[index.row()].request if index.isValid() else ""

    def menu(self, request: str) -> QMenu:
        """What can be done with a request; deletes itself when it closes."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(tr("lanes.cancel"), lambda: self.cancel_wanted.emit(request))
        menu.addSeparator()
        menu.addAction(tr("lanes.copy_id"), lambda: QApplication.clipboard().setText(request))
        return menu

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        by_key = event.reason() == QContextMenuEvent.Reason.Keyboard
        index = self.currentIndex() if by_key else self.indexAt(event.pos())
        if index.isValid():
            place = self.visualRect(index).bottomLeft() if by_key else event.pos()
            self.menu(self.waiting.rows[index.row()].request).popup(self.viewport().mapToGlobal(place))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Delete and self.chosen():
            self.cancel_wanted.emit(self.chosen())
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: Any) -> None:
        super().resizeEvent(event)
        self._empty.setGeometry(self.viewport().rect())
