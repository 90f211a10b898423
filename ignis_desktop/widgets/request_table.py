"""The live table of requests: newest first, bounded by what it is given, painted row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QLabel, QTableView, QWidget

from ignis_desktop.widgets.conversation_list import Index
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.theme import mono_font, tokens

_ROW_HEIGHT = 28


@dataclass(frozen=True)
class RequestRow:
    """One request; ``status`` is None while it runs."""

    number: int
    time: float
    method: str
    path: str
    client: str
    status: int | None
    milliseconds: float | None
    request_class: str
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    tokens_per_second: float
    error: str


_COLUMNS = ("time", "request", "client", "class", "status", "duration", "tokens", "cached", "rate")
_WIDTHS = {
    "time": 88,
    "client": 164,
    "class": 96,
    "status": 136,
    "duration": 88,
    "tokens": 112,
    "cached": 76,
    "rate": 64,
}
"""In pixels; the request takes what is left."""
_SPARE = ("class", "cached", "rate")
"""Columns that a narrow window does without."""
_NARROW = 960
_THIS_MACHINE = "127.0.0.1 "
"""Not worth its room beside a program's name."""
_MANY_MS = 10_000
_RIGHT = frozenset({"duration", "tokens", "cached", "rate"})


class RequestModel(QAbstractTableModel):
    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[RequestRow] = []

    def set_rows(self, oldest_first: Sequence[RequestRow]) -> None:
        """Takes the new state; rows that stay keep their place, so that scrolling and selection do."""
        rows = list(reversed(oldest_first))
        newest = self._rows[0].number if self._rows else 0
        fresh = sum(row.number > newest for row in rows)
        kept = {row.number for row in rows}
        for i in reversed([i for i, row in enumerate(self._rows) if row.number not in kept]):
            self.beginRemoveRows(QModelIndex(), i, i)
            del self._rows[i]
            self.endRemoveRows()
        if fresh:
            self.beginInsertRows(QModelIndex(), 0, fresh - 1)
            self._rows[:0] = rows[:fresh]
            self.endInsertRows()
        for i, row in enumerate(rows):
            if self._rows[i] != row:
                self._rows[i] = row
                self.dataChanged.emit(self.index(i, 0), self.index(i, len(_COLUMNS) - 1))

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index | None = None) -> int:
        return len(_COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation == Qt.Orientation.Horizontal:
            if role == Qt.ItemDataRole.DisplayRole:
                return tr(f"requests.{_COLUMNS[section]}")
            if role == Qt.ItemDataRole.TextAlignmentRole:
                side = Qt.AlignmentFlag.AlignRight if _COLUMNS[section] in _RIGHT else Qt.AlignmentFlag.AlignLeft
                return side | Qt.AlignmentFlag.AlignVCenter
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row, column = self._rows[index.row()], _COLUMNS[index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return _text(row, column)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignRight if column in _RIGHT else Qt.AlignmentFlag.AlignLeft
            return side | Qt.AlignmentFlag.AlignVCenter
        if role == Qt.ItemDataRole.FontRole:
            return mono_font(12) if column != "class" else None
        if role == Qt.ItemDataRole.ForegroundRole:
            return _colour(row, column)
        if role == Qt.ItemDataRole.ToolTipRole and column in ("status", "request", "client"):
            return row.client if column == "client" else _text(row, column)  # what does not fit in its column
        return None


def _text(row: RequestRow, column: str) -> str:
    if column == "time":
        return datetime.fromtimestamp(row.time).strftime("%H:%M:%S")
    if column == "request":
        return f"{row.method} {row.path}"
    if column == "client":
        return row.client.removeprefix(_THIS_MACHINE)
    if column == "class":
        return row.request_class
    if column == "status":
        if row.status is None:
            return tr("requests.running")
        return f"{row.status} {row.error}" if row.error else str(row.status)
    if column == "duration":
        if row.milliseconds is None:
            return ""
        return f"{row.milliseconds:,.0f} ms" if row.milliseconds < _MANY_MS else f"{row.milliseconds / 1000:,.1f} s"
    if column == "cached":
        return f"{row.cached_tokens:,}" if row.cached_tokens else ""
    if column == "rate":
        return f"{row.tokens_per_second:,.1f}" if row.tokens_per_second else ""
    return f"{row.prompt_tokens:,} → {row.output_tokens:,}" if row.prompt_tokens or row.output_tokens else ""


def _colour(row: RequestRow, column: str) -> QColor:
    theme = tokens()
    if column == "status" and row.status is not None:
        return QColor(theme.good if row.status < 400 else theme.warn if row.status < 500 else theme.bad)
    return QColor(theme.secondary if column in ("time", "client", "class") else theme.text)


class RequestTable(QTableView):
    """Says what to do while nothing has been asked yet."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.requests = RequestModel(self)
        self.setModel(self.requests)
        self.verticalHeader().hide()
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().setDefaultSectionSize(_ROW_HEIGHT)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionsClickable(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.setSectionResizeMode(_COLUMNS.index("request"), QHeaderView.ResizeMode.Stretch)
        for name, width in _WIDTHS.items():
            self.setColumnWidth(_COLUMNS.index(name), width)
        self._empty = QLabel(tr("requests.none"), self.viewport(), alignment=Qt.AlignmentFlag.AlignCenter)
        self._empty.setProperty("tone", "secondary")

    def show_rows(self, oldest_first: Sequence[RequestRow]) -> None:
        self.requests.set_rows(oldest_first)
        self._empty.setVisible(not oldest_first)

    def resizeEvent(self, event: Any) -> None:
        super().resizeEvent(event)
        for name in _SPARE:
            self.setColumnHidden(_COLUMNS.index(name), self.width() < _NARROW)
        self._empty.setGeometry(self.viewport().rect())
