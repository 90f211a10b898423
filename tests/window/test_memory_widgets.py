"""The bar, the table and the knobs of the memory plan."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QImage, QMouseEvent
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from ignis_desktop.widgets.knob import ChoiceKnob, SliderKnob
from ignis_desktop.widgets.memory_bar import MemoryBar, MemoryPart
from ignis_desktop.widgets.memory_table import MemoryRow, MemoryTable
from ignis_desktop.widgets.theme import Theme, tokens
from ignis_desktop.widgets.tips import plain
from ignis_desktop.widgets.tokens import DARK, LIGHT, contrast

GIB = 1 << 30
TONES = ("weights", "kv", "state", "workspace", "vision", "runtime", "rounds", "tier")


def part(name: str, gib: float, look: str = "solid", tone: str = "memory_kv") -> MemoryPart:
    return MemoryPart(name, name.title(), round(gib * GIB), f"{name} {gib}", tone, look)  # type: ignore[arg-type]


CARD = [
    part("other", 2, "others"),
    part("weights", 16, tone="memory_weights"),
    part("kv", 8),
    part("nothing", 0),
    part("free", 4, "clear"),
    part("headroom", 2, "hatched"),
]


@pytest.fixture
def bar(qtbot: QtBot) -> MemoryBar:
    bar = MemoryBar()
    qtbot.addWidget(bar)
    bar.resize(640, 100)
    bar.show()
    return bar


def colour(bar: MemoryBar, x: float, y: float) -> str:
    image: QImage = bar.grab().toImage()
    ratio = image.devicePixelRatio()
    return image.pixelColor(round(x * ratio), round(y * ratio)).name().upper()


def test_bar_is_to_scale(bar: MemoryBar) -> None:
    bar.show_parts(CARD, 32 * GIB)
    assert not bar.zoomed
    # 20 pixels a GiB.
    for x, name in (
        (10, "other"),
        (39, "other"),
        (41, "weights"),
        (359, "weights"),
        (361, "kv"),
        (521, "free"),
        (639, "headroom"),
    ):
        found = bar.part_at(x, 20)
        assert found is not None
        assert found.name == name
    assert bar.part_at(641, 20) is None
    assert colour(bar, 20, 35) == LIGHT.control_line
    assert colour(bar, 340, 35) == LIGHT.memory_weights
    assert colour(bar, 500, 35) == LIGHT.memory_kv
    assert colour(bar, 560, 35) == LIGHT.track


def test_a_small_plan_is_looked_at_through_a_lens(bar: MemoryBar) -> None:
    parts = [part("other", 10, "others"), part("weights", 1.5), part("kv", 0.5), part("free", 20, "clear")]
    bar.show_parts(parts, 32 * GIB)
    assert bar.zoomed
    whole, plan = bar.part_at(100, 5), bar.part_at(500, 45)
    assert whole is not None
    assert whole.name == "other"
    assert plan is not None
    assert plan.name == "kv"
    first = bar.part_at(479, 45)
    assert first is not None
    assert first.name == "weights"
    taller = bar.sizeHint().height()
    bar.show_parts(CARD, 32 * GIB)
    assert bar.sizeHint().height() < taller


def test_what_is_in_force_stands_under_what_is_considered(bar: MemoryBar) -> None:
    lower = bar.sizeHint().height()
    bar.show_parts(CARD, 32 * GIB, [part("kv", 24), part("headroom", 8, "hatched")])
    assert bar.sizeHint().height() > lower
    found = bar.part_at(200, 45)
    assert found is not None
    assert found.name == "kv"
    assert colour(bar, 200, 45) == LIGHT.memory_kv


def test_too_much_is_marked(bar: MemoryBar) -> None:
    bar.show_parts([part("weights", 40)], 32 * GIB)
    assert colour(bar, 512, 20) == LIGHT.bad
    assert colour(bar, 200, 20) == LIGHT.memory_kv
    assert colour(bar, 580, 20) != LIGHT.memory_kv


def test_pointing_fades_the_others(bar: MemoryBar) -> None:
    bar.show_parts(CARD, 32 * GIB)
    heard: list[str] = []
    bar.pointed.connect(heard.append)
    place, none = QPointF(450, 20), Qt.MouseButton.NoButton
    move = QMouseEvent(QEvent.Type.MouseMove, place, place, none, none, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(bar, move)
    assert heard == ["kv"]
    assert bar.toolTip() == plain("kv 8")
    assert colour(bar, 500, 35) == LIGHT.memory_kv
    assert colour(bar, 340, 35) != LIGHT.memory_weights
    bar.point_at("")
    assert colour(bar, 340, 35) == LIGHT.memory_weights


def test_arrow_keys_go_from_part_to_part(bar: MemoryBar, qtbot: QtBot) -> None:
    bar.show_parts(CARD, 32 * GIB)
    heard: list[str] = []
    bar.pointed.connect(heard.append)
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Left, Qt.Key.Key_Left):
        qtbot.keyClick(bar, key)
    assert heard == ["other", "weights", "other", "headroom"]
    assert "weights 16, kv 8" in bar.accessibleDescription()


def test_an_empty_bar_and_a_dark_one_are_drawn(bar: MemoryBar, theme: Theme) -> None:
    assert bar.part_at(10, 10) is None
    bar.grab()
    theme.apply("dark")
    bar.show_parts(CARD, 32 * GIB)
    assert colour(bar, 340, 35) == DARK.memory_weights


@pytest.mark.parametrize("theme_tokens", [LIGHT, DARK], ids=["light", "dark"])
def test_lines_can_be_told_apart_and_written_on(theme_tokens: object) -> None:
    colours = [getattr(theme_tokens, f"memory_{name}") for name in TONES]
    assert len(set(colours)) == len(TONES)
    inks = (theme_tokens.text, theme_tokens.panel)  # type: ignore[attr-defined]
    assert all(max(contrast(ink, ground) for ink in inks) >= 4.5 for ground in colours)
    others = [contrast(colours[0], other) for other in colours[1:]]
    assert min(others) > 1.5  # weights are the darkest


def rows(*names: str) -> list[MemoryRow]:
    return [MemoryRow(name, name.title(), GIB, 0.25, f"why {name}", "memory_kv") for name in names]


def test_table_shows_rows_and_follows_the_bar(qtbot: QtBot) -> None:
    table = MemoryTable()
    qtbot.addWidget(table)
    table.resize(700, 400)
    table.show()
    title = MemoryRow("host", "In the host's memory", kind="title")
    table.show_rows([*rows("weights", "kv"), title, *rows("tier")])

    def cell(row: int, column: int, role: Qt.ItemDataRole = Qt.ItemDataRole.DisplayRole) -> object:
        return table.memory.data(table.memory.index(row, column), role)

    assert [cell(0, column) for column in range(4)] == ["Weights", "1,024.0", "25.0%", "why weights"]
    assert [cell(2, column) for column in range(4)] == ["In the host's memory", "", "", ""]
    assert cell(0, 0, Qt.ItemDataRole.DecorationRole) is not None
    assert table.columnSpan(2, 0) == 4
    assert table.height() > 4 * 26
    table.point_at("kv")
    assert cell(1, 1, Qt.ItemDataRole.BackgroundRole).name().upper() == tokens().hover  # type: ignore[attr-defined]
    assert cell(0, 1, Qt.ItemDataRole.BackgroundRole) is None
    with qtbot.waitSignal(table.pointed) as heard:
        table.entered.emit(table.memory.index(3, 0))
    assert heard.args == ["tier"]
    table.entered.emit(table.memory.index(2, 0))
    assert table.memory.pointed == ""


def test_a_narrow_table_keeps_its_figures(qtbot: QtBot) -> None:
    table = MemoryTable()
    qtbot.addWidget(table)
    table.show_rows(rows("weights"))
    table.show()
    for width, hidden in ((700, False), (400, True), (700, False)):
        table.resize(width, 100)
        assert table.isColumnHidden(3) is hidden
        assert table.columnWidth(1) >= 80
    assert table.memory.data(table.memory.index(0, 0), Qt.ItemDataRole.ToolTipRole) == plain("why weights")


@pytest.fixture
def holder(qtbot: QtBot) -> QWidget:
    holder = QWidget()
    qtbot.addWidget(holder)
    return holder


def test_slider_over_uneven_stops(holder: QWidget, qtbot: QtBot) -> None:
    knob = SliderKnob("Context", lambda value: f"{value:,}", holder)
    heard: list[int] = []
    knob.changed.connect(lambda: heard.append(knob.value))
    knob.set_value(4096, [1024, 2048, 4096, 8192])
    assert (knob.value, knob._figure.text(), heard) == (4096, "4,096", [])
    qtbot.keyClick(knob.slider, Qt.Key.Key_Right)
    assert heard == [8192]
    knob.set_value(3000)
    assert (knob.value, heard) == (3000, [8192])
    qtbot.keyClick(knob.slider, Qt.Key.Key_Left)
    assert heard == [8192, 2048]
    knob.set_value(9000)
    assert knob.value == 9000


def test_choice_and_its_words(holder: QWidget) -> None:
    knob = ChoiceKnob("KV format", [("bf16", "BF16"), ("q2", "2 bits")], holder)
    heard: list[str] = []
    knob.changed.connect(lambda: heard.append(knob.value))
    knob.set_value("q2")
    assert (knob.value, heard) == ("q2", [])
    knob.select.menu().actions()[0].trigger()
    assert heard == ["bf16"]
    knob.explain("65,536 B a token", "+2.8 GiB")
    assert (knob.caption, knob.change) == ("65,536 B a token", "+2.8 GiB")
