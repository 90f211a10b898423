"""The strip of attached pictures above the composer."""

from __future__ import annotations

import itertools

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QBoxLayout, QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from ignis_desktop.store.chats import Picture
from ignis_desktop.widgets import icons
from ignis_desktop.widgets.buttons import IconButton
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.theme import tokens
from ignis_desktop.widgets.thumbnails import SIDE, shared

_PREVIEW = 64
_WORDS = 168


class AttachmentStrip(QWidget):
    """Pictures that will go with the next message; each can be taken away again."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None, *, vertical: bool = False) -> None:
        super().__init__(parent)
        self._cards: list[_Card] = []
        self._tokens = itertools.count(1)
        direction = QBoxLayout.Direction.TopToBottom if vertical else QBoxLayout.Direction.LeftToRight
        self._row = QBoxLayout(direction, self)
        self._row.setContentsMargins(0, 0, 0, 4)
        self._row.setSpacing(8)
        self._row.addStretch()
        self.hide()

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """Those that may be sent."""
        return tuple(card.picture for card in self._cards if card.fault == "")

    @property
    def waiting(self) -> bool:
        """Whether a picture is still being checked."""
        return any(card.fault is None for card in self._cards)

    def add(self, picture: Picture) -> int:
        """Adds a picture that is still to be checked; returns its token for ``settle``."""
        card = _Card(picture, next(self._tokens), self)
        card.removed.connect(lambda: self._remove(card))
        self._cards.append(card)
        self._row.insertWidget(self._row.count() - 1, card)
        self.show()
        self.changed.emit()
        return card.token

    def settle(self, token: int, fault: str, detail: str = "") -> None:
        """Marks a picture as usable (empty ``fault``) or says in one sentence why it is not."""
        for card in self._cards:
            if card.token == token:
                card.settle(fault, detail)
                self.changed.emit()

    def clear(self) -> None:
        for card in list(self._cards):
            self._remove(card)

    def _remove(self, card: _Card) -> None:
        self._cards.remove(card)
        self._row.removeWidget(card)
        card.hide()
        card.deleteLater()
        self.setVisible(bool(self._cards))
        self.changed.emit()


class _Card(QFrame):
    removed = Signal()

    def __init__(self, picture: Picture, token: int, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("thumbnail")
        self.token = token
        self.picture = picture
        self.fault: str | None = None
        self._image = QLabel(alignment=Qt.AlignmentFlag.AlignCenter)
        self._image.setFixedSize(_PREVIEW, _PREVIEW)
        self._name = QLabel(self.fontMetrics().elidedText(picture.name, Qt.TextElideMode.ElideMiddle, _WORDS))
        self._detail = QLabel(tr("chat.checking"), wordWrap=True)
        self._detail.setProperty("kind", "small")
        self._detail.setFixedWidth(_WORDS)
        remove = IconButton("x", tr("chat.remove_image"), size=24)
        remove.clicked.connect(self.removed)
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addStretch()
        words.addWidget(self._name)
        words.addWidget(self._detail)
        words.addStretch()
        # As high as a preview or a name with three lines of explanation.
        self.setMinimumHeight(_PREVIEW + 10)
        row = QHBoxLayout(self)
        row.setContentsMargins(4, 4, 4, 4)
        row.setSpacing(8)
        row.addWidget(self._image)
        row.addLayout(words)
        row.addWidget(remove, 0, Qt.AlignmentFlag.AlignTop)
        shared().ready.connect(self._arrived)
        self._show(shared().get(picture.data))

    def settle(self, fault: str, detail: str) -> None:
        self.fault = fault
        self._detail.setText(fault or detail)
        if fault:
            self._image.setPixmap(icons.pixmap("circle-alert", tokens().bad, 24, self.devicePixelRatioF()))
        self._detail.setProperty("tone", "bad" if fault else "")
        self.setProperty("invalid", bool(fault))
        for widget in (self, self._detail):
            widget.style().polish(widget)

    def _arrived(self, data: bytes) -> None:
        if data == self.picture.data:
            self._show(shared().get(data))

    def _show(self, pixmap: QPixmap | None) -> None:
        if pixmap is None or pixmap.isNull():
            return
        ratio = pixmap.devicePixelRatio() * SIDE / _PREVIEW
        fitted = QPixmap(pixmap)
        fitted.setDevicePixelRatio(ratio)
        self._image.setPixmap(fitted)
