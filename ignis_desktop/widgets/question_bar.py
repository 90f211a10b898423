"""Where a picture is asked: floats over it, with what the last question led to above the field."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QFocusEvent, QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QMenu, QVBoxLayout, QWidget

from ignis_desktop.widgets.buttons import IconButton, button
from ignis_desktop.widgets.elided import ElidedLabel
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.tokens import CONTROL_HEIGHT
from ignis_desktop.widgets.work_line import WorkLine

_LONGEST = 500
"""Characters of a question."""


class QuestionBar(QFrame):
    asked = Signal(str)
    stopped = Signal()
    mended = Signal()
    heat_toggled = Signal(bool)
    copied = Signal(str)
    """ "coordinates" or one of the snippets' names."""
    grew = Signal()
    """Its height is another one."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("floating")
        self.work = WorkLine()
        self.work.cancelled.connect(self.stopped)
        self.edit = _Edit(self)
        self.edit.returnPressed.connect(self._ask)
        self.edit.textChanged.connect(lambda _text: self._update())
        self.heat = IconButton("thermometer", tr("screen.heat"))
        self.heat.setCheckable(True)
        self.heat.toggled.connect(self.heat_toggled)
        self._send = IconButton("arrow-up", tr("screen.ask"), tone="panel")
        self._send.setProperty("kind", "send")
        self._send.clicked.connect(self._ask)
        field = QHBoxLayout()
        field.setSpacing(6)
        field.addWidget(self.edit, 1)
        field.addWidget(self.heat)
        field.addWidget(self._send)
        for part in (self._build_fault(), self._build_answer(), self.work):
            part.setMinimumHeight(CONTROL_HEIGHT)  # one after the other, none moves the picture
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 8, 8, 8)
        layout.setSpacing(6)
        layout.addWidget(self._fault)
        layout.addWidget(self._answer)
        layout.addWidget(self.work)
        layout.addLayout(field)
        self._update()

    def _build_fault(self) -> QWidget:
        self._fault = QWidget()
        self._fault_text = QLabel(wordWrap=True, textFormat=Qt.TextFormat.PlainText)
        self._fault_text.setProperty("tone", "bad")
        self._mend = button(tr("screen.again"), "quiet")
        self._mend.clicked.connect(self.mended)
        row = QHBoxLayout(self._fault)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._fault_text, 1)
        row.addWidget(self._mend)
        self._fault.hide()
        return self._fault

    def _build_answer(self) -> QWidget:
        self._answer = QWidget()
        self._place = QLabel(textFormat=Qt.TextFormat.PlainText)
        self._detail = ElidedLabel(tone="secondary")
        self._menu = QMenu(self)
        self.copy = IconButton("copy", tr("screen.copy"))
        self.copy.setMenu(self._menu)
        row = QHBoxLayout(self._answer)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(12)
        row.addWidget(self._place)
        row.addWidget(self._detail, 1)
        row.addWidget(self.copy)
        self._answer.hide()
        return self._answer

    # Showing

    def set_copies(self, names: dict[str, str]) -> None:
        """What can be copied: name → what the menu says."""
        self._menu.clear()
        for name, text in names.items():
            self._menu.addAction(text, partial(self.copied.emit, name))

    def show_work(self, words: str, *, stops: bool = True) -> None:
        """Something is under way. ``stops``: whether a person may end it."""
        self._only(self.work)
        self.work.begin(words, stoppable=stops)

    def show_fault(self, text: str, *, mend: bool) -> None:
        self._fault_text.setText(text)
        self._mend.setVisible(mend)
        self._only(self._fault)

    def show_answer(self, place: str, detail: str, tone: str = "text", *, tip: str = "", copies: bool = True) -> None:
        self._place.setText(place)
        self._place.setVisible(bool(place))
        self._place.setProperty("kind", "place" if tone == "text" else "")
        self._place.setProperty("tone", "" if tone == "text" else tone)
        self._place.style().polish(self._place)
        self._place.setToolTip(tip)
        self._detail.set_text(detail)
        self.copy.setVisible(copies)
        self._only(self._answer)

    def show_nothing(self) -> None:
        self._only(None)

    def _only(self, wanted: QWidget | None) -> None:
        for part in (self._fault, self._answer, self.work):
            part.setVisible(part is wanted)
        self.grew.emit()

    def set_hint(self, text: str) -> None:
        if text != self.edit.placeholderText():
            self.edit.setPlaceholderText(text)

    def show_focus(self, focused: bool) -> None:
        self.setProperty("focused", focused)
        self.style().polish(self)

    # Doing

    def _ask(self) -> None:
        text = self.edit.text().strip()
        if text:
            self.edit.clear()
            self.asked.emit(text)

    def _update(self) -> None:
        self._send.setEnabled(bool(self.edit.text().strip()))

    def changeEvent(self, event: QEvent) -> None:
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self.grew.emit()
        super().changeEvent(event)


class _Edit(QLineEdit):
    def __init__(self, bar: QuestionBar) -> None:
        super().__init__(bar)
        self._bar = bar
        self.setMaxLength(_LONGEST)
        self.setAccessibleName(tr("screen.question"))
        self.setAcceptDrops(False)  # a picture dropped here is meant for the panel

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            copied = QGuiApplication.clipboard().mimeData()
            if event.matches(QKeySequence.StandardKey.Paste) and (copied.hasImage() or copied.hasUrls()):
                event.ignore()  # a copied picture is meant for the panel too
                return False
        return super().event(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._bar.show_focus(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._bar.show_focus(False)
