"""The Lanes panel: who runs where, what the pages hold, who waits, and what is saved by reuse."""

from __future__ import annotations

import time

from PySide6.QtCore import QEvent, Qt, QTimer, Signal
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLabel, QStackedWidget, QVBoxLayout, QWidget

from engine.messages import EngineError, EngineSnapshot, LaneSnapshot, WaitingSnapshot
from ignis_desktop.engine_thread import LIVE_MS, EngineThread
from ignis_desktop.panels import lane_words as words
from ignis_desktop.panels.model_line import loading_text, model_line
from ignis_desktop.widgets.empty_state import EmptyState
from ignis_desktop.widgets.figures import FigureStrip
from ignis_desktop.widgets.lane_list import LaneList
from ignis_desktop.widgets.page_legend import PageLegend
from ignis_desktop.widgets.page_map import PageMap
from ignis_desktop.widgets.panel import PanelHeader, ScrolledColumn, section
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.toast import Toast
from ignis_desktop.widgets.waiting_table import WaitingTable

_SLOW_SECONDS = 0.25
"""How often numbers that nobody can read faster are written anew."""
_NARROW = 820
_WIDTH = 1600
"""Pixels beyond which the panel grows no wider."""


class LanesPanel(QWidget):
    """Remembers the last minute all the time; draws only while it is seen."""

    chat_wanted = Signal()
    settings_wanted = Signal()

    def __init__(self, engine: EngineThread, toast: Toast, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._toast = toast
        self._snapshot = EngineSnapshot("empty")
        self._shown: EngineSnapshot | None = None
        self._slow_shown = 0.0
        self._parked_since: dict[str, float] = {}
        self.setObjectName("panelBody")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.header = PanelHeader(tr("nav.lanes"))
        self.empty = EmptyState()
        self.empty.pressed.connect(self.settings_wanted)
        self._body = ScrolledColumn(_WIDTH, margin=20)
        self._pages = QStackedWidget()
        self._pages.addWidget(self.empty)
        self._pages.addWidget(self._body)
        self._fill(self._body.column)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.header)
        layout.addWidget(self._pages, 1)
        self._timer = QTimer(self, interval=LIVE_MS, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self.frame)

    # Building

    def _fill(self, column: QVBoxLayout) -> None:
        column.setSpacing(20)
        self.lanes = LaneList(self._tip)
        self.lanes.cancel_wanted.connect(self.cancel)
        self.lanes.park_wanted.connect(self.park)
        self.lanes.chat_wanted.connect(self.chat_wanted)
        self.map = PageMap(lambda page, code: words.page_tip(page, code, self._snapshot.lanes))
        self.lanes.pointed.connect(self.map.point_at)
        self.map.pointed.connect(self.lanes.mark)
        self.waiting = WaitingTable()
        self.waiting.setMinimumHeight(148)
        self.waiting.cancel_wanted.connect(self.cancel)
        self._legend = PageLegend()
        self._page_summary, self._waiting_summary = QLabel(), QLabel()
        self._middle = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._middle.setSpacing(24)
        self._middle.addLayout(_part(tr("lanes.pages"), self._page_summary, self.map, self._legend), 1)
        self._middle.addLayout(_part(tr("lanes.waiting"), self._waiting_summary, self.waiting), 1)
        self._figures = FigureStrip()
        column.addWidget(self.lanes)
        column.addLayout(self._middle, 1)
        column.addWidget(self._figures)

    # Showing

    def show_snapshot(self, snapshot: EngineSnapshot) -> None:
        """Takes the engine's newest state; it is drawn with the next frame, if anybody sees it."""
        self._snapshot = snapshot
        since = self._parked_since
        self._parked_since = {one.request_id: since.get(one.request_id, snapshot.time) for one in snapshot.parked}
        self.lanes.note([_running(lane) for lane in _with_parked(snapshot)], snapshot.time)

    def frame(self, now: float | None = None) -> None:
        """Draws what has changed. ``now``: the moment at the right end of the timelines, the clock's by default."""
        now = time.monotonic() if now is None else now
        snapshot = self._snapshot
        if snapshot is not self._shown:
            self._shown = snapshot
            self._show_fast(snapshot)
        if now - self._slow_shown >= _SLOW_SECONDS or now < self._slow_shown:
            self._slow_shown = now
            self._show_slow(snapshot)
        self.lanes.advance(now)

    def _show_fast(self, snapshot: EngineSnapshot) -> None:
        self.header.set_subject(model_line(snapshot))
        serves = snapshot.state in ("ready", "draining")
        self._pages.setCurrentWidget(self._body if serves else self.empty)
        if not serves:
            self.empty.show_state(tr("lanes.not_loaded"), loading_text(snapshot), tr("chat.open_settings"))
            return
        parked = {lane.lane: lane for lane in snapshot.parked}
        self.lanes.show_views([words.lane_view(lane, parked.get(lane.lane)) for lane in snapshot.lanes])
        self.map.show_pages(snapshot.page_map, [lane.request_class or "" for lane in snapshot.lanes])

    def _show_slow(self, snapshot: EngineSnapshot) -> None:
        self.waiting.show_rows(words.waiting_rows(snapshot, self._parked_since))
        self._figures.show_figures(words.figures(snapshot))
        self._legend.show_items(words.page_kinds(snapshot))
        self._page_summary.setText(words.page_summary(snapshot))
        self._waiting_summary.setText(words.waiting_summary(snapshot))
        self.map.setAccessibleName(f"{tr('lanes.pages')}: {words.page_summary(snapshot)}")

    def _tip(self, lane: int) -> str:
        snapshot = self._snapshot
        parked = next((one for one in snapshot.parked if one.lane == lane), None)
        running = snapshot.lanes[lane]
        return words.lane_tip(parked if parked is not None and running.state == "idle" else running)

    # Doing

    def cancel(self, request: str) -> None:
        """Ends a request that runs, waits or is parked."""
        title = self._title(request)
        self._engine.cancel(request)
        self._toast.say(tr("lanes.cancelled", title=title))

    def park(self, request: str) -> None:
        """Makes a running agent give up its lane for a while."""
        title = self._title(request)
        try:
            self._engine.park(request)
        except EngineError as error:
            self._toast.say(error.message)
        else:
            self._toast.say(tr("lanes.parked", title=title))

    def _title(self, request: str) -> str:
        snapshot = self._snapshot
        every: list[LaneSnapshot | WaitingSnapshot] = [*snapshot.lanes, *snapshot.parked, *snapshot.waiting]
        return next((words.title_of(one) for one in every if one.request_id == request), request)

    # Seen or not

    def showEvent(self, event: QEvent) -> None:
        self._engine.set_live(True)
        self._slow_shown = 0.0
        self.frame()
        self._timer.start()

    def hideEvent(self, event: QEvent) -> None:
        self._timer.stop()
        self._engine.set_live(False)

    def resizeEvent(self, event: QEvent) -> None:
        down, right = QBoxLayout.Direction.TopToBottom, QBoxLayout.Direction.LeftToRight
        self._middle.setDirection(down if self.width() < _NARROW else right)


def _part(title: str, summary: QLabel, *below: QWidget) -> QVBoxLayout:
    """A title with a summary at its right, and what it is about."""
    summary.setProperty("kind", "small")
    line = QHBoxLayout()
    line.addWidget(section(title))
    line.addStretch(1)
    line.addWidget(summary)
    column = QVBoxLayout()
    column.setSpacing(8)
    column.addLayout(line)
    for i, widget in enumerate(below):
        column.addWidget(widget, 0 if i else 1)
    return column


def _with_parked(snapshot: EngineSnapshot) -> list[LaneSnapshot]:
    """The lanes; a free one stands for the parked request that had it."""
    parked = {lane.lane: lane for lane in snapshot.parked}
    return [parked.get(lane.lane, lane) if lane.state == "idle" else lane for lane in snapshot.lanes]


def _running(lane: LaneSnapshot) -> tuple[str, str, str]:
    return lane.state, lane.request_class or "", lane.request_id
