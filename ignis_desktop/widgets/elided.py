"""One line of text that ends in … where there is no room; the tip has all of it."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from ignis_desktop.widgets.theme import mono_font, tokens, ui_font
from ignis_desktop.widgets.tips import plain

_TIP = 1000
"""Characters of a tip."""


class ElidedLabel(QWidget):
    """``mode``: which part gives way. ``tone``: one of the theme's colours."""

    def __init__(
        self,
        text: str = "",
        parent: QWidget | None = None,
        *,
        mono: bool = False,
        bold: bool = False,
        tone: str = "text",
        mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
    ) -> None:
        super().__init__(parent)
        self._mono, self._bold, self._tone, self._mode = mono, bold, tone, mode
        self._text = ""
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(24)
        self._restyle()
        self.set_text(text)

    def _restyle(self) -> None:
        font = mono_font(13) if self._mono else ui_font(13)
        font.setBold(self._bold)
        self.setFont(font)

    @property
    def text(self) -> str:
        return self._text

    def set_text(self, text: str) -> None:
        if text != self._text:
            self._text = text
            self.setToolTip(plain(text[:_TIP]))
            self.setAccessibleName(text)
            self.updateGeometry()
            self.update()

    def set_tone(self, tone: str) -> None:
        self._tone = tone
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(self.fontMetrics().horizontalAdvance(self._text[:_TIP]) + 2, self.fontMetrics().height() + 2)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(QColor(getattr(tokens(), self._tone)))
        text = self.fontMetrics().elidedText(self._text[:_TIP], self._mode, self.width())
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)
        painter.end()
