"""The line at the bottom of the window: state, model, lanes, rate, address, memory."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from ignis_desktop.widgets.theme import tokens

HEIGHT = 28


class StatusDot(QWidget):
    """A dot in one of the theme's tones."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tone = "disabled"
        self.setFixedSize(8, 8)

    def set_tone(self, tone: str) -> None:
        if tone != self._tone:
            self._tone = tone
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(getattr(tokens(), self._tone)))
        painter.drawEllipse(self.rect())
        painter.end()


class StatusStrip(QWidget):
    """Shows what it is given; texts change only when they differ, so that 20 updates a second cost nothing."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("statusStrip")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setFixedHeight(HEIGHT)
        self._dot = StatusDot()
        self._text = QLabel()
        self._text.setProperty("kind", "small")
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._text.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 0, 14, 0)
        row.setSpacing(8)
        row.addWidget(self._dot)
        row.addWidget(self._text, 1)

    @property
    def text(self) -> str:
        return self._text.text()

    def show_state(self, tone: str, parts: Sequence[str]) -> None:
        self._dot.set_tone(tone)
        text = "  ·  ".join(part for part in parts if part)
        if text != self._text.text():
            self._text.setText(text)
            self._text.setToolTip(text)
