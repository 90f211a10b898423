"""What an empty panel shows: one sentence, one button, and examples to start from."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from ignis_desktop.widgets.buttons import button
from ignis_desktop.widgets.tokens import COLUMN_WIDTH


class EmptyState(QWidget):
    pressed = Signal()
    example_chosen = Signal(str)

    def __init__(self, action: str, examples: Sequence[str] = (), parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._sentence = QLabel(alignment=Qt.AlignmentFlag.AlignCenter, wordWrap=True)
        self._sentence.setProperty("kind", "hero")
        self._detail = QLabel(alignment=Qt.AlignmentFlag.AlignCenter, wordWrap=True)
        self._detail.setProperty("kind", "lead")
        self._detail.setProperty("tone", "secondary")
        self._button = button(action, "primary")
        self._button.clicked.connect(self.pressed)
        self._examples: list[QPushButton] = []
        inner = QWidget()
        inner.setMaximumWidth(COLUMN_WIDTH - 160)
        column = QVBoxLayout(inner)
        column.setSpacing(8)
        column.addWidget(self._sentence)
        column.addWidget(self._detail)
        column.addSpacing(12)
        for example in examples:
            row = button(example, "example")
            row.clicked.connect(lambda _checked=False, text=example: self.example_chosen.emit(text))
            self._examples.append(row)
            column.addWidget(row)
        column.addSpacing(8)
        column.addWidget(self._button, 0, Qt.AlignmentFlag.AlignHCenter)
        layout = QVBoxLayout(self)
        layout.addStretch(2)
        layout.addWidget(inner)
        layout.addStretch(3)
        layout.setAlignment(inner, Qt.AlignmentFlag.AlignHCenter)
        inner.setMinimumWidth(420)

    def show_state(self, sentence: str, detail: str, enabled: bool) -> None:
        """``enabled``: whether the examples and the button would do something now."""
        self._sentence.setText(sentence)
        self._detail.setText(detail)
        self._detail.setVisible(bool(detail))
        for row in [*self._examples, self._button]:
            row.setEnabled(enabled)
