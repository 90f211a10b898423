"""The Lanes panel: what it says of a made-up engine, and what it does to a real one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from PySide6.QtCore import QElapsedTimer, Qt, QTimer
from PySide6.QtWidgets import QApplication, QWidget

from engine.messages import EngineSnapshot, LaneSnapshot, RequestError
from ignis_desktop.engine_thread import LIVE_MS, SNAPSHOT_MS, EngineThread, Turn
from ignis_desktop.panels import lane_words as words
from ignis_desktop.panels.lanes import LanesPanel
from ignis_desktop.widgets import texts
from ignis_desktop.widgets.lane_view import LaneView
from ignis_desktop.widgets.toast import Toast
from tests.busy import LENGTH, busy, idle, minute
from tests.window.conftest import Opened
from tests.window.lane_frames import StillEngine, measure

START = 5000.0


class Shown:
    """A panel on an engine that only notes what it is asked."""

    def __init__(self, qtbot) -> None:
        self.engine = StillEngine()
        self.holder = QWidget()
        self.toast = Toast(self.holder)
        self.panel = LanesPanel(self.engine, self.toast)  # type: ignore[arg-type]
        for widget in (self.holder, self.panel):
            qtbot.addWidget(widget)
        self.panel.resize(1112, 752)

    def show(self, snapshot: EngineSnapshot) -> None:
        self.panel.show()
        self.panel._timer.stop()
        self.feed(snapshot)
        QApplication.processEvents()

    def feed(self, snapshot: EngineSnapshot) -> None:
        self.panel.show_snapshot(snapshot)
        self.panel._slow_shown = 0.0
        self.panel.frame(snapshot.time)

    def views(self) -> list[LaneView]:
        return [row.view for row in self.panel.lanes.rows]


@pytest.fixture
def shown(qtbot) -> Shown:
    return Shown(qtbot)


def test_the_rows_say_who_runs_and_how_fast(shown: Shown) -> None:
    now = busy(start=START)
    shown.show(now)
    views = shown.views()
    assert [view.state for view in views] == [lane.state for lane in now.lanes]
    first, reading, small = views[0], views[6], views[3]
    assert (first.title, first.detail) == ("And write a test for the empty header case", "Interactive · This window")
    assert (first.rate, first.context, first.drafts) == ("10.1", "6,080 / 8,275", "—")
    assert not first.parkable
    assert reading.rate == "57%"
    assert reading.context == "4,096 / 26.2K"
    assert reading.parkable
    assert small == LaneView()


def test_a_free_lane_stands_for_the_parked_request_that_had_it(shown: Shown) -> None:
    now = busy(start=START)
    parked = now.parked[0]
    lanes = tuple(LaneSnapshot(5) if lane.lane == 5 else lane for lane in now.lanes)
    shown.show(replace(now, lanes=lanes))
    view = shown.views()[5]
    assert (view.state, view.request, view.title) == ("parked", parked.request_id, parked.label)
    assert not view.live
    assert not view.parkable
    running = shown.panel.lanes.rows[5].history.running
    assert running is not None
    assert running.state == "parked"
    assert shown.panel._tip(5).startswith(parked.label)


def test_those_without_a_lane(shown: Shown) -> None:
    shown.show(busy(LENGTH - 3, start=START))
    shown.feed(busy(start=START))
    table = shown.panel.waiting.waiting
    assert [row.mark for row in table.rows] == ["pause", "", "shield", "", "", "", "", ""]
    parked, first, protected = table.rows[:3]
    assert parked.title == "Translate the release notes into Korean"
    assert parked.time == "3.0 s", "since it was parked, not since it began"
    assert "gave lane 6 up" in parked.tip
    assert (first.tint, first.time) == ("interactive", "0.3 s")
    assert (protected.tokens, protected.time) == ("98.3K", "31 s")
    assert "does not delay it" in protected.tip
    assert table.rows[5].title == "Zero-token answer"
    assert shown.panel._waiting_summary.text() == "1 interactive, 6 agent, 1 parked"
    more = replace(busy(start=START), queued_agent=200, time=START + LENGTH + 1)
    shown.feed(more)
    assert shown.panel._waiting_summary.text() == "1 interactive, 200 agent, 1 parked, 194 not shown"


def test_pages_and_totals(shown: Shown) -> None:
    now = busy(start=START)
    shown.show(now)
    panel = shown.panel
    used = now.pages_total - now.pages_free
    assert panel._page_summary.text() == f"{used:,} of 1,024 in use"
    kinds = dict(words.page_kinds(now))
    assert sum(int(text.rsplit(" ", 1)[1].replace(",", "")) for text in kinds.values()) == 1024
    assert panel.map._codes == now.page_map
    assert panel.map.accessibleName() == f"Pages: {used:,} of 1,024 in use"
    lane = now.page_map.index(2)
    assert words.page_tip(lane, 2, now.lanes) == f"Page {lane}: lane 2, {now.lanes[1].label}"
    assert words.page_tip(5, 255, now.lanes) == "Page 5: kept for requests to come"
    figures = {figure.name: figure for figure in words.figures(now)}
    assert figures["requests reused"].value == "92%"
    assert figures["parked / resumed"].value == "4 / 3"
    assert figures["host tier"].value == "1.2 / 2.0 GiB"
    assert figures["host tier"].fill == pytest.approx(0.62, abs=0.01)
    empty = {figure.name: figure for figure in words.figures(EngineSnapshot("ready"))}
    assert (empty["requests reused"].value, empty["host tier"].value, empty["host tier"].fill) == ("—", "off", None)


def test_lane_and_pages_point_at_each_other(shown: Shown, qtbot) -> None:
    shown.show(busy(start=START))
    panel = shown.panel
    panel.lanes.rows[1].setFocus()
    assert panel.map._lane == 1
    qtbot.keyClick(panel.lanes.rows[1], Qt.Key.Key_Down)
    assert panel.lanes.rows[2].hasFocus()
    assert panel.map._lane == 2
    panel.lanes.rows[2].clearFocus()
    assert panel.map._lane == -1
    panel.map.pointed.emit(4)
    assert [row._marked for row in panel.lanes.rows] == [row.lane == 4 for row in panel.lanes.rows]


def test_cancel_and_park_go_through_the_engines_thread(shown: Shown) -> None:
    shown.show(busy(start=START))
    panel = shown.panel
    agent, queued = panel.lanes.rows[1].view.request, "wait-1"
    panel.lanes.rows[1].park_wanted.emit(agent)
    panel.lanes.rows[1].cancel_wanted.emit(agent)
    panel.waiting.cancel_wanted.emit(queued)
    assert shown.engine.asked == [("park", agent), ("cancel", agent), ("cancel", queued)]
    assert shown.toast._text.text() == "Cancelled “Read the whole repository and draw its architecture”."


def test_what_cannot_be_parked_is_said(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_request: str) -> None:
        raise RequestError("Only requests of class agent can be parked.")

    monkeypatch.setattr(shown.engine, "park", refuse)
    shown.show(busy(start=START))
    shown.panel.park("request-0-47.5")
    assert shown.toast._text.text() == "Only requests of class agent can be parked."


def test_a_title_is_shown_as_it_is(shown: Shown) -> None:
    now = busy(start=START)
    evil = replace(now.lanes[1], label="<img src='file:///x'>")
    shown.show(replace(now, lanes=(now.lanes[0], evil, *now.lanes[2:])))
    shown.panel.cancel(evil.request_id)
    assert shown.toast._text.textFormat() == Qt.TextFormat.PlainText
    assert "<img" in shown.toast._text.text()


def test_nothing_is_drawn_while_nobody_looks(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[float] = []
    real = LanesPanel.frame

    def noted(self: LanesPanel, now: float | None = None) -> None:
        drawn.append(0.0)
        real(self, now)

    monkeypatch.setattr(LanesPanel, "frame", noted)
    panel = shown.panel
    for snapshot in minute(start=START, rate=2):
        panel.show_snapshot(snapshot)
    assert not drawn
    assert not shown.engine.live
    assert not panel._timer.isActive()
    assert all(row.history for row in panel.lanes.rows), "the past is remembered all the same"
    panel.show()
    assert shown.engine.live
    assert panel._timer.isActive()
    assert drawn
    panel.hide()
    assert not shown.engine.live
    assert not panel._timer.isActive()


def test_free_lanes_say_what_to_do(shown: Shown, qtbot) -> None:
    shown.show(idle(start=START))
    hint = shown.panel.lanes.hint
    assert hint.isVisible()
    with qtbot.waitSignal(shown.panel.chat_wanted):
        shown.panel.lanes.chat_wanted.emit()
    shown.feed(busy(start=START + 1))
    assert hint.isHidden()
    shown.feed(idle(start=START + 2))
    assert hint.isHidden(), "there is something to be seen of the last minute"
    shown.panel.frame(START + 2 + 2 * LENGTH + 1)
    assert hint.isVisible()


def test_without_a_model_it_says_so(shown: Shown, qtbot) -> None:
    failed = EngineSnapshot("failed", reason="config.json is missing.", lanes=(LaneSnapshot(0),), time=START)
    shown.show(failed)
    panel = shown.panel
    assert panel.empty.isVisible()
    assert panel.empty._detail.text() == "The model could not be loaded: config.json is missing."
    with qtbot.waitSignal(panel.settings_wanted):
        panel.empty._button.click()
    shown.feed(EngineSnapshot("loading", progress=0.4, time=START + 1))
    assert "40%" in panel.empty._detail.text()
    shown.feed(busy(start=START + 1))
    assert not panel.empty.isVisible()


@pytest.mark.parametrize("lanes", [1, 2, 16])
def test_any_number_of_lanes(shown: Shown, qtbot, lanes: int) -> None:
    shown.show(busy(start=START))
    shown.feed(busy(start=START + 1, lanes=lanes))
    rows = shown.panel.lanes.rows
    assert [row.lane for row in rows] == list(range(lanes))
    qtbot.waitUntil(lambda: shown.panel.lanes.height() > lanes * rows[0].height() and rows[-1].isVisible())
    assert shown.panel.lanes.height() < lanes * rows[0].height() + 40
    shown.feed(EngineSnapshot("ready", time=START + 2))
    assert shown.panel.lanes.rows == []


def test_counts_are_short() -> None:
    numbers = (0, 999, 9_999, 10_000, 12_345, 99_949, 99_950, 999_499, 999_500, 1_234_567, 250_000_000, 3_000_000_000)
    assert [words.short_count(number) for number in numbers] == [
        "0", "999", "9,999", "10.0K", "12.3K", "99.9K", "100K", "999K", "1.0M", "1.2M", "250M", "3.0G",
    ]  # fmt: skip


def test_korean(shown: Shown) -> None:
    texts.use_language("ko")
    shown.show(busy(start=START))
    assert shown.views()[0].detail == "대화형 · 이 창"
    assert shown.panel._waiting_summary.text() == "대화형 1, 에이전트 6, 세워 둠 1"


# Speed


def test_a_frame_with_eight_busy_lanes_is_quick(qapp: QApplication) -> None:
    used, taken = measure(qapp, 12.0, 1024)
    print(f"scale 1: {used}; by the clock {taken}")
    # Measured on an idle machine the 99th of 100 frames takes 2.4 ms of the processor; 33 ms are there for each.
    assert used.median < 4
    assert used.late < 16


def test_a_frame_at_twice_the_pixels_is_quick() -> None:
    environment = os.environ | {"QT_SCALE_FACTOR": "2", "QT_QPA_PLATFORM": "offscreen"}
    command = [sys.executable, "-m", "tests.window.lane_frames"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=True)
    print(done.stdout)
    median, late = map(float, re.findall(r"(?:median|99 %) ([\d.]+) ms", done.stdout)[:2])
    assert median < 8
    assert late < 24


# Around a real engine


def test_snapshots_come_faster_while_the_lanes_are_watched(engine_thread: EngineThread) -> None:
    engine_thread.set_live(True)
    assert engine_thread._timer.interval() == LIVE_MS
    engine_thread.set_live(False)
    assert engine_thread._timer.interval() == SNAPSHOT_MS


def test_a_running_answer_is_seen_and_cancelled(opened: Opened, qtbot, long_answers: None) -> None:
    window = opened.window
    opened.chat.session.send("Tell me more and more")
    qtbot.keyClick(window, Qt.Key.Key_2, Qt.KeyboardModifier.ControlModifier)
    assert window.panel == "lanes"
    rows = window.lanes.lanes.rows
    qtbot.waitUntil(lambda: any(row.view.state == "decode" for row in rows), timeout=20_000)
    row = next(row for row in rows if row.view.state == "decode")
    assert (row.view.title, row.view.detail) == ("Tell me more and more", "Interactive · This window")
    assert not row.view.parkable
    row.setFocus()
    qtbot.keyClick(row, Qt.Key.Key_Delete)
    opened.answered()
    qtbot.waitUntil(lambda: row.view == LaneView(), timeout=5000)
    assert "Cancelled" in window.toast._text.text()


def test_window_answers_while_eight_lanes_are_watched(opened: Opened, qtbot) -> None:
    endless = {"max_tokens": 3000, "ignore_eos": True}
    replies = [opened.engine.generate([Turn("user", f"Tell me {i}")], sampling=endless) for i in range(8)]
    opened.window.show_panel("lanes")
    qtbot.waitUntil(lambda: sum(lane.state == "decode" for lane in opened.engine.snapshot.lanes) == 8, timeout=20_000)
    gaps: list[int] = []
    clock = QElapsedTimer()
    clock.start()
    ticker = QTimer(interval=5)
    ticker.timeout.connect(lambda: gaps.append(clock.restart()))
    ticker.start()
    qtbot.wait(2000)
    ticker.stop()
    for reply in replies:
        reply.cancel()
    qtbot.waitUntil(lambda: all(lane.state == "idle" for lane in opened.engine.snapshot.lanes), timeout=10_000)
    gaps.sort()
    usual, late = gaps[len(gaps) // 2], gaps[-max(1, len(gaps) // 100)]
    print(f"event loop: median {usual} ms, 99 % {late} ms, worst {gaps[-1]} ms")
    # The promise is 100 ms; a machine that runs other work at the same time adds pauses of its own.
    assert usual < 50
    assert late < 500
