"""One thing to turn: its name, its value, a slider or a choice, what the value buys and what changing it costs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSlider, QVBoxLayout, QWidget

from ignis_desktop.widgets.buttons import Select


class Knob(QWidget):
    changed = Signal()
    """Another value was chosen by hand."""

    def __init__(self, label: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._label = QLabel(label)
        self._caption = QLabel(wordWrap=True)
        self._caption.setProperty("kind", "small")
        self._change = QLabel(alignment=Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop)
        self._change.setProperty("kind", "mono")
        self.top = QHBoxLayout()
        self.top.setSpacing(8)
        self.top.addWidget(self._label, 1)
        bottom = QHBoxLayout()
        bottom.setSpacing(8)
        bottom.addWidget(self._caption, 1)
        bottom.addWidget(self._change)
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(2)
        self.column.addLayout(self.top)
        self.column.addLayout(bottom)
        self.column.addStretch(1)

    def explain(self, caption: str, change: str = "") -> None:
        """``caption``: what the value buys; ``change``: the difference to what is in force, "" for none."""
        if caption != self._caption.text():
            self._caption.setText(caption)
        if change != self._change.text():
            self._change.setText(change)

    @property
    def caption(self) -> str:
        return self._caption.text()

    @property
    def change(self) -> str:
        return self._change.text()


class SliderKnob(Knob):
    """A slider over numbers that need not be evenly spaced."""

    def __init__(self, label: str, write: Callable[[int], str], parent: QWidget | None = None) -> None:
        """``write``: how a number is shown."""
        super().__init__(label, parent)
        self._write = write
        self._stops: list[int] = [0]
        self._figure = QLabel()
        self._figure.setProperty("kind", "mono")
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName(label)
        self.slider.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.slider.valueChanged.connect(self._on_moved)
        self.top.addWidget(self._figure)
        self.column.insertWidget(1, self.slider)
        self._label.setBuddy(self.slider)

    @property
    def value(self) -> int:
        return self._stops[self.slider.value()]

    def set_value(self, value: int, stops: Sequence[int] | None = None) -> None:
        """Shows ``value`` without announcing it; one that is no stop becomes one. ``stops``: ascending, from now on."""
        self._stops = list(self._stops if stops is None else stops)
        at = bisect_left(self._stops, value)
        if at == len(self._stops) or self._stops[at] != value:
            self._stops.insert(at, value)
        blocked = self.slider.blockSignals(True)
        self.slider.setRange(0, len(self._stops) - 1)
        self.slider.setPageStep(max(1, len(self._stops) // 8))
        self.slider.setValue(at)
        self.slider.blockSignals(blocked)
        self._show()

    def _on_moved(self) -> None:
        self._show()
        self.changed.emit()

    def _show(self) -> None:
        self._figure.setText(self._write(self.value))


class ChoiceKnob(Knob):
    """One of a few named values."""

    def __init__(self, label: str, choices: Sequence[tuple[str, str]], parent: QWidget | None = None) -> None:
        super().__init__(label, parent)
        self.select = Select(choices, choices[0][0])
        self.select.setAccessibleName(label)
        self.select.chosen.connect(lambda _: self.changed.emit())
        self._label.setBuddy(self.select)
        self.top.addWidget(self.select)

    @property
    def value(self) -> str:
        return self.select.value

    def set_value(self, value: str) -> None:
        """Shows ``value`` without announcing it."""
        self.select.set_value(value)
