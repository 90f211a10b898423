"""The rows of all lanes under their heading, as one thing that the keyboard walks through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from ignis_desktop.widgets.buttons import button
from ignis_desktop.widgets.lane_heading import HEIGHT as HEADING_HEIGHT
from ignis_desktop.widgets.lane_heading import LaneHeading
from ignis_desktop.widgets.lane_row import LaneRow
from ignis_desktop.widgets.lane_view import LaneView
from ignis_desktop.widgets.texts import tr


class LaneList(QWidget):
    cancel_wanted = Signal(str)
    park_wanted = Signal(str)
    chat_wanted = Signal()
    pointed = Signal(int)
    """The lane that mouse or keyboard are on, −1 for none."""

    def __init__(self, tip: Callable[[int], str], parent: QWidget | None = None) -> None:
        """``tip``: everything about the request on a lane."""
        super().__init__(parent)
        self._tip = tip
        self.rows: list[LaneRow] = []
        self.heading = LaneHeading()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self._column.addWidget(self.heading)
        self.hint = self._make_hint()

    def _make_hint(self) -> QFrame:
        """What to do while every lane is free; lies over the empty rows."""
        hint = QFrame(self)
        hint.setObjectName("popup")
        row = QHBoxLayout(hint)
        row.setContentsMargins(16, 10, 10, 10)
        row.setSpacing(16)
        row.addWidget(QLabel(tr("lanes.all_free")))
        go = button(tr("lanes.open_chat"), "primary")
        go.clicked.connect(self.chat_wanted)
        row.addWidget(go)
        hint.hide()
        return hint

    def note(self, states: Sequence[tuple[str, str, str]], now: float) -> None:
        """(state, class, request) of every lane at ``now``, for their histories."""
        if len(states) != len(self.rows):
            self._set_count(len(states))
        for row, (state, tint, request) in zip(self.rows, states, strict=True):
            row.history.note(now, state, tint, request)

    def show_views(self, views: Sequence[LaneView]) -> None:
        """As many as were noted last."""
        for row, view in zip(self.rows, views, strict=True):
            row.show_view(view)

    def advance(self, now: float) -> None:
        """Moves all timelines on to ``now``."""
        for row in self.rows:
            row.history.forget(now)
            row.advance(now)
        nothing = bool(self.rows) and not any(row.history for row in self.rows)
        if nothing == self.hint.isHidden():
            self.hint.setVisible(nothing)
            self._place_hint()

    def mark(self, lane: int) -> None:
        """Lights up one row; −1: none."""
        for row in self.rows:
            row.mark(row.lane == lane)

    def _set_count(self, count: int) -> None:
        for row in self.rows:
            self._column.removeWidget(row)
            row.hide()
            row.deleteLater()
        self.rows = [LaneRow(lane, partial(self._tip, lane), self) for lane in range(count)]
        for row in self.rows:
            row.cancel_wanted.connect(self.cancel_wanted)
            row.park_wanted.connect(self.park_wanted)
            row.pointed.connect(self.pointed)
            row.stepped.connect(self._step)
            self._column.addWidget(row)
        self.hint.raise_()

    def _step(self, lane: int, by: int) -> None:
        if 0 <= lane + by < len(self.rows):
            self.rows[lane + by].setFocus(Qt.FocusReason.TabFocusReason)

    def _place_hint(self) -> None:
        self.hint.adjustSize()
        free = self.height() - HEADING_HEIGHT
        self.hint.move(
            (self.width() - self.hint.width()) // 2, HEADING_HEIGHT + max(0, (free - self.hint.height()) // 2)
        )

    def resizeEvent(self, event: QEvent) -> None:
        self._place_hint()
