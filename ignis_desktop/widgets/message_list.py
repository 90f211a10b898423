"""The messages of a conversation, in a column. Only messages near the visible part have widgets.

Heights are measured a few at a time between events, nearest first; until then they are guessed. What is in view
never moves because something above it was measured, and the view follows the end only if it was there.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from PySide6.QtCore import QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QWidget

from ignis_desktop.widgets.buttons import IconButton
from ignis_desktop.widgets.message_item import ChatItem, MessageRender
from ignis_desktop.widgets.message_view import MessageView
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.tokens import COLUMN_WIDTH

_MARGIN = 24
_TOP = 20
_AHEAD = 400
"""Pixels beyond the visible part for which widgets are kept."""
_SLICE_SECONDS = 0.006
_RENDERS_KEPT = 48
_NEAR_END = 24


class MessageList(QAbstractScrollArea):
    """Shows ``ChatItem``s in order; what is pressed in them comes out of ``action`` as (what, message id)."""

    action = Signal(str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.viewport().setAutoFillBackground(False)
        self._items: list[ChatItem] = []
        self._index: dict[str, int] = {}
        self._renders: dict[str, MessageRender] = {}
        self._heights: dict[str, int] = {}
        self._guesses: dict[str, int] = {}
        self._offsets: list[int] = [0]
        self._views: dict[str, MessageView] = {}
        self._at_end = True
        self._placing = False
        self._measure = QTimer(self, interval=0)
        self._measure.timeout.connect(self._measure_some)
        self._down = IconButton("arrow-down", tr("chat.to_end"), self, size=32)
        self._down.setObjectName("card")
        self._down.clicked.connect(self.scroll_to_end)
        self._down.hide()

    @property
    def at_end(self) -> bool:
        """Whether the view follows the end."""
        return self._at_end

    @property
    def items(self) -> Sequence[ChatItem]:
        return self._items

    @property
    def widgets_alive(self) -> int:
        """Number of message widgets that exist now."""
        return len(self._views)

    def view_of(self, item_id: str) -> MessageView | None:
        """The widget of a message, None when it is not near the visible part."""
        return self._views.get(item_id)

    def set_items(self, items: Sequence[ChatItem], *, to_end: bool = False) -> None:
        """Shows other messages. Those that were there before keep what was laid out for them."""
        previous = {item.id: item for item in self._items}
        self._items = list(items)
        self._index = {item.id: i for i, item in enumerate(self._items)}
        for gone in [key for key in previous if key not in self._index]:
            self._renders.pop(gone, None)
            self._heights.pop(gone, None)
            self._guesses.pop(gone, None)
            self._remove_view(gone)
        for item in self._items:
            if previous.get(item.id) != item:
                self._heights.pop(item.id, None)
                if render := self._renders.get(item.id):
                    render.update(item)
        if to_end:
            self._at_end = True
        self._relayout()

    def update_item(self, item: ChatItem) -> None:
        """Shows the new state of one message."""
        self._items[self._index[item.id]] = item
        if render := self._renders.get(item.id):
            render.update(item)
        self._heights.pop(item.id, None)
        self._relayout(only=item.id)

    def restyle(self) -> None:
        """Lays everything out anew: colours are part of the documents."""
        for key in list(self._views):
            self._remove_view(key)
        self._renders.clear()
        self._relayout()

    def scroll_to_end(self) -> None:
        self._at_end = True
        self._relayout()

    def _column(self) -> tuple[int, int]:
        # Of the whole widget, so that the column does not move when the scroll bar comes and goes.
        available = self.width()
        width = max(200, min(COLUMN_WIDTH, available - 2 * _MARGIN))
        return (available - width) // 2, width

    def _render_of(self, item: ChatItem) -> MessageRender:
        render = self._renders.pop(item.id, None) or MessageRender(item)
        self._renders[item.id] = render
        if len(self._renders) > _RENDERS_KEPT:
            for key in [key for key in self._renders if key not in self._views and key != item.id][:8]:
                del self._renders[key]
        return render

    def _height(self, item: ChatItem, width: int) -> int:
        known = self._heights.get(item.id) or self._guesses.get(item.id)
        if known is None:
            known = self._guesses[item.id] = MessageRender.guess(item, width)
        return known

    def _relayout(self, only: str | None = None) -> None:
        """Measures what is in view, sets the scroll range and places the widgets."""
        if self._placing:
            return
        self._placing = True
        x, width = self._column()
        bar = self.verticalScrollBar()
        anchor = None if self._at_end else self._anchor()
        for _ in range(4):  # measuring what came into view may bring more into view
            heights = [self._height(item, width) for item in self._items]
            self._offsets = list(accumulate(heights, initial=_TOP))
            height = self.viewport().height()
            bar.setPageStep(height)
            bar.setSingleStep(40)
            bar.setRange(0, max(0, self._offsets[-1] - height))
            if self._at_end:
                bar.setValue(bar.maximum())
            elif anchor is not None and anchor[0] in self._index:
                bar.setValue(self._offsets[self._index[anchor[0]]] + anchor[1])
            fresh = [item for item in self._near() if item.id not in self._heights]
            if not fresh:
                break
            for item in fresh:
                self._heights[item.id] = self._render_of(item).layout(width)[1]
        self._place(x, width, only)
        self._placing = False
        self._update_down_button()
        if len(self._heights) < len(self._items) and not self._measure.isActive():
            self._measure.start()

    def _anchor(self) -> tuple[str, int] | None:
        """The first visible message and how far the view's top is below its own."""
        if not self._items or len(self._offsets) != len(self._items) + 1:
            return None
        value = self.verticalScrollBar().value()
        index = min(max(bisect_right(self._offsets, value) - 1, 0), len(self._items) - 1)
        return self._items[index].id, value - self._offsets[index]

    def _near(self) -> list[ChatItem]:
        value = self.verticalScrollBar().value()
        first = max(bisect_right(self._offsets, value - _AHEAD) - 1, 0)
        last = bisect_right(self._offsets, value + self.viewport().height() + _AHEAD)
        return self._items[first:last]

    def _place(self, x: int, width: int, only: str | None) -> None:
        near = self._near()
        wanted = {item.id for item in near}
        for key in [key for key in self._views if key not in wanted]:
            self._remove_view(key)
        value = self.verticalScrollBar().value()
        for item in near:
            view = self._views.get(item.id)
            height = self._height(item, width)
            stale = only in (None, item.id)
            if view is None:
                view = MessageView(self._render_of(item), self.viewport())
                view.action.connect(self.action)
                self._views[item.id] = view
                stale = True
            if stale:
                view.sync(width)
            view.setGeometry(x, self._offsets[self._index[item.id]] - value, width, height)
            view.show()

    def _remove_view(self, key: str) -> None:
        view = self._views.pop(key, None)
        if view is not None:
            view.hide()
            view.deleteLater()

    def _measure_some(self) -> None:
        """Measures messages that were only guessed, nearest to the view first, for a few milliseconds."""
        _, width = self._column()
        deadline = time.perf_counter() + _SLICE_SECONDS
        missing = [i for i, item in enumerate(self._items) if item.id not in self._heights]
        if not missing:
            self._measure.stop()
            return
        centre = bisect_right(self._offsets, self.verticalScrollBar().value())
        for i in sorted(missing, key=lambda i: abs(i - centre)):
            item = self._items[i]
            render = self._renders.get(item.id) or MessageRender(item)
            self._heights[item.id] = render.layout(width)[1]
            if time.perf_counter() > deadline:
                break
        self._relayout(only="")

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        if self._placing:
            return
        bar = self.verticalScrollBar()
        self._at_end = bar.value() >= bar.maximum() - _NEAR_END
        self._relayout(only="")

    def resizeEvent(self, event: QResizeEvent) -> None:
        if event.oldSize().width() != event.size().width():
            # What is measured at another width is still the best guess.
            self._guesses |= self._heights
            self._heights.clear()
            self._relayout()
        else:
            self._relayout(only="")

    def _update_down_button(self) -> None:
        shown = not self._at_end and self.verticalScrollBar().maximum() > 0
        self._down.setVisible(shown)
        if shown:
            area = self.viewport().geometry()
            self._down.move(area.center().x() - 16, area.bottom() - 44)
            self._down.raise_()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange and self._items:
            self.restyle()
        super().changeEvent(event)
