"""A short message over the top of the window, clear of what is being written, with at most one button."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QWidget

from ignis_desktop.widgets.buttons import button

SHOWN_MS = 8000
_BELOW_EDGE = 56


class Toast(QFrame):
    """One at a time; a new one replaces the one before."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("toast")
        self._text = QLabel(textFormat=Qt.TextFormat.PlainText)
        self._action = button("")
        self._action.clicked.connect(self._run)
        self._then: Callable[[], None] | None = None
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 8, 8, 8)
        row.setSpacing(12)
        row.addWidget(self._text)
        row.addWidget(self._action)
        self._over = parent
        self._timer = QTimer(self, singleShot=True, interval=SHOWN_MS)
        self._timer.timeout.connect(self.hide)
        parent.installEventFilter(self)
        self.hide()

    def say(self, text: str, action: str = "", then: Callable[[], None] | None = None) -> None:
        self._text.setText(text)
        self._then = then
        self._action.setText(action)
        self._action.setVisible(bool(action))
        self._place()
        self.show()
        self.raise_()
        self._timer.start()

    def press(self) -> None:
        """What pressing its button does."""
        self._run()

    def _run(self) -> None:
        self.hide()
        self._timer.stop()
        if self._then is not None:
            then, self._then = self._then, None
            then()

    def _place(self) -> None:
        self.adjustSize()
        self.move((self._over.width() - self.width()) // 2, _BELOW_EDGE)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and self.isVisible():
            self._place()
        return super().eventFilter(watched, event)
