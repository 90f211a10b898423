"""System prompt, sampling preset and thinking of one conversation, in a small window under their button."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPoint, Qt, Signal
from PySide6.QtWidgets import QFrame, QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from ignis_desktop.widgets.buttons import Select, Switch
from ignis_desktop.widgets.panel import form_row, section
from ignis_desktop.widgets.texts import tr

_WIDTH = 380


class ConversationOptions(QFrame):
    """``changed`` brings (system prompt, preset, thinking) when it closes with something changed."""

    changed = Signal(str, str, bool)

    def __init__(self, presets: Sequence[tuple[str, str]], parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setObjectName("popup")
        self.setFixedWidth(_WIDTH)
        self.system = QPlainTextEdit(tabChangesFocus=True)
        self.system.setPlaceholderText(tr("options.system_hint"))
        self.system.setFixedHeight(120)
        self.system.setAccessibleName(tr("options.system"))
        self.preset = Select(presets, "model")
        self.thinking = Switch(tr("options.thinking"))
        self._thinking_row = form_row(tr("options.thinking"), self.thinking, tr("options.thinking_hint"))
        explanation = QLabel(tr("options.when"), wordWrap=True)
        explanation.setProperty("kind", "small")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 14, 16, 14)
        layout.setSpacing(10)
        layout.addWidget(section(tr("options.system")))
        layout.addWidget(self.system)
        layout.addWidget(form_row(tr("options.preset"), self.preset))
        layout.addWidget(self._thinking_row)
        layout.addWidget(explanation)
        self._before = ("", "model", False)

    def open(self, below: QWidget, system: str, preset: str, thinking: bool, can_think: bool) -> None:
        self._before = (system, preset, thinking)
        self.system.setPlainText(system)
        self.preset.set_value(preset)
        self.thinking.setChecked(thinking)
        self._thinking_row.setVisible(can_think)
        self.adjustSize()
        self.move(below.mapToGlobal(QPoint(below.width() - self.width(), below.height() + 14)))
        self.show()
        self.system.setFocus()

    def hideEvent(self, event: QEvent) -> None:
        now = (self.system.toPlainText().strip(), self.preset.value, self.thinking.isChecked())
        if now != self._before:
            self._before = now
            self.changed.emit(*now)
