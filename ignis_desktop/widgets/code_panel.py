"""A block of code with a copy button, for snippets outside a conversation."""

from __future__ import annotations

import math

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QTextDocument
from PySide6.QtWidgets import QFrame, QGridLayout, QWidget

from ignis_desktop.widgets.buttons import CopyButton
from ignis_desktop.widgets.rich_text import ProseView, code_document, no_wrap_view

_SCROLL_BAR = 12


class CodePanel(QFrame):
    """What is copied may differ from what is shown: a key is hidden on the screen."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("codeBlock")
        self._shown = ("", "")
        self._copied = ""
        self._document: QTextDocument | None = None
        self._view: ProseView = no_wrap_view(self)
        self.copy = CopyButton(lambda: self._copied)
        layout = QGridLayout(self)
        layout.setContentsMargins(10, 6, 4, 6)
        layout.addWidget(self._view, 0, 0)
        layout.addWidget(self.copy, 0, 1, Qt.AlignmentFlag.AlignTop)

    @property
    def text(self) -> str:
        """What the copy button copies."""
        return self._copied

    def show_code(self, code: str, language: str, copied: str) -> None:
        self._copied = copied
        if (code, language) != self._shown:
            self._shown = (code, language)
            self._render()

    def _render(self) -> None:
        code, language = self._shown
        self._document = code_document(code.removesuffix("\n"), language)
        self._view.setDocument(self._document)
        self._view.setMinimumHeight(math.ceil(self._document.size().height()) + _SCROLL_BAR)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            self._render()
        super().changeEvent(event)
