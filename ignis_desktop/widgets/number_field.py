"""A field for a whole number; empty means "automatic" where that is allowed."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QIntValidator
from PySide6.QtWidgets import QLineEdit, QWidget


class NumberField(QLineEdit):
    """``changed`` comes when another number was entered and the field left or Enter pressed."""

    changed = Signal()

    def __init__(
        self, value: int | None, least: int, most: int, parent: QWidget | None = None, *, automatic: str = ""
    ) -> None:
        """``automatic`` is what an empty field shows; without it a number is needed."""
        super().__init__(parent)
        self._least, self._most, self._optional = least, most, bool(automatic)
        self._value = value
        # From 0: while a number is typed, its beginning may still be too small.
        self.setValidator(QIntValidator(0, most, self))
        self.setPlaceholderText(automatic)
        self.setFixedWidth(112)
        self.editingFinished.connect(self._take)
        self._show()

    @property
    def value(self) -> int | None:
        """The number in force, None for automatic."""
        return self._value

    def set_value(self, value: int | None) -> None:
        """As if it had been entered."""
        self.setText("" if value is None else str(value))
        self._take()

    def focusOutEvent(self, event) -> None:
        # editingFinished does not come while the text is not acceptable, e.g. empty.
        self._take()
        super().focusOutEvent(event)

    def _take(self) -> None:
        text = self.text().strip()
        before = self._value
        if text:
            self._value = min(max(int(text), self._least), self._most)
        elif self._optional:
            self._value = None
        self._show()
        if self._value != before:
            self.changed.emit()

    def _show(self) -> None:
        self.setText("" if self._value is None else str(self._value))
