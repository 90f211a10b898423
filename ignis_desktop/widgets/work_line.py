"""How far some long work is: a thin bar, what is being done, and a way to end it."""

from __future__ import annotations

import time

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QVBoxLayout, QWidget

from ignis_desktop.widgets.buttons import button
from ignis_desktop.widgets.elided import ElidedLabel
from ignis_desktop.widgets.texts import tr

_STEPS = 1000
_FIRST_SECONDS = 2.0
"""Before that a rate says little."""


class WorkLine(QWidget):
    cancelled = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._began = 0.0
        self.words = ElidedLabel(tone="secondary")
        self.bar = QProgressBar(textVisible=False)
        self.bar.setRange(0, _STEPS)
        self.stop = button(tr("action.cancel"), "quiet")
        self.stop.clicked.connect(self.cancelled)
        column = QVBoxLayout()
        column.setSpacing(4)
        column.addWidget(self.words)
        column.addWidget(self.bar)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(12)
        row.addLayout(column, 1)
        row.addWidget(self.stop)
        self.hide()

    def begin(self, words: str, *, stoppable: bool = True) -> None:
        """``stoppable``: whether it has a button of its own to end it."""
        self._began = time.monotonic()
        self.words.set_text(words)
        self.bar.setValue(0)
        self.stop.setVisible(stoppable)
        self.bar.setAccessibleName(words)
        self.show()

    def tell(self, done: int, total: int, words: str) -> None:
        """``words``: what is being done, without the time that is left."""
        share = done / total if total else 0.0
        self.bar.setValue(round(share * _STEPS))
        passed = time.monotonic() - self._began
        if passed > _FIRST_SECONDS and 0 < share < 1:
            words = f"{words} · {tr('work.left', time=span_text(passed / share - passed))}"
        self.words.set_text(words)


def span_text(seconds: float) -> str:
    """ "40 s", "12 min"."""
    if seconds < 90:
        return tr("time.seconds", seconds=f"{seconds:.0f}")
    return tr("time.minutes", minutes=f"{seconds / 60:.0f}")
