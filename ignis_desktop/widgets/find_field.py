"""Finding words in a long text: the field, its switches, how many there are, and the way from one to the next."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QWidget

from ignis_desktop.widgets.buttons import IconButton
from ignis_desktop.widgets.text_query import TextQuery
from ignis_desktop.widgets.texts import tr

_WIDTH = 480
_WAIT_MS = 250
"""After the last key."""


class FindField(QWidget):
    wanted = Signal(object)
    """A ``TextQuery``, or None when the field was emptied."""
    stepped = Signal(int)
    """1 to the next, -1 to the one before."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.edit = QLineEdit(placeholderText=tr("find.hint"), clearButtonEnabled=False)
        self.edit.setAccessibleName(tr("find.hint"))
        self.edit.setMinimumWidth(96)
        self.edit.installEventFilter(self)
        self.case = IconButton("case-sensitive", tr("find.case"))
        self.regex = IconButton("regex", tr("find.regex"))
        self.up = IconButton("chevron-up", tr("find.previous"))
        self.down = IconButton("chevron-down", tr("find.next"))
        self.state = QLabel()
        self.state.setProperty("kind", "small")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        row.addWidget(self.state)
        row.addSpacing(4)
        row.addWidget(self.edit, 1)
        for toggle in (self.case, self.regex):
            toggle.setCheckable(True)
            toggle.toggled.connect(self._search)
            row.addWidget(toggle)
        for step, by in ((self.up, -1), (self.down, 1)):
            step.clicked.connect(lambda _checked=False, by=by: self.stepped.emit(by))
            row.addWidget(step)
        self.setMaximumWidth(_WIDTH)
        self._timer = QTimer(self, singleShot=True, interval=_WAIT_MS)
        self._timer.timeout.connect(self._search)
        self.edit.textChanged.connect(self._wait)
        self.say("")

    def say(self, text: str, *, fault: bool = False, steps: bool = False) -> None:
        """What came of it. ``steps``: whether there is somewhere to go."""
        self.state.setText(text)
        self.state.setVisible(bool(text))
        self.state.setProperty("tone", "bad" if fault else "")
        self.state.style().polish(self.state)
        if bool(self.edit.property("invalid")) != fault:
            self.edit.setProperty("invalid", fault)
            self.edit.style().polish(self.edit)
        self.up.setEnabled(steps)
        self.down.setEnabled(steps)

    def start(self) -> None:
        """Takes the keys."""
        self.edit.setFocus()
        self.edit.selectAll()

    def clear(self) -> None:
        self.edit.clear()
        self._timer.stop()
        self.say("")

    def _wait(self) -> None:
        self._timer.start()

    def _search(self) -> None:
        self._timer.stop()
        text = self.edit.text()
        if not text:
            self.say("")
            self.wanted.emit(None)
            return
        query = TextQuery(text, regex=self.regex.isChecked(), case=self.case.isChecked())
        if query.fault:
            self.say(tr("find.fault"), fault=True)
            self.edit.setToolTip(query.fault)
            return
        self.edit.setToolTip("")
        self.wanted.emit(query)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                if self._timer.isActive():
                    self._search()
                else:
                    self.stepped.emit(-1 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1)
                return True
            if event.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down):
                self.stepped.emit(-1 if event.key() == Qt.Key.Key_Up else 1)
                return True
        return super().eventFilter(watched, event)
