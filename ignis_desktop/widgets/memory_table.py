"""The memory plan as a table: swatch and name, MiB, share, and how the figure comes about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from PySide6.QtCore import QAbstractTableModel, QEvent, QModelIndex, QObject, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPen, QPixmap
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from ignis_desktop.widgets.conversation_list import Index
from ignis_desktop.widgets.memory_bar import Look
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.theme import mono_font, tokens, ui_font
from ignis_desktop.widgets.tips import plain

MIB = 1 << 20
_ROW_HEIGHT = 26
_COLUMNS = ("line", "mebibytes", "share", "why")
_WIDTHS = {0: 168, 1: 88, 2: 72}
_NARROW = 520
"""Pixels of width under which the last column makes room; hovering a row says it."""


@dataclass(frozen=True)
class MemoryRow:
    """``kind`` "sum" is set apart; "title" heads rows of another memory and has a label only."""

    name: str
    label: str
    bytes: int = 0
    share: float | None = None
    why: str = ""
    tone: str = ""
    look: Look = "solid"
    kind: Literal["line", "sum", "title"] = "line"


class MemoryModel(QAbstractTableModel):
    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.rows: list[MemoryRow] = []
        self.pointed = ""

    def set_rows(self, rows: Sequence[MemoryRow]) -> None:
        rows = list(rows)
        if [row.name for row in rows] == [row.name for row in self.rows]:
            self.rows = rows
            self.dataChanged.emit(self.index(0, 0), self.index(len(rows) - 1, len(_COLUMNS) - 1))
        else:
            self.beginResetModel()
            self.rows = rows
            self.endResetModel()

    def point_at(self, name: str) -> None:
        if name != self.pointed:
            self.pointed = name
            if self.rows:
                self.dataChanged.emit(self.index(0, 0), self.index(len(self.rows) - 1, len(_COLUMNS) - 1))

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index | None = None) -> int:
        return len(_COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation == Qt.Orientation.Horizontal:
            if role == Qt.ItemDataRole.DisplayRole:
                return tr(f"memory.column_{_COLUMNS[section]}")
            if role == Qt.ItemDataRole.TextAlignmentRole:
                return _alignment(section)
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row, column = self.rows[index.row()], _COLUMNS[index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return _text(row, column)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(index.column())
        if role == Qt.ItemDataRole.FontRole:
            font = ui_font(12) if column == "why" else ui_font() if column == "line" else mono_font(12)
            font.setBold(row.kind == "sum" and column != "why")
            return font
        if role == Qt.ItemDataRole.ForegroundRole:
            quiet = column == "why" or row.kind == "title" or (row.bytes == 0 and row.kind == "line")
            return QColor(tokens().secondary if quiet else tokens().text)
        if role == Qt.ItemDataRole.BackgroundRole and row.name == self.pointed and row.kind == "line":
            return QColor(tokens().hover)
        if role == Qt.ItemDataRole.DecorationRole and column == "line" and row.kind == "line":
            return swatch(row)
        if role == Qt.ItemDataRole.ToolTipRole and row.why:
            return plain(row.why)
        return None


def _alignment(column: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if column in (1, 2) else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter


def _text(row: MemoryRow, column: str) -> str:
    if column == "line":
        return row.label
    if row.kind == "title":
        return ""
    if column == "mebibytes":
        return f"{row.bytes / MIB:,.1f}"
    if column == "share":
        return "" if row.share is None else f"{row.share:.1%}"
    return row.why


def swatch(row: MemoryRow, side: int = 12) -> QPixmap:
    """The row's colour as in the bar."""
    theme, ratio = tokens(), 3
    image = QPixmap(side * ratio, side * ratio)
    image.setDevicePixelRatio(ratio)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    box = QRectF(0.5, 0.5, side - 1, side - 1)
    if row.look == "solid":
        painter.setBrush(QColor(getattr(theme, row.tone)))
    elif row.look == "others":
        painter.setBrush(QColor(theme.control_line))
    else:
        painter.setPen(QPen(QColor(theme.disabled), 1))
        if row.look == "hatched":
            for offset in (4, 8, 12):
                painter.drawLine(QPointF(max(offset - side, 1) + 0.5, min(offset, side - 1)), QPointF(offset, 1))
    painter.drawRoundedRect(box, 3, 3)
    painter.end()
    return image


class MemoryTable(QTableView):
    """As high as its rows; whatever it stands in scrolls."""

    pointed = Signal(str)
    """Name of the row under the mouse; "" for none."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.memory = MemoryModel(self)
        self.setModel(self.memory)
        self.verticalHeader().hide()
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().setDefaultSectionSize(_ROW_HEIGHT)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setMouseTracking(True)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionsClickable(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.setStretchLastSection(True)
        for column, width in _WIDTHS.items():
            self.setColumnWidth(column, width)
        self.entered.connect(self._on_entered)

    def show_rows(self, rows: Sequence[MemoryRow]) -> None:
        self.memory.set_rows(rows)
        self.clearSpans()
        for number, row in enumerate(rows):
            if row.kind == "title":
                self.setSpan(number, 0, 1, len(_COLUMNS))
        self.setFixedHeight(len(rows) * _ROW_HEIGHT + self.horizontalHeader().sizeHint().height() + 2)

    def point_at(self, name: str) -> None:
        self.memory.point_at(name)

    def _on_entered(self, index: QModelIndex) -> None:
        row = self.memory.rows[index.row()]
        self._point(row.name if row.kind == "line" else "")

    def _point(self, name: str) -> None:
        if name != self.memory.pointed:
            self.point_at(name)
            self.pointed.emit(name)

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Leave:
            self._point("")
        return super().viewportEvent(event)

    def resizeEvent(self, event: Any) -> None:
        super().resizeEvent(event)
        narrow = self.width() < _NARROW
        self.setColumnHidden(len(_COLUMNS) - 1, narrow)
        rest = self.viewport().width() - _WIDTHS[1] - _WIDTHS[2]
        self.setColumnWidth(0, rest if narrow else _WIDTHS[0])
