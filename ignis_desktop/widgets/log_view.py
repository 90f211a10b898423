"""Rows of a text of any length: only what is visible is read and drawn."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from PySide6.QtCore import QPoint, QRect, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFontMetricsF,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

from ignis_desktop.widgets.marked_scroll_bar import WIDTH, MarkedScrollBar, Marks
from ignis_desktop.widgets.monospace import columns, shown, visible
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.theme import mono_font, tokens

Spans = Callable[[str], Sequence[tuple[int, int]]]
_MOST = 2**31 - 1
"""Rows that a scroll bar can tell apart."""
_ROW = 20
_PAD = 12
_WHEEL_ROWS = 3
_SLOW_SECONDS = 0.01
"""A search that takes longer in one row is not shown inside rows any more."""


class Rows(Protocol):
    """What is shown. ``number``: the line that begins in a row, None where one goes on."""

    def __len__(self) -> int: ...

    def text(self, row: int) -> str: ...

    def number(self, row: int) -> int | None: ...

    @property
    def last_number(self) -> int: ...


class LogView(QAbstractScrollArea):
    """The selection is whole rows, ``selected``: from where it began to the current one."""

    current_changed = Signal(int)
    copy_wanted = Signal(object)
    """A range of rows."""
    menu_wanted = Signal(int, QPoint)
    """A row, and the place on the screen."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("logView")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("log.view"))
        self.setVerticalScrollBar(bar := MarkedScrollBar(self))
        self.bar = bar
        self.bar.setFixedWidth(WIDTH)
        self.bar.mark_pressed.connect(self.go_to)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self.viewport().setCursor(Qt.CursorShape.IBeamCursor)
        self._rows: Rows | None = None
        self._current = self._anchor = 0
        self._spans: Spans | None = None
        self._widest = 0
        """Columns of the longest row that was drawn."""
        self._wheel = 0.0
        self._font = mono_font(13)
        self._letter = QFontMetricsF(self._font).horizontalAdvance("0" * 100) / 100

    # What is shown

    @property
    def count(self) -> int:
        return 0 if self._rows is None else min(len(self._rows), _MOST)

    @property
    def current(self) -> int:
        return self._current

    @property
    def selected(self) -> range:
        low, high = sorted((self._current, self._anchor))
        return range(low, high + 1) if self.count else range(0)

    @property
    def first(self) -> int:
        """The uppermost visible row."""
        return self.bar.value()

    @property
    def visible_rows(self) -> int:
        """Rows that are visible to their last pixel."""
        return max(1, self.viewport().height() // _ROW)

    def show_rows(self, rows: Rows | None, current: int = 0) -> None:
        """Other rows; the one that shall be the current one."""
        self._rows = rows
        self._widest = 0
        self.horizontalScrollBar().setValue(0)
        self._fit()
        self.show_marks(Marks())
        self._current = self._anchor = -1
        self.go_to(current)

    def show_marks(self, marks: Marks) -> None:
        self.bar.show_marks(marks, self.count)
        self.viewport().update()

    def show_spans(self, spans: Spans | None) -> None:
        """What to mark inside rows: places of what is searched for."""
        self._spans = spans
        self.viewport().update()

    def go_to(self, row: int, *, extend: bool = False, centre: bool = True) -> None:
        """Makes a row the current one; scrolls only when it is not in view."""
        if not self.count:
            return
        row = max(0, min(row, self.count - 1))
        moved = row != self._current
        self._current = row
        if not extend:
            self._anchor = row
        above, room = self.first, self.visible_rows
        if not above <= row < above + room:
            if centre:
                self.bar.setValue(row - room // 2)
            else:
                self.bar.setValue(row if row < above else row - room + 1)
        self.viewport().update()
        if moved:
            assert self._rows is not None
            number = self._rows.number(row)
            self.setAccessibleDescription(f"{'' if number is None else number} {self._rows.text(row)}")
            self.current_changed.emit(row)

    def centre(self, row: int) -> None:
        """The same with the row in the middle."""
        self.go_to(row)
        self.bar.setValue(row - self.visible_rows // 2)

    def _fit(self) -> None:
        self.bar.setRange(0, max(0, self.count - self.visible_rows))
        self.bar.setPageStep(self.visible_rows)
        room = max(1, int((self.viewport().width() - self._gutter()) / self._letter))
        across = self.horizontalScrollBar()
        across.setRange(0, max(0, self._widest + 1 - room))
        across.setPageStep(room)
        across.setSingleStep(8)

    def _gutter(self) -> int:
        """Pixels that line numbers take."""
        digits = len(f"{self._rows.last_number:,}") if self._rows is not None else 1
        return round(digits * self._letter) + 2 * _PAD

    # Drawing

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = tokens()
        painter = QPainter(self.viewport())
        painter.fillRect(self.viewport().rect(), QColor(theme.panel))
        if self._rows is None:
            painter.end()
            return
        painter.setFont(self._font)
        gutter, width = self._gutter(), self.viewport().width()
        before = self._widest
        for place in range(self.viewport().height() // _ROW + 1):
            row = self.first + place
            if row >= self.count:
                break
            box = QRect(0, place * _ROW, width, _ROW)
            self._draw_ground(painter, row, box)
            number = self._rows.number(row)
            if number is not None:
                painter.setPen(QColor(theme.text if row == self.bar.marks.picked else theme.secondary))
                digits = box.adjusted(0, 0, gutter - width - _PAD, 0)
                painter.drawText(digits, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, f"{number:,}")
            painter.save()
            painter.setClipRect(box.adjusted(gutter, 0, 0, 0))
            self._draw_text(painter, self._rows.text(row), row, box.adjusted(gutter, 0, 0, 0))
            painter.restore()
        painter.end()
        if self._widest != before:
            self._fit()

    def _draw_ground(self, painter: QPainter, row: int, box: QRect) -> None:
        theme, marks = tokens(), self.bar.marks
        if row == marks.picked:
            painter.fillRect(box, QColor(theme.selection))
        elif row in self.selected and (len(self.selected) > 1 or self.hasFocus()):
            painter.fillRect(box, QColor(theme.pressed))
        elif row in marks.ranked:
            painter.fillRect(box, QColor(theme.hover))
        if row == marks.picked:
            painter.fillRect(QRect(0, box.y(), 3, box.height()), QColor(theme.accent))
        elif row in marks.ranked:
            painter.fillRect(QRect(0, box.y(), 3, box.height()), QColor(theme.secondary))
        if row == self._current and self.hasFocus():
            painter.setPen(QColor(theme.accent))
            painter.drawRect(box.adjusted(0, 0, -1, -1))

    def _draw_text(self, painter: QPainter, text: str, row: int, box: QRect) -> None:
        theme = tokens()
        line = shown(text)
        edges = columns(line)
        self._widest = max(self._widest, edges[-1])
        offset = self.horizontalScrollBar().value()
        a, b = visible(edges, offset, offset + int(box.width() / self._letter) + 2)
        for start, end in self._found_in(line):
            if end > a and start < b:
                left, right = ((edges[at] - offset) * self._letter for at in (start, end))
                place = QRect(box.x() + round(left), box.y() + 2, round(right - left), _ROW - 4)
                painter.fillRect(place, QColor(theme.pressed if row != self.bar.marks.picked else theme.panel))
                painter.setPen(QColor(theme.secondary))
                painter.drawRect(place.adjusted(0, 0, -1, -1))
        painter.setPen(QColor(theme.text))
        if line.isascii():
            self._draw_piece(painter, line[a:b], (edges[a] - offset) * self._letter, box)
            return
        for at in range(a, b):  # each in its own column: a fallback font's letters have widths of their own
            self._draw_piece(painter, line[at], (edges[at] - offset) * self._letter, box)

    @staticmethod
    def _draw_piece(painter: QPainter, text: str, left: float, box: QRect) -> None:
        place = box.translated(round(left), 0)
        place.setWidth(max(1, box.right() - place.left()))
        painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextDontClip, text)

    def _found_in(self, line: str) -> Sequence[tuple[int, int]]:
        if self._spans is None:
            return ()
        began = time.perf_counter()
        spans = self._spans(line)
        if time.perf_counter() - began > _SLOW_SECONDS:
            self._spans = None
        return spans

    # Keys and mouse

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy_wanted.emit(self.selected)
            return
        if event.matches(QKeySequence.StandardKey.SelectAll):
            self._anchor = 0
            self.go_to(self.count - 1, extend=True, centre=False)
            return
        page, key = self.visible_rows, Qt.Key
        steps = {key.Key_Up: -1, key.Key_Down: 1, key.Key_PageUp: -page, key.Key_PageDown: page}
        ends = {key.Key_Home: -self.count, key.Key_End: self.count}
        step = steps.get(Qt.Key(event.key()), ends.get(Qt.Key(event.key())))
        across = {key.Key_Left: -8, key.Key_Right: 8}.get(Qt.Key(event.key()))
        if event.modifiers() & (Qt.KeyboardModifier.AltModifier | Qt.KeyboardModifier.MetaModifier):
            event.ignore()
        elif step is not None:
            extend = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self.go_to(self._current + step, extend=extend, centre=False)
        elif across is not None:
            bar = self.horizontalScrollBar()
            bar.setValue(bar.value() + across)
        else:
            super().keyPressEvent(event)

    def _row_at(self, y: float) -> int:
        return self.first + int(y // _ROW)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        row = self._row_at(event.position().y())
        if event.button() == Qt.MouseButton.LeftButton and row < self.count:
            extend = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self.go_to(row, extend=extend, centre=False)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.go_to(self._row_at(event.position().y()), extend=True, centre=False)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        by_mouse = event.reason() == QContextMenuEvent.Reason.Mouse
        row = self._row_at(event.pos().y()) if by_mouse else self._current
        if row >= self.count:
            return
        if row not in self.selected:
            self.go_to(row, centre=False)
        below = self.viewport().mapToGlobal(QPoint(self._gutter(), (row - self.first + 1) * _ROW))
        self.menu_wanted.emit(row, event.globalPos() if by_mouse else below)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier or event.angleDelta().x():
            super().wheelEvent(event)
            return
        pixels = event.pixelDelta().y()
        self._wheel -= pixels / _ROW if pixels else event.angleDelta().y() / 120 * _WHEEL_ROWS
        whole = int(self._wheel)
        self._wheel -= whole
        self.bar.setValue(self.bar.value() + whole)
        event.accept()

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        self.viewport().update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        before = (event.oldSize().height() // _ROW) if event.oldSize().isValid() else 0
        seen = self.first <= self._current < self.first + before
        super().resizeEvent(event)
        self._fit()
        if seen and self._current >= self.first + self.visible_rows:
            self.bar.setValue(self._current - self.visible_rows // 2)

    def focusInEvent(self, event: object) -> None:
        self.viewport().update()

    def focusOutEvent(self, event: object) -> None:
        self.viewport().update()
