"""Where a message is written: grows to eight lines, takes pictures by paste, drop and file."""

from __future__ import annotations

import math
from pathlib import Path

from PySide6.QtCore import QMimeData, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QTextEdit, QVBoxLayout, QWidget

from ignis_desktop.store.chats import Picture
from ignis_desktop.widgets.attachments import AttachmentStrip
from ignis_desktop.widgets.buttons import IconButton, button
from ignis_desktop.widgets.picture_intake import PictureIntake, local_files
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.theme import ui_font

MAX_LINES = 8


class Composer(QFrame):
    """``sent`` comes when a message shall go; the text stays until ``clear``."""

    sent = Signal()
    waiting = Signal()
    """It will go once the model is ready, unless the text is changed before."""
    stopped = Signal()
    edit_cancelled = Signal()
    image_added = Signal(int, object)
    """(token, Picture) for ``AttachmentStrip.settle``."""
    refused = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("composer")
        self._busy = False
        self._ready = False
        self._wanted = False
        """Enter was pressed before the model was ready."""
        self.attachments = AttachmentStrip(self)
        self.edit = _Edit(self)
        self._editing = QWidget()
        self._editing_text = QLabel(tr("chat.editing"))
        self._editing_text.setProperty("tone", "secondary")
        cancel = button(tr("action.cancel"), "quiet")
        cancel.clicked.connect(self.edit_cancelled)
        row = QHBoxLayout(self._editing)
        row.setContentsMargins(4, 0, 0, 0)
        row.addWidget(self._editing_text, 1)
        row.addWidget(cancel)
        self._editing.hide()
        self._attach = IconButton("image", tr("chat.attach"))
        self._attach.clicked.connect(self.choose_images)
        self._send = IconButton("arrow-up", tr("chat.send"), tone="panel", size=32)
        self._send.setProperty("kind", "send")
        self._send.clicked.connect(self._send_or_stop)
        bottom = QHBoxLayout()
        bottom.setContentsMargins(0, 0, 0, 0)
        bottom.setSpacing(4)
        bottom.addWidget(self._attach, 0, Qt.AlignmentFlag.AlignBottom)
        bottom.addWidget(self.edit, 1)
        bottom.addWidget(self._send, 0, Qt.AlignmentFlag.AlignBottom)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 7, 8, 7)
        layout.setSpacing(4)
        layout.addWidget(self._editing)
        layout.addWidget(self.attachments)
        layout.addLayout(bottom)
        self._intake = PictureIntake(self)
        self._intake.added.connect(self.add_picture)
        self._intake.refused.connect(self.refused)
        self.edit.textChanged.connect(self._on_text_changed)
        self.attachments.changed.connect(self._update_button)
        self._update_button()

    @property
    def text(self) -> str:
        return self.edit.toPlainText()

    def set_text(self, text: str) -> None:
        self.edit.setPlainText(text)
        self.edit.moveCursor(self.edit.textCursor().MoveOperation.End)
        self.edit.setFocus()

    def set_hint(self, text: str) -> None:
        self.edit.setPlaceholderText(text)

    def set_editing(self, editing: bool) -> None:
        """Says that an earlier message is being edited."""
        self._editing.setVisible(editing)

    def set_state(self, *, ready: bool, busy: bool) -> None:
        """``ready``: the model can answer; ``busy``: an answer is being written and the button stops it."""
        if (ready, busy) == (self._ready, self._busy):
            return
        self._ready, self._busy = ready, busy
        self._update_button()
        if self._wanted and ready:
            self.try_send()

    def clear(self) -> None:
        self.edit.clear()
        self.attachments.clear()

    def choose_images(self) -> None:
        """Asks for files to attach."""
        self._intake.choose(self)

    def add_files(self, paths: list[Path]) -> None:
        self._intake.add_files(paths)

    def add_picture(self, picture: Picture) -> None:
        self.image_added.emit(self.attachments.add(picture), picture)

    def take_mime(self, data: QMimeData) -> bool:
        """Attaches the pictures in a paste or a drop; False when there are none and text should be inserted."""
        if self._intake.take(data):
            return True
        files = local_files(data)
        if files:
            self.refused.emit(tr("chat.not_an_image", name=files[0].name))
        return bool(files)

    def try_send(self) -> None:
        """Sends what there is, as soon as the model can take it."""
        something = bool(self.text.strip()) or bool(self.attachments.pictures)
        if self._send.isEnabled() and not self._busy:
            self._wanted = False
            self.sent.emit()
        elif something and not self._ready and not self._wanted:
            self._wanted = True
            self.waiting.emit()

    def show_focus(self, focused: bool) -> None:
        self.setProperty("focused", focused)
        self.style().polish(self)

    def _send_or_stop(self) -> None:
        if self._busy:
            self.stopped.emit()
        else:
            self.try_send()

    def _on_text_changed(self) -> None:
        self._wanted = False
        self._update_button()

    def _update_button(self) -> None:
        self._send.set_icon("square" if self._busy else "arrow-up")
        hint = tr("chat.stop") if self._busy else tr("chat.send")
        self._send.setToolTip(hint)
        self._send.setAccessibleName(hint.split("\n")[0])
        something = bool(self.text.strip()) or bool(self.attachments.pictures)
        self._send.setEnabled(self._busy or (self._ready and something and not self.attachments.waiting))


class _Edit(QTextEdit):
    """Plain text that grows with its lines. Enter sends, Shift+Enter starts a line."""

    def __init__(self, composer: Composer) -> None:
        super().__init__(composer)
        self._composer = composer
        self.setAcceptRichText(False)
        self.setTabChangesFocus(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(tr("chat.write"))
        self.setFont(ui_font(14))
        self.document().setDocumentMargin(5)
        self.document().documentLayout().documentSizeChanged.connect(self._grow)
        self._grow()

    def _grow(self) -> None:
        line = self.fontMetrics().lineSpacing()
        margins = 2 * self.document().documentMargin()
        wanted = math.ceil(self.document().size().height())
        most = math.ceil(line * MAX_LINES + margins)
        self.setVerticalScrollBarPolicy(
            Qt.ScrollBarPolicy.ScrollBarAsNeeded if wanted > most else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        )
        self.setFixedHeight(max(32, min(wanted, most)))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enter and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self._composer.try_send()
            event.accept()
            return
        super().keyPressEvent(event)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return source.hasImage() or source.hasUrls() or super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:
        if not self._composer.take_mime(source):
            super().insertFromMimeData(source)

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._composer.show_focus(True)
        super().focusInEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._composer.show_focus(False)
        super().focusOutEvent(event)
