"""Which file a panel works on: its name, what is known of it, and the way to close it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from ignis_desktop.widgets import icons
from ignis_desktop.widgets.buttons import IconButton
from ignis_desktop.widgets.elided import ElidedLabel
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.theme import tokens

_ICON = 16


class FileStrip(QWidget):
    closed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._icon = QLabel()
        self.name = ElidedLabel(bold=True, mode=Qt.TextElideMode.ElideMiddle)
        self.facts = ElidedLabel(tone="secondary")
        self.close_button = IconButton("x", tr("log.close"))
        self.close_button.clicked.connect(self.closed)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self._icon)
        row.addWidget(self.name)
        row.addWidget(self.facts, 1)
        row.addWidget(self.close_button)
        self._tint()

    def _tint(self) -> None:
        self._icon.setPixmap(icons.pixmap("file-text", tokens().secondary, _ICON, self.devicePixelRatioF()))

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            self._tint()
        super().changeEvent(event)
