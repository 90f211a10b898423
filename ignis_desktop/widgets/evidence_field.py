"""What questions are about: a text or JSON, and pictures by paste, drop and file."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QMimeData, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from ignis_desktop.store.chats import Picture
from ignis_desktop.widgets.attachments import AttachmentStrip
from ignis_desktop.widgets.buttons import IconButton, Switch
from ignis_desktop.widgets.picture_intake import PictureIntake, local_files
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.theme import mono_font, ui_font

_TEXT_LIMIT = 4 << 20
"""Bytes of a text file that is dropped; longer ones are for the log search."""


class EvidenceField(QWidget):
    changed = Signal()
    image_added = Signal(int, object)
    """(token, Picture) for ``AttachmentStrip.settle``."""
    refused = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.edit = _Edit(self)
        self.edit.textChanged.connect(self.changed)
        self.json = Switch(tr("decide.json"))
        self.json.toggled.connect(self._restyle)
        self.attachments = AttachmentStrip(vertical=True)
        self.attachments.changed.connect(self.changed)
        self._intake = PictureIntake(self)
        self._intake.added.connect(self.add_picture)
        self._intake.refused.connect(self.refused)
        self.fault = QLabel(wordWrap=True)
        self.fault.setProperty("tone", "bad")
        self.fault.hide()
        attach = IconButton("image", tr("chat.attach"))
        attach.clicked.connect(lambda: self._intake.choose(self))
        line = QHBoxLayout()
        line.setSpacing(4)
        words = QLabel(tr("decide.json"))
        words.setProperty("tone", "secondary")
        line.addWidget(attach)
        line.addStretch(1)
        line.addWidget(words)
        line.addWidget(self.json)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(self.attachments)
        column.addWidget(self.edit, 1)
        column.addWidget(self.fault)
        column.addLayout(line)

    @property
    def text(self) -> str:
        return self.edit.toPlainText()

    @property
    def is_json(self) -> bool:
        return self.json.isChecked()

    def show_evidence(self, text: str, pictures: tuple[Picture, ...], *, is_json: bool) -> None:
        self.attachments.clear()
        self.json.setChecked(is_json)
        self.edit.setPlainText(text)
        for picture in pictures:
            self.add_picture(picture)

    def say(self, fault: str) -> None:
        self.fault.setText(fault)
        self.fault.setVisible(bool(fault))
        if bool(self.edit.property("invalid")) != bool(fault):
            self.edit.setProperty("invalid", bool(fault))
            self.edit.style().polish(self.edit)

    def add_picture(self, picture: Picture) -> None:
        self.image_added.emit(self.attachments.add(picture), picture)

    def take(self, data: QMimeData) -> bool:
        """A paste or a drop: pictures, or a text file; False when it is a text to insert."""
        if self._intake.take(data):
            return True
        files = local_files(data)
        if files:
            self._read(files[0])
        return bool(files)

    def _read(self, path: Path) -> None:
        try:
            if path.stat().st_size > _TEXT_LIMIT:
                self.refused.emit(tr("decide.text_too_large", name=path.name, limit=_TEXT_LIMIT >> 20))
                return
            text = path.read_bytes().decode("utf-8-sig", "replace")
        except OSError as error:
            self.refused.emit(tr("chat.image_unreadable", name=path.name, reason=error.strerror or str(error)))
            return
        self.json.setChecked(path.suffix.lower() == ".json")
        self.edit.setPlainText(text)

    def _restyle(self, is_json: bool) -> None:
        self.edit.setFont(mono_font(13) if is_json else ui_font(13))
        self.edit.setPlaceholderText(tr("decide.json_hint") if is_json else tr("decide.evidence_hint"))
        self.changed.emit()


class _Edit(QPlainTextEdit):
    def __init__(self, field: EvidenceField) -> None:
        super().__init__(field)
        self._field = field
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setPlaceholderText(tr("decide.evidence_hint"))
        self.setAccessibleName(tr("decide.evidence"))

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return source.hasImage() or source.hasUrls() or super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:
        if not self._field.take(source):
            super().insertFromMimeData(source)
