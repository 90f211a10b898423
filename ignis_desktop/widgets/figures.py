"""A strip of figures, each a number with what it counts under it."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from ignis_desktop.widgets.theme import tokens

_NARROWEST = 108
"""Pixels of one figure, below which they go on in a second line."""


@dataclass(frozen=True, slots=True)
class Figure:
    """``fill`` is a share from 0 to 1, shown as a bar; None shows none."""

    value: str
    name: str
    tip: str = ""
    fill: float | None = None


def share_text(share: float) -> str:
    """ "86 %" without a space; what is not quite nothing or everything says so."""
    if 0 < share < 0.005:
        return "<1%"
    return ">99%" if 0.995 <= share < 1 else f"{share:.0%}"


class FillBar(QWidget):
    """How full something is."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._share = 0.0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(4)

    def sizeHint(self) -> QSize:
        return QSize(80, 4)

    def show_share(self, share: float) -> None:
        if share != self._share:
            self._share = share
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = tokens()
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(theme.track))
        painter.fillRect(QRect(0, 0, round(self.width() * self._share), self.height()), QColor(theme.secondary))
        painter.end()


class _Cell(QWidget):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._value = QLabel()
        self._value.setProperty("kind", "figure")
        self._name = QLabel()
        self._name.setProperty("kind", "small")
        self._bar = FillBar()
        self._shown: Figure | None = None
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(1)
        column.addWidget(self._value)
        column.addWidget(self._name)
        column.addSpacing(2)
        column.addWidget(self._bar)
        column.addStretch(1)

    def show_figure(self, figure: Figure) -> None:
        if figure == self._shown:
            return
        self._shown = figure
        self._value.setText(figure.value)
        self._name.setText(figure.name)
        self.setToolTip(figure.tip)
        self.setAccessibleName(f"{figure.name}: {figure.value}")
        self._bar.setVisible(figure.fill is not None)
        self._bar.show_share(figure.fill or 0.0)


class FigureStrip(QWidget):
    """The figures in equal columns, in as many lines as the width asks for."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._cells: list[_Cell] = []
        self._columns = 0
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(12)
        self._grid.setAlignment(Qt.AlignmentFlag.AlignTop)

    def show_figures(self, figures: list[Figure]) -> None:
        """The same number of figures every time."""
        if not self._cells:
            self._cells = [_Cell(self) for _ in figures]
            self._arrange()
        for cell, figure in zip(self._cells, figures, strict=True):
            cell.show_figure(figure)

    def resizeEvent(self, event: object) -> None:
        self._arrange()

    def _arrange(self) -> None:
        if not self._cells:
            return
        fitting = max(1, self.width() // (_NARROWEST + 16))
        lines = -(-len(self._cells) // fitting)
        columns = -(-len(self._cells) // lines)
        if columns == self._columns:
            return
        for column in range(self._columns):
            self._grid.setColumnStretch(column, 0)
        self._columns = columns
        for i, cell in enumerate(self._cells):
            self._grid.addWidget(cell, i // columns, i % columns)
        for column in range(columns):
            self._grid.setColumnStretch(column, 1)
