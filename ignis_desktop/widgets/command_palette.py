"""Ctrl+K: every command by a few of its letters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import (
    QFrame,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from ignis_desktop.widgets.conversation_list import Index
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.theme import tokens, ui_font

_WIDTH = 520
_ROW = 34
_ROWS_SHOWN = 9
_COMMAND = Qt.ItemDataRole.UserRole


@dataclass(frozen=True)
class Command:
    title: str
    run: Callable[[], object]
    shortcut: str = ""


def match(query: str, title: str) -> int | None:
    """How well ``query``'s letters fit ``title`` in order, lower is better; None when they do not."""
    if not query:
        return 0
    wanted, text = query.lower().replace(" ", ""), title.lower()
    at, score = -1, 0
    for letter in wanted:
        found = text.find(letter, at + 1)
        if found < 0:
            return None
        starts_word = found == 0 or not text[found - 1].isalnum()
        score += 0 if found == at + 1 or starts_word else found - at
        at = found
    return score


class CommandPalette(QFrame):
    """Lies over its parent; closes on Esc, on a choice, and when the focus leaves it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("palette")
        self._over = parent
        self._commands: Sequence[Command] = ()
        self._model = QStandardItemModel(self)
        self.edit = QLineEdit(placeholderText=tr("palette.hint"))
        self.edit.textChanged.connect(self._filter)
        self.edit.installEventFilter(self)
        self.list = QListView()
        self.list.setModel(self._model)
        self.list.setItemDelegate(_Delegate(self.list))
        self.list.setUniformItemSizes(True)
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self.list.clicked.connect(lambda index: self._run(index.data(_COMMAND)))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 6, 6, 6)
        layout.setSpacing(6)
        layout.addWidget(self.edit)
        layout.addWidget(self.list)
        self.hide()

    def open(self, commands: Sequence[Command]) -> None:
        self._commands = commands
        self.edit.clear()
        self._filter("")
        parent = self._over
        self.setFixedWidth(min(_WIDTH, parent.width() - 48))
        self.move((parent.width() - self.width()) // 2, 72)
        self.show()
        self.raise_()
        self.edit.setFocus()

    def _filter(self, query: str) -> None:
        scored = [(score, i) for i, c in enumerate(self._commands) if (score := match(query, c.title)) is not None]
        self._model.clear()
        for _, i in sorted(scored):
            item = QStandardItem(self._commands[i].title)
            item.setData(self._commands[i], _COMMAND)
            self._model.appendRow(item)
        if self._model.rowCount():
            self.list.setCurrentIndex(self._model.index(0, 0))
        self.list.setFixedHeight(_ROW * max(1, min(self._model.rowCount(), _ROWS_SHOWN)))
        self.adjustSize()

    def _run(self, command: Command | None) -> None:
        self.hide()
        if command is not None:
            command.run()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.FocusOut:
            self.hide()
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride:
            # The window's own keys (Esc stops an answer) do not act while the palette is open.
            event.accept()
            return True
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            key = event.key()
            if key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
                step = 1 if key == Qt.Key.Key_Down else -1
                rows = self._model.rowCount()
                if rows:
                    self.list.setCurrentIndex(self._model.index((self.list.currentIndex().row() + step) % rows, 0))
                return True
            if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                index = self.list.currentIndex()
                self._run(index.data(_COMMAND) if index.isValid() else None)
                return True
            if key == Qt.Key.Key_Escape:
                self.hide()
                return True
        return super().eventFilter(watched, event)


class _Delegate(QStyledItemDelegate):
    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(100, _ROW)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        command: Command = index.data(_COMMAND)
        theme = tokens()
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if option.state & QStyle.StateFlag.State_Selected:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.pressed))
            painter.drawRoundedRect(option.rect, 6, 6)
        words = option.rect.adjusted(10, 0, -10, 0)
        painter.setFont(ui_font(13))
        painter.setPen(QColor(theme.text))
        painter.drawText(words, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, command.title)
        painter.setPen(QColor(theme.secondary))
        painter.drawText(words, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, command.shortcut)
        painter.restore()
