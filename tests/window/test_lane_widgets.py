"""The pieces of the Lanes panel: histories, timelines, rows, the page map, the table of those who wait."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QApplication

from ignis_desktop.widgets.figures import Figure, FigureStrip
from ignis_desktop.widgets.lane_history import SECONDS, LaneHistory
from ignis_desktop.widgets.lane_row import LaneRow
from ignis_desktop.widgets.lane_timeline import Timeline, tint_colour
from ignis_desktop.widgets.lane_view import Columns, LaneView
from ignis_desktop.widgets.page_legend import PageLegend
from ignis_desktop.widgets.page_map import FREE, KEPT, PARKED, SHARED, PageMap, cell_size, round_per_row
from ignis_desktop.widgets.theme import Theme, tokens
from ignis_desktop.widgets.tips import plain
from ignis_desktop.widgets.waiting_table import WaitingRow, WaitingTable

WIDTH, HEIGHT = 240, 18
"""Of a timeline: four pixels a second."""
BUSY = LaneView("decode", "r1", "agent", "Refactor the cache", "Agent · curl", "84", "12.3K / 31.9K", "—", True)


# Histories


def test_a_history_holds_spans_and_forgets_them_in_time() -> None:
    history = LaneHistory()
    assert not history
    for now, state in ((0.0, "prefill"), (2.0, "decode"), (2.1, "decode"), (9.0, "idle"), (10.0, "decode")):
        history.note(now, state, "agent", "r" if now < 10 else "s")
    assert [(s.start, s.end, s.state) for s in history.since(0.0)] == [
        (10.0, float("inf"), "decode"),
        (2.0, 9.0, "decode"),
        (0.0, 2.0, "prefill"),
    ]
    assert history.running is not None
    assert history.running.request == "s"
    assert [span.state if (span := history.at(t)) else None for t in (1.0, 5.0, 9.5, 30.0)] == [
        "prefill",
        "decode",
        None,
        "decode",
    ]
    history.note(11.0, "idle")
    history.forget(SECONDS + 9.5)
    assert [span.start for span in history.since(0.0)] == [10.0]
    history.forget(SECONDS + 12)
    assert not history


def test_the_next_request_begins_a_span_of_its_own() -> None:
    history = LaneHistory()
    history.note(0.0, "decode", "agent", "r")
    history.note(3.0, "decode", "agent", "s")
    assert [(s.start, s.end, s.request) for s in history.since(0.0)] == [(3.0, float("inf"), "s"), (0.0, 3.0, "r")]


# Timelines


def picture(timeline: Timeline, ratio: float = 1.0) -> QImage:
    image = QImage(round(WIDTH * ratio), round(HEIGHT * ratio), QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(ratio)
    image.fill(QColor("magenta"))
    painter = QPainter(image)
    timeline.paint(painter, QPoint(0, 0))
    painter.end()
    return image


def colours(image: QImage, x: int) -> set[str]:
    return {image.pixelColor(x, y).name() for y in range(image.height())}


def script(history: LaneHistory) -> None:
    for now, state, tint, request in (
        (100.0, "prefill", "agent", "a"),
        (110.0, "decode", "agent", "a"),
        (130.0, "idle", "", ""),
        (140.0, "parked", "interactive", "b"),
        (150.0, "decode", "interactive", "c"),
    ):
        history.note(now, state, tint, request)


def test_each_state_looks_different(qapp: QApplication) -> None:
    history = LaneHistory()
    script(history)
    timeline = Timeline(history)
    timeline.resize(WIDTH, HEIGHT, 1.0)
    assert timeline.advance(160.0)
    image = picture(timeline)
    track = tokens().track.lower()
    agent, interactive = tint_colour("agent").name(), tint_colour("interactive").name()

    def at(seconds: float) -> int:
        return round(4 * (seconds - 100)) - 1

    assert colours(image, at(120)) == {agent}, "decode is solid"
    assert colours(image, at(135)) == {track}, "idle is empty"
    assert colours(image, at(145)) == {track, interactive}, "parked is an outline"
    assert image.pixelColor(at(145), 0).name() == image.pixelColor(at(145), HEIGHT - 1).name() == interactive
    assert colours(image, at(140)) == {interactive}, "closed at its left"
    assert colours(image, at(150) - 1) == {interactive}, "and at its right"
    assert colours(image, at(150)) == {track}, "the next request is set off"
    assert colours(image, WIDTH - 1) == {interactive}, "what goes on reaches the right end"
    stripes = colours(image, at(105))
    assert len(stripes) > 2, "prefill is hatched"
    assert track not in stripes


@pytest.mark.parametrize("ratio", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("seed", range(5))
def test_what_was_drawn_bit_by_bit_is_what_would_be_drawn_at_once(qapp: QApplication, seed: int, ratio: float) -> None:
    chance = random.Random(seed)
    history = LaneHistory()
    moving = Timeline(history)
    moving.resize(WIDTH, HEIGHT, ratio)
    now, number = 5000.0 * chance.random(), 0
    moving.advance(now)
    for _ in range(400):
        now += chance.choice((0.02, 0.033, 0.05, 0.4, 3.0))
        if chance.random() < 0.2:
            number += 1
        if chance.random() < 0.4:
            state = chance.choice(("idle", "prefill", "decode", "parked"))
            # Snapshots are a little older than the frame in which they are shown.
            history.note(now - 0.03 * chance.random(), state, chance.choice(("agent", "interactive")), f"r{number}")
        moving.advance(now)
    fresh = Timeline(history)
    fresh.resize(WIDTH, HEIGHT, ratio)
    fresh.advance(now)
    assert picture(moving, ratio) == picture(fresh, ratio)


def test_a_frame_draws_only_what_is_new(qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> None:
    history = LaneHistory()
    timeline = Timeline(history)
    timeline.resize(WIDTH, HEIGHT, 1.0)
    timeline.advance(1000.0)
    drawn: list[int] = []
    real = Timeline._draw

    def noted(self: Timeline, first: int, last: int) -> None:
        drawn.append(last - first + 1)
        real(self, first, last)

    monkeypatch.setattr(Timeline, "_draw", noted)
    moved = 0
    for step in range(300):
        history.note(1000 + step / 30, "decode", "agent", f"r{step // 60}")
        moved += timeline.advance(1000 + (step + 1) / 30)
    assert max(drawn) <= 8
    assert len(drawn) == moved <= 10 * WIDTH / SECONDS + 6, "four columns a second, and five changes"


def test_the_moment_under_the_mouse(qapp: QApplication) -> None:
    timeline = Timeline(LaneHistory())
    timeline.resize(WIDTH, HEIGHT, 2.0)
    assert timeline.moment(0, 500.0) == pytest.approx(440.0)
    assert timeline.moment(WIDTH / 2, 500.0) == pytest.approx(470.0)


# Rows


@pytest.fixture
def row(qtbot) -> LaneRow:
    row = LaneRow(2, lambda: "All about it")
    qtbot.addWidget(row)
    row.resize(1000, row.height())
    row.move(100, 300)  # away from the mouse
    row.show()
    row.show_view(BUSY)
    return row


@given(st.integers(500, 4000))
def test_columns_never_overlap(width: int) -> None:
    columns = Columns.of(width)
    parts = [columns.words, columns.strip, columns.rate, columns.context, columns.drafts]
    for (left, wide), (following, _) in pairwise(parts):
        assert wide > 0
        assert left + wide <= following
    assert sum(parts[-1]) == width


def test_a_row_says_what_it_shows(row: LaneRow) -> None:
    assert row.accessibleName() == "Lane 3: Writing. Refactor the cache. Agent · curl"
    row.show_view(LaneView())
    assert row.accessibleName() == "Lane 3: free"


def test_a_row_is_worked_by_keyboard(row: LaneRow, qtbot) -> None:
    row.clearFocus()
    assert row._cancel.isHidden()
    row.setFocus()
    assert not row._cancel.isHidden()
    assert not row._park.isHidden()
    assert row._cancel.accessibleName() == "Cancel the request (Del)"
    with qtbot.waitSignal(row.cancel_wanted) as cancelled:
        qtbot.keyClick(row, Qt.Key.Key_Delete)
    with qtbot.waitSignal(row.park_wanted) as parked:
        qtbot.keyClick(row, Qt.Key.Key_P)
    assert cancelled.args == parked.args == ["r1"]
    with qtbot.waitSignal(row.stepped) as down:
        qtbot.keyClick(row, Qt.Key.Key_Down)
    assert down.args == [2, 1]
    qtbot.keyClick(row, Qt.Key.Key_Tab)
    assert row._park.hasFocus() or row._cancel.hasFocus()
    assert not row._cancel.isHidden(), "buttons stay while one of them has the focus"
    row.show_view(LaneView())
    assert row.hasFocus(), "the focus does not wander off when the request ends"
    with qtbot.assertNotEmitted(row.cancel_wanted), qtbot.assertNotEmitted(row.park_wanted):
        qtbot.keyClick(row, Qt.Key.Key_Delete)
        qtbot.keyClick(row, Qt.Key.Key_P)


def test_only_agents_can_be_parked(row: LaneRow, qtbot) -> None:
    interactive = LaneView("decode", "r2", "interactive", "Hello", "Interactive · This window", parkable=False)
    row.show_view(interactive)
    row.setFocus()
    assert row._park.isHidden()
    with qtbot.assertNotEmitted(row.park_wanted):
        qtbot.keyClick(row, Qt.Key.Key_P)
    park, cancel, _, copy = row.menu().actions()
    assert not park.isEnabled()
    with qtbot.waitSignal(row.cancel_wanted):
        cancel.trigger()
    copy.trigger()
    assert QApplication.clipboard().text() == "r2"


def test_a_row_paints_what_it_is_given(row: LaneRow, theme: Theme) -> None:
    row.history.note(90.0, "decode", "agent", "r1")
    row.advance(100.0)
    for name in ("light", "dark"):
        theme.apply(name)
        image = row.grab().toImage()
        strip = row._strip()
        assert image.pixelColor(strip.right(), strip.center().y()).name().upper() == tokens().accent.upper()
        assert image.pixelColor(strip.right() - 10, strip.center().y()) == tint_colour("agent")
        assert image.pixelColor(strip.left() + 10, strip.center().y()).name().upper() == tokens().track.upper()
        row.show_view(LaneView())
        row.history.note(100.0, "idle")
        row.advance(100.5)
        image = row.grab().toImage()
        assert image.pixelColor(strip.right(), strip.center().y()).name().upper() != tokens().accent.upper()
        row.show_view(BUSY)
        row.history.note(100.5, "decode", "agent", "r1")
        row.advance(101.0)


def test_tips_tell_the_request_and_the_past(row: LaneRow) -> None:
    row.history.note(90.0, "prefill", "agent", "r1")
    row.history.note(95.0, "decode", "agent", "r1")
    row.advance(100.0)
    strip = row._strip()
    at = QPoint(strip.left() + round(strip.width() * (1 - 7 / SECONDS)), strip.center().y())
    assert row._tip(at) == "Reading · Agent · 5.0 s"
    assert row._tip(QPoint(strip.left() + 5, 10)) == ""
    assert row._tip(QPoint(60, 10)) == "All about it"


def test_a_prompt_is_never_read_as_html() -> None:
    assert "<img" not in plain("<img src='file:///etc/passwd'>\nsecond")
    assert plain("") == ""


# The page map


@given(st.integers(1, 12_000), st.integers(80, 2400), st.integers(60, 600))
def test_every_page_has_a_cell(count: int, width: int, height: int) -> None:
    cell = cell_size(count, width, height, 16)
    per_row = round_per_row(width // cell, count, height // cell)
    assert 1 <= cell <= 16
    assert per_row * cell <= max(width, cell)
    rows = -(-count // per_row)
    assert rows * cell <= height or cell == 1
    if cell < 16:
        larger = cell + 1
        assert -(-count // max(1, width // larger)) * larger > height, "no larger cell would have fitted"


@pytest.fixture
def pages(qtbot) -> PageMap:
    pages = PageMap(lambda page, code: f"{page}: {code}")
    qtbot.addWidget(pages)
    pages.resize(320, 120)
    pages.show()
    return pages


def centre(pages: PageMap, page: int) -> QPointF:
    cell, per_row = pages._cell, pages._per_row
    return QPointF((page % per_row + 0.4) * cell, (page // per_row + 0.4) * cell)


@pytest.mark.parametrize("count", [1, 64, 1024, 10_000])
def test_pages_lie_where_the_mouse_finds_them(pages: PageMap, count: int) -> None:
    codes = bytes((FREE, 1, 2, SHARED, KEPT)[i * 7 % 5] for i in range(count))
    pages.show_pages(codes, ["interactive", "agent"])
    image = pages.grab().toImage()
    expected = {
        FREE: tokens().track,
        1: tokens().class_interactive,
        SHARED: tokens().page_shared,
        KEPT: tokens().page_kept,
    }
    for page in {0, count // 3, count // 2, count - 1}:
        at = centre(pages, page)
        assert pages.page_at(at.x(), at.y()) == page
        if codes[page] in expected:
            assert image.pixelColor(at.toPoint()).name().upper() == expected[codes[page]].upper()
    assert pages.page_at(-1, 5) is None
    assert pages.page_at(319, 119) is None or count > 1024


def test_one_owner_can_be_picked_out(pages: PageMap, qtbot) -> None:
    pages.show_pages(bytes([1, 2, FREE, PARKED] * 16), ["interactive", "agent"])
    before = pages.grab().toImage()
    pages.point_at(0)
    after = pages.grab().toImage()
    own, other = centre(pages, 0).toPoint(), centre(pages, 1).toPoint()
    assert after.pixelColor(own) == before.pixelColor(own)
    assert after.pixelColor(other) != before.pixelColor(other)
    pages.point_at(-1)
    assert pages.grab().toImage() == before
    for page, lane in ((1, 1), (2, -1), (3, -1)):
        with qtbot.waitSignal(pages.pointed) as pointed:
            qtbot.mouseMove(pages, centre(pages, page).toPoint())
        assert pointed.args == [lane]


def test_the_map_is_drawn_again_only_when_a_page_changes_hands(pages: PageMap, qapp: QApplication) -> None:
    codes = bytes([1] * 64)
    pages.show_pages(codes, ["agent"])
    pages.grab()
    first = pages._image
    pages.show_pages(bytes(codes), ("agent",))
    pages.grab()
    assert pages._image is first
    pages.show_pages(bytes([1] * 63 + [0]), ("agent",))
    assert pages._image is None


def test_an_empty_pool_is_no_fault(pages: PageMap) -> None:
    pages.show_pages(b"", [])
    pages.grab()
    assert pages.page_at(1, 1) is None


@given(st.integers(60, 1200))
def test_the_legend_fits_its_width(width: int) -> None:
    legend = PageLegend()
    items = [
        ("interactive", "Interactive 1,234"),
        ("agent", "Agent 7"),
        ("parked", "Parked 0"),
        ("free", "Free 12,345"),
    ]
    legend.show_items(items)
    places = legend._places(width)
    assert len(places) == 4
    assert not any(a.intersects(b) for i, a in enumerate(places) for b in places[:i])
    assert max(place.bottom() for place in places) < legend.heightForWidth(width)
    if width > 200:
        assert max(place.right() for place in places) < width
    legend.deleteLater()


# Those who wait, and the totals


def waiting_rows(*names: str) -> list[WaitingRow]:
    return [
        WaitingRow(name, "agent", f"Title {name}", "1,234", "3 s", "shield" if name == "b" else "") for name in names
    ]


def test_the_table_keeps_up_and_cancels(qtbot) -> None:
    table = WaitingTable()
    qtbot.addWidget(table)
    table.resize(400, 200)
    table.show()
    table.show_rows([])
    assert table._empty.isVisible()
    table.show_rows(waiting_rows("a", "b", "c"))
    assert not table._empty.isVisible()
    model = table.waiting
    assert [model.index(i, 1).data() for i in range(3)] == ["Title a", "Title b", "Title c"]
    mark = [model.index(i, 2).data(Qt.ItemDataRole.DecorationRole) is not None for i in range(3)]
    assert mark == [False, True, False]
    assert model.index(0, 0).data(Qt.ItemDataRole.AccessibleTextRole) == "Agent"
    table.show_rows(waiting_rows("b", "c"))
    assert [model.index(i, 1).data() for i in range(model.rowCount())] == ["Title b", "Title c"]
    with qtbot.assertNotEmitted(table.cancel_wanted):
        qtbot.keyClick(table, Qt.Key.Key_Delete)
    table.selectRow(1)
    with qtbot.waitSignal(table.cancel_wanted) as cancelled:
        qtbot.keyClick(table, Qt.Key.Key_Delete)
    assert cancelled.args == ["c"]
    cancel, _, copy = table.menu("b").actions()
    with qtbot.waitSignal(table.cancel_wanted) as cancelled:
        cancel.trigger()
    assert cancelled.args == ["b"]
    copy.trigger()
    assert QApplication.clipboard().text() == "b"


def test_figures_go_on_in_a_second_line_when_it_is_narrow(qtbot) -> None:
    strip = FigureStrip()
    qtbot.addWidget(strip)
    strip.show_figures([Figure(str(i), f"name {i}", fill=0.5 if i == 7 else None) for i in range(8)])
    strip.resize(1100, 60)
    strip.show()
    QApplication.processEvents()
    assert len({cell.y() for cell in strip._cells}) == 1
    strip.resize(600, 120)
    QApplication.processEvents()
    assert len({cell.y() for cell in strip._cells}) == 2
    assert strip._cells[7].accessibleName() == "name 7: 7"
    assert [cell._bar.isHidden() for cell in strip._cells] == [True] * 7 + [False]
