"""What an empty panel shows: one sentence, one button, and examples to start from."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from ignis_desktop.widgets.buttons import button

_WIDTH = 520


class EmptyState(QWidget):
    pressed = Signal()
    example_chosen = Signal(str)

    def __init__(self, examples: Sequence[str] = (), parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._sentence = QLabel(alignment=Qt.AlignmentFlag.AlignCenter, wordWrap=True)
        self._sentence.setProperty("kind", "hero")
        self._detail = QLabel(alignment=Qt.AlignmentFlag.AlignCenter, wordWrap=True)
        self._detail.setProperty("kind", "lead")
        self._detail.setProperty("tone", "secondary")
        self._button = button("", "primary")
        self._button.clicked.connect(self.pressed)
        self._examples: list[QPushButton] = []
        column = QVBoxLayout()
        column.setSpacing(8)
        column.addStretch(2)
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
        column.addStretch(3)
        inner = QWidget()
        inner.setMaximumWidth(_WIDTH)
        inner.setLayout(column)
        layout = QHBoxLayout(self)
        layout.addStretch(1)
        layout.addWidget(inner, 1000)
        layout.addStretch(1)

    def show_state(self, sentence: str, detail: str, action: str, *, examples: bool = False) -> None:
        """``action`` is the button's label; ``examples``: whether they can be asked now (else they are hidden)."""
        self._sentence.setText(sentence)
        self._detail.setText(detail)
        self._detail.setVisible(bool(detail))
        self._button.setText(action)
        for row in self._examples:
            row.setVisible(examples)
