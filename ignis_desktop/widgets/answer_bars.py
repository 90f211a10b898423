"""Answers as bars on one scale from 0 to 1, with how much of all probability their labels hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QVBoxLayout, QWidget

from ignis_desktop.widgets.figures import share_text
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.theme import tokens, ui_font

_BAR, _LINE = 22, 20
_LABELS = 0.38
"""Share of the width that labels take."""
_FIGURE = 48
_SHOWN = 12
"""Bars of one question; of more only the longest are shown."""
_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class Bar:
    """``picked``: it is (part of) the answer."""

    label: str
    share: float
    picked: bool = False


@dataclass(frozen=True, slots=True)
class Answered:
    """One question's answer. ``verdict``: the answer in words; ``fault``: why there is none; ``mass``: what the labels
    hold of all probability, None where that says nothing."""

    id: str
    question: str
    verdict: str = ""
    fault: str = ""
    bars: tuple[Bar, ...] = ()
    mass: float | None = None


class AnswerList(QWidget):
    """The answers one below the other, and the scale above them."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.blocks: list[AnswerBlock] = []
        self._scale = _Scale()
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(8)
        self._column.addWidget(self._scale)
        self._column.addStretch(1)

    def show_answers(self, answers: Sequence[Answered]) -> None:
        for block in self.blocks:
            self._column.removeWidget(block)
            block.hide()
            block.deleteLater()
        self.blocks = [AnswerBlock(answer) for answer in answers]
        for block in self.blocks:
            self._column.insertWidget(self._column.count() - 1, block)
        self._scale.setVisible(any(answer.bars for answer in answers))


class AnswerBlock(QFrame):
    def __init__(self, answer: Answered, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("card")
        self.answer = answer
        bars = sorted(range(len(answer.bars)), key=lambda i: -answer.bars[i].share)[:_SHOWN]
        self._bars = [answer.bars[i] for i in sorted(bars)]
        self._left_out = len(answer.bars) - len(self._bars)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        spoken = ", ".join(f"{bar.label} {share_text(bar.share)}" for bar in self._bars)
        self.setAccessibleName(f"{answer.question}: {answer.verdict or answer.fault}. {spoken}")
        self.setToolTip("" if answer.mass is None else tr("decide.mass_tip"))
        self._height = 0

    def sizeHint(self) -> QSize:
        return QSize(240, self.heightForWidth(max(self.width(), 240)))

    def minimumSizeHint(self) -> QSize:
        return QSize(160, self.sizeHint().height())

    def heightForWidth(self, width: int) -> int:
        height = 12 + self._words_height(self.answer.question, width, _font(12))
        height += self._words_height(self.answer.verdict or self.answer.fault, width, _font(14, bold=True)) + 8
        height += len(self._bars) * _BAR
        height += _LINE * (bool(self._left_out) + (self.answer.mass is not None))
        return height + 10

    def _words_height(self, text: str, width: int, font: QFont) -> int:
        box = QFontMetrics(font).boundingRect(0, 0, width - 28, 10_000, Qt.TextFlag.TextWordWrap, text or " ")
        return box.height()

    def resizeEvent(self, event: object) -> None:
        height = self.heightForWidth(self.width())
        if height != self._height:
            self._height = height
            self.setFixedHeight(height)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        theme, answer = tokens(), self.answer
        painter = QPainter(self)
        inner = self.rect().adjusted(14, 10, -14, 0)
        y = inner.top()
        for text, font, colour in (
            (answer.question, _font(12), theme.secondary),
            (answer.verdict or answer.fault, _font(14, bold=True), theme.bad if answer.fault else theme.text),
        ):
            height = self._words_height(text, self.width(), font)
            painter.setFont(font)
            painter.setPen(QColor(colour))
            painter.drawText(QRect(inner.left(), y, inner.width(), height), Qt.TextFlag.TextWordWrap, text)
            y += height + 2
        y += 4
        left, right = scale_edges(self.width())
        self._draw_grid(painter, left, right, y, y + len(self._bars) * _BAR)
        painter.setFont(_font(13))
        for bar in self._bars:
            self._draw_bar(painter, bar, QRect(inner.left(), y, inner.width(), _BAR), left, right)
            y += _BAR
        painter.setFont(_font(12))
        painter.setPen(QColor(theme.secondary))
        if self._left_out:
            words = tr("decide.left_out", count=self._left_out)
            painter.drawText(QRect(inner.left(), y, inner.width(), _LINE), Qt.AlignmentFlag.AlignVCenter, words)
            y += _LINE
        if answer.mass is not None:
            self._draw_mass(painter, answer.mass, QRect(inner.left(), y, inner.width(), _LINE), left, right)
        painter.end()

    @staticmethod
    def _draw_grid(painter: QPainter, left: int, right: int, top: int, bottom: int) -> None:
        painter.setPen(QColor(tokens().line))
        for tick in _TICKS:
            x = round(left + (right - left) * tick)
            painter.drawLine(x, top, x, bottom)

    @staticmethod
    def _draw_bar(painter: QPainter, bar: Bar, row: QRect, left: int, right: int) -> None:
        theme = tokens()
        painter.setPen(QColor(theme.text if bar.picked else theme.secondary))
        font = painter.font()
        font.setBold(bar.picked)
        painter.setFont(font)
        room = left - row.left() - 8
        label = painter.fontMetrics().elidedText(bar.label, Qt.TextElideMode.ElideRight, room)
        words = QRect(row.left(), row.top(), room, row.height())
        painter.drawText(words, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, label)
        length = max(1.0, (right - left) * min(max(bar.share, 0.0), 1.0))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.text if bar.picked else theme.disabled))
        painter.drawRoundedRect(QRectF(left, row.top() + 6, length, row.height() - 12), 2, 2)
        painter.setPen(QColor(theme.text if bar.picked else theme.secondary))
        figure = QRect(right, row.top(), row.right() - right + 1, row.height())
        painter.drawText(figure, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, share_text(bar.share))

    @staticmethod
    def _draw_mass(painter: QPainter, mass: float, row: QRect, left: int, right: int) -> None:
        """Little of it means that the model wanted to say something else."""
        theme = tokens()
        colour = QColor(theme.secondary if mass >= 0.5 else theme.warn)
        painter.setPen(colour)
        room = left - row.left() - 8
        words = painter.fontMetrics().elidedText(tr("decide.mass"), Qt.TextElideMode.ElideRight, room)
        painter.drawText(QRect(row.left(), row.top(), room, row.height()), Qt.AlignmentFlag.AlignVCenter, words)
        painter.fillRect(QRectF(left, row.center().y(), right - left, 2), QColor(theme.track))
        painter.fillRect(QRectF(left, row.center().y(), (right - left) * min(mass, 1.0), 2), colour)
        figure = QRect(right, row.top(), row.right() - right + 1, row.height())
        painter.drawText(figure, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, share_text(mass))


class _Scale(QWidget):
    """The figures of the scale, above the blocks."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(18)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setFont(_font(12))
        painter.setPen(QColor(tokens().secondary))
        left, right = scale_edges(self.width())
        for tick in _TICKS:
            x = round(left + (right - left) * tick)
            painter.drawText(QRect(x - 24, 0, 48, 16), Qt.AlignmentFlag.AlignCenter, f"{tick:g}")
        painter.end()


def scale_edges(width: int) -> tuple[int, int]:
    """Where 0 and 1 are in a block of ``width`` pixels: the same in all of them."""
    return 14 + round((width - 28) * _LABELS), width - 14 - _FIGURE


def _font(pixels: int, *, bold: bool = False) -> QFont:
    font = ui_font(pixels)
    font.setBold(bold)
    return font
