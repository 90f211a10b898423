"""The list of conversations: search, rename in place, delete. Rows are painted, so thousands cost nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QSize,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import QColor, QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListView,
    QMenu,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from ignis_desktop.widgets.buttons import IconButton
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.theme import tokens, ui_font

ROW_HEIGHT = 44
_SEARCH_DELAY_MS = 150

Index = QModelIndex | QPersistentModelIndex


@dataclass(frozen=True)
class ConversationRow:
    id: str
    title: str
    updated: float
    live: bool = False
    """Whether an answer is being written in it."""


class ConversationPane(QWidget):
    """Search field, new-conversation button and the list."""

    selected = Signal(str)
    new_wanted = Signal()
    renamed = Signal(str, str)
    deleted = Signal(str)
    export_wanted = Signal(str, str)
    """(conversation, "markdown" or "json")"""
    searched = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("conversationPane")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setFixedWidth(248)
        self._model = _Model(self)
        self.search = QLineEdit(placeholderText=tr("chat.search"), clearButtonEnabled=False)
        self.search.setAccessibleName(tr("chat.search"))
        self._delay = QTimer(self, singleShot=True, interval=_SEARCH_DELAY_MS)
        self._delay.timeout.connect(lambda: self.searched.emit(self.search.text()))
        self.search.textChanged.connect(lambda _text: self._delay.start())
        new = IconButton("plus", tr("chat.new_hint"))
        new.clicked.connect(self.new_wanted)
        self.view = _View(self)
        self.view.setModel(self._model)
        self.view.setItemDelegate(_Delegate(self.view))
        self.view.activated_row.connect(self.selected)
        self.view.customContextMenuRequested.connect(self._menu)
        self.view.delete_pressed.connect(self.deleted)
        self._model.renamed.connect(self.renamed)
        self._nothing = QLabel(alignment=Qt.AlignmentFlag.AlignCenter, wordWrap=True)
        self._nothing.setProperty("tone", "secondary")
        top = QHBoxLayout()
        top.setContentsMargins(12, 10, 8, 10)
        top.setSpacing(4)
        top.addWidget(self.search, 1)
        top.addWidget(new)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(top)
        layout.addWidget(self._nothing)
        layout.addWidget(self.view, 1)

    def set_rows(self, rows: Sequence[ConversationRow], current: str | None) -> None:
        self._model.set_rows(rows)
        self.view.select(self._model.position(current))
        searching = bool(self.search.text().strip())
        self._nothing.setText(tr("chat.nothing_found") if searching else tr("chat.no_conversations"))
        self._nothing.setVisible(not rows)

    def rename(self, conversation: str) -> None:
        """Starts renaming in place."""
        row = self._model.position(conversation)
        if row is not None:
            self.view.edit(self._model.index(row))

    def menu_for(self, conversation: str, parent: QWidget) -> QMenu:
        """What can be done with one conversation."""
        menu = QMenu(parent)
        menu.addAction(tr("chat.rename"), lambda: self.rename(conversation))
        menu.addAction(tr("chat.export_markdown"), lambda: self.export_wanted.emit(conversation, "markdown"))
        menu.addAction(tr("chat.export_json"), lambda: self.export_wanted.emit(conversation, "json"))
        menu.addSeparator()
        menu.addAction(tr("chat.delete"), lambda: self.deleted.emit(conversation))
        return menu

    def _menu(self, position: QPoint) -> None:
        index = self.view.indexAt(position)
        if index.isValid():
            menu = self.menu_for(index.data(_ID), self)
            menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            menu.popup(self.view.viewport().mapToGlobal(position))


_ID = Qt.ItemDataRole.UserRole
_ROW = Qt.ItemDataRole.UserRole + 1


class _Model(QAbstractListModel):
    renamed = Signal(str, str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._rows: list[ConversationRow] = []

    def set_rows(self, rows: Sequence[ConversationRow]) -> None:
        if [row.id for row in rows] == [row.id for row in self._rows]:
            # Same conversations in the same order: an open rename field must survive.
            self._rows = list(rows)
            if rows:
                self.dataChanged.emit(self.index(0), self.index(len(rows) - 1))
            return
        self.beginResetModel()
        self._rows = list(rows)
        self.endResetModel()

    def position(self, conversation: str | None) -> int | None:
        return next((i for i, row in enumerate(self._rows) if row.id == conversation), None)

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row = self._rows[index.row()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole, Qt.ItemDataRole.ToolTipRole):
            return row.title
        if role == _ID:
            return row.id
        return row if role == _ROW else None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        title = " ".join(str(value).split())
        if not title:
            return False
        self.renamed.emit(self._rows[index.row()].id, title)
        return True

    def flags(self, index: Index) -> Qt.ItemFlag:
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEditable


class _View(QListView):
    activated_row = Signal(str)
    delete_pressed = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setUniformItemSizes(True)
        self.setMouseTracking(True)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(tr("chat.conversations"))
        self._selecting = False

    def select(self, row: int | None) -> None:
        self._selecting = True
        self.setCurrentIndex(self.model().index(row, 0) if row is not None else QModelIndex())
        self._selecting = False

    def currentChanged(self, current: Index, previous: Index) -> None:
        super().currentChanged(current, previous)
        if current.isValid() and not self._selecting:
            self.activated_row.emit(current.data(_ID))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Delete and self.currentIndex().isValid():
            self.delete_pressed.emit(self.currentIndex().data(_ID))
            return
        super().keyPressEvent(event)


class _Delegate(QStyledItemDelegate):
    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(200, ROW_HEIGHT)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row: ConversationRow = index.data(_ROW)
        theme = tokens()
        area = QRect(option.rect).adjusted(8, 1, -8, -1)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        hovered = bool(option.state & QStyle.StateFlag.State_MouseOver)
        if selected or hovered:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.pressed if selected else theme.hover))
            painter.drawRoundedRect(area, 6, 6)
        if selected and option.state & QStyle.StateFlag.State_HasFocus:
            pen = painter.pen()
            pen.setStyle(Qt.PenStyle.SolidLine)
            pen.setColor(QColor(theme.accent))
            pen.setWidth(2)
            painter.setPen(pen)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(area.adjusted(1, 1, -1, -1), 6, 6)
        words = area.adjusted(10, 4, -10, -4)
        if row.live:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.accent))
            painter.drawEllipse(words.right() - 6, area.center().y() - 3, 7, 7)
            words.adjust(0, 0, -14, 0)
        painter.setFont(ui_font(13))
        painter.setPen(QColor(theme.text))
        title = painter.fontMetrics().elidedText(row.title, Qt.TextElideMode.ElideRight, words.width())
        half = words.height() // 2
        painter.drawText(words.adjusted(0, 0, 0, -half), Qt.AlignmentFlag.AlignVCenter, title)
        painter.setFont(ui_font(12))
        painter.setPen(QColor(theme.secondary))
        painter.drawText(words.adjusted(0, half, 0, 0), Qt.AlignmentFlag.AlignVCenter, when(row.updated))
        painter.restore()

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:
        return QLineEdit(parent)

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: Index) -> None:
        editor.setGeometry(QRect(option.rect).adjusted(10, 7, -10, -7))


def when(seconds: float, now: datetime | None = None) -> str:
    """A time as a person says it: the hour today, "yesterday", else the date."""
    moment = datetime.fromtimestamp(seconds)
    today = (now or datetime.now()).date()
    days = (today - moment.date()).days
    if days == 0:
        return moment.strftime("%H:%M")
    if days == 1:
        return tr("time.yesterday")
    return moment.strftime("%Y-%m-%d")
