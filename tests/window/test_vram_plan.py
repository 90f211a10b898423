"""The VRAM plan panel: the plan in force, what turning a knob makes of it, and the way to put it in force."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from engine.config import EngineConfig
from engine.memory.plan import Memory
from engine.messages import EngineError, MemoryPlan
from ignis_desktop import planning
from ignis_desktop.app import Desktop
from ignis_desktop.engine_thread import EngineThread, engine_config
from ignis_desktop.panels.plan_words import change_text, size_text
from ignis_desktop.panels.vram_plan import VramPlanPanel
from ignis_desktop.planning import WhatIf, cannot_run, plan_what_if
from ignis_desktop.store.settings import SettingsFile, WindowSettings
from ignis_desktop.widgets import texts
from ignis_desktop.widgets.memory_bar import MemoryPart
from tests.window.conftest import Opened

GIB, MIB = 1 << 30, 1 << 20
HOST = Memory(32 * GIB, 24 * GIB)


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "host_memory", lambda: HOST)


@pytest.fixture
def panel(opened: Opened) -> VramPlanPanel:
    opened.window.show_panel("vram_plan")
    return opened.window.vram_plan


def labels(panel: VramPlanPanel) -> list[str]:
    return [row.label for row in panel.table.memory.rows]


def sizes(panel: VramPlanPanel) -> dict[str, int]:
    return {row.name: row.bytes for row in panel.table.memory.rows if row.kind == "line"}


def parts(panel: VramPlanPanel) -> dict[str, MemoryPart]:
    return {part.name: part for part in panel.bar._parts}


def mends(panel: VramPlanPanel) -> list[QPushButton]:
    found = [panel._mends.itemAt(i).widget() for i in range(panel._mends.count())]
    return [widget for widget in found if isinstance(widget, QPushButton)]


def in_force(opened: Opened) -> MemoryPlan:
    plan = opened.engine.snapshot.memory_plan
    assert plan is not None
    return plan


def test_the_plan_in_force_is_shown_as_it_is(opened: Opened, panel: VramPlanPanel) -> None:
    plan = in_force(opened)
    assert {line.name: line.bytes for line in plan.lines}.items() <= sizes(panel).items()
    assert labels(panel)[:3] == ["Weights", "Runtime", "KV pool"]
    assert (sizes(panel)["headroom"], sizes(panel)["other"]) == (plan.headroom, plan.other)
    shown = parts(panel)
    assert sum(part.bytes for part in shown.values()) == plan.capacity
    assert (shown["headroom"].look, shown["other"].look, shown["free"].look) == ("hatched", "others", "clear")
    assert panel.summary.text().startswith(f"{plan.total / GIB:.2f} GiB of the ")
    assert panel.difference.text() == ""
    assert not panel.knobs.apply.isEnabled()
    assert not panel.knobs.reset.isEnabled()
    assert panel.knobs.lanes.value == 8
    assert panel.knobs.context.value == 4096
    assert "In force" in panel.knobs._pending.text()


def test_turning_a_knob_shows_the_difference_at_once(opened: Opened, panel: VramPlanPanel) -> None:
    before = sizes(panel)
    panel.knobs.lanes.slider.setValue(15)
    after = sizes(panel)
    assert after["lane_state"] == 2 * before["lane_state"]
    assert after["kv_pool"] == 2 * before["kv_pool"]
    assert panel.knobs.lanes.caption.startswith("16 × ")
    assert panel.knobs.context.change == ""
    token = before["kv_pool"] // (8 * 4096)
    assert panel.knobs.context.caption == f"16 × 4,096 tokens = {size_text(16 * 4096 * token)}"
    assert panel.bar._before
    assert "by these changes" in panel.difference.text()
    assert panel.knobs.apply.isEnabled()
    panel.knobs.reset.click()
    assert sizes(panel) == before
    assert not panel.bar._before


def test_a_knob_is_answered_within_a_frame(panel: VramPlanPanel) -> None:
    panel.model.menu().actions()[1].trigger()
    slider = panel.knobs.context.slider
    slider.setValue(8)
    took = []
    for value in range(9, 32):
        began = time.process_time()
        panel._engine.plan(replace(panel._wanted, max_context=panel.knobs.context._stops[value]))
        took.append(time.process_time() - began)
    assert sorted(took)[len(took) // 2] < 0.005


def test_headroom_and_host_tier(panel: VramPlanPanel) -> None:
    panel.knobs.headroom.slider.setValue(4)
    assert panel.knobs.headroom.value == GIB
    assert sizes(panel)["headroom"] == GIB
    assert panel.knobs.headroom.change == "+512 MiB"
    panel.knobs.host_tier.slider.setValue(0)
    assert sizes(panel)["host_tier"] == 0
    assert panel.knobs.host_tier._figure.text() == "Off"


def test_yarn_lengthens_the_context_only_when_asked(panel: VramPlanPanel) -> None:
    panel.knobs.yarn.select.menu().actions()[1].trigger()
    assert panel.knobs.context.value == 4096
    assert panel.knobs.yarn.caption == "Up to 8,192 tokens of context"
    panel.knobs.context.slider.setValue(31)
    assert panel.knobs.context.value == 8192
    panel.knobs.yarn.select.menu().actions()[0].trigger()
    assert panel.knobs.context.value == 4096


def test_the_cpu_has_one_kv_format(panel: VramPlanPanel) -> None:
    assert not panel.knobs.kv_format.select.isEnabled()
    assert "others need a GPU" in panel.knobs.kv_format.caption


def test_applying_saves_and_asks_for_a_restart(opened: Opened, panel: VramPlanPanel, qtbot: QtBot) -> None:
    panel.knobs.lanes.slider.setValue(3)
    panel.knobs.context.slider.setValue(15)
    panel.knobs.headroom.slider.setValue(1)
    with qtbot.waitSignal(opened.window.restart_wanted):
        panel.knobs.apply.click()
    values = SettingsFile().values
    assert (values.lanes, values.max_context, values.headroom, values.host_tier) == (4, 2048, 256, None)
    config = engine_config(values)
    assert (config.lanes, config.max_context, config.headroom, config.yarn) == (4, 2048, 256 * MIB, None)
    opened.window.settings.loaded_with(values)
    assert opened.window.settings.lanes.value == 4


def test_settings_become_options() -> None:
    config = engine_config(WindowSettings(kv_format="bf16", yarn=2, headroom=0, host_tier=64))
    assert (config.kv_format, config.yarn, config.headroom, config.host_tier) == ("bf16", 2, 0, 64 * MIB)


def test_a_new_plan_starts_the_knobs_over(
    opened: Opened, panel: VramPlanPanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel.knobs.lanes.slider.setValue(2)
    panel.show_snapshot(opened.engine.snapshot)
    assert panel.knobs.lanes.value == 3  # nothing changed: what is considered stays
    newer = replace(opened.engine.snapshot, memory_plan=replace(in_force(opened), other=7 * GIB))
    monkeypatch.setattr(EngineThread, "snapshot", newer)
    panel.show_snapshot(newer)
    assert panel.knobs.lanes.value == 8
    assert sizes(panel)["other"] == 7 * GIB


def test_the_27b_on_a_card_is_a_what_if(panel: VramPlanPanel) -> None:
    panel.model.menu().actions()[1].trigger()
    assert panel.header._subject.text() == ""
    assert {"Weights", "CUDA context", "Exact KV window", "Beside it, in the host's memory"} <= set(labels(panel))
    assert panel.knobs.context.caption == "8 × 131,072 tokens = 9.0 GiB"
    panel.knobs.context.slider.setValue(4)
    assert panel.knobs.context.caption == "8 × 40,960 tokens = 2.8 GiB"
    assert panel.knobs.context.change == "−6.2 GiB"
    assert "nothing to restart" in panel.knobs._pending.text()
    assert not panel.knobs.apply.isVisible()
    panel.knobs.kv_format.select.menu().actions()[1].trigger()
    assert panel.knobs.kv_format.change.endswith("tokens")
    panel.model.menu().actions()[0].trigger()
    assert panel.knobs.apply.isVisible()
    assert "Runtime" in labels(panel)


def test_what_does_not_fit_is_shown_with_buttons_that_mend_it(panel: VramPlanPanel) -> None:
    panel.model.menu().actions()[1].trigger()
    panel.knobs.kv_format.select.menu().actions()[1].trigger()
    panel.knobs.context.slider.setValue(31)
    assert panel.fault.isVisible()
    assert panel._fault_text.text().endswith("Any of these makes it fit:")
    assert "needed, 31.00 GiB may be taken" in panel.summary.text()
    assert panel.bar._end == 32 * GIB < sum(part.bytes for part in panel.bar._parts)
    said = [fix.text() for fix in mends(panel)]
    assert said[0].startswith("Context ")
    assert said[1].startswith("KV format ")
    for number in range(2):
        mends(panel)[number].click()
        assert not panel.fault.isVisible()
        panel.knobs.reset.click()
        panel.knobs.kv_format.select.menu().actions()[1].trigger()
        panel.knobs.context.slider.setValue(31)


def test_a_machine_that_is_too_small(panel: VramPlanPanel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "host_memory", lambda: Memory(GIB, 600 * MIB))
    panel.knobs.lanes.slider.setValue(2)
    assert panel.fault.isVisible()
    assert not panel.knobs.apply.isEnabled()
    assert "Does not fit" in panel.knobs._pending.text()


def test_no_plan_at_all(opened: Opened, panel: VramPlanPanel, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_self: EngineThread, _wanted: WhatIf) -> None:
        raise EngineError("There is no model 'x'.")

    with monkeypatch.context() as patch:
        patch.setattr(EngineThread, "plan", fail)
        panel._start_over()
        assert panel._fault_text.text() == "There is no model 'x'."
        assert not panel.table.isVisible()
        assert not panel.knobs.isEnabled()
        panel.knobs.changed.emit()
    panel._start_over()
    assert panel.table.isVisible()
    assert not panel.fault.isVisible()
    assert panel.knobs.isEnabled()


def test_bar_and_table_point_at_the_same_line(panel: VramPlanPanel) -> None:
    panel.bar.pointed.emit("kv_pool")
    assert panel.table.memory.pointed == "kv_pool"
    panel.table.pointed.emit("weights")
    assert panel.bar._name == "weights"


def test_a_narrow_window_has_its_knobs_in_two_columns(opened: Opened, panel: VramPlanPanel, qtbot: QtBot) -> None:
    opened.window.resize(760, 480)
    qtbot.waitUntil(lambda: panel.knobs._columns == 2)
    qtbot.waitUntil(lambda: panel.knobs.y() < panel.table.y())
    opened.window.resize(1280, 800)
    qtbot.waitUntil(lambda: panel.knobs._columns == 1)
    qtbot.waitUntil(lambda: panel.knobs.x() > panel.table.x())


def test_every_text_is_there_in_both_languages(open_window) -> None:
    for language in texts.LANGUAGES:
        opened = open_window(language)
        opened.window.show_panel("vram_plan")
        opened.window.vram_plan.model.menu().actions()[1].trigger()
        assert labels(opened.window.vram_plan)[0] == {"en": "Weights", "ko": "가중치"}[language]


def test_sizes_in_words() -> None:
    assert [size_text(size) for size in (0, 512 * MIB, 3 * GIB // 2)] == ["0 MiB", "512 MiB", "1.5 GiB"]
    assert [change_text(size) for size in (0, 1, -512 * MIB, 3 * GIB)] == ["", "", "−512 MiB", "+3.0 GiB"]


def test_apply_and_restart_puts_it_in_force(
    qapp: QApplication, qtbot: QtBot, tiny_model: Path, monkeypatch: pytest.MonkeyPatch, settled
) -> None:
    monkeypatch.setattr(qapp, "quit", lambda: None)
    SettingsFile().change(model=str(tiny_model), threads=1, serve=False)
    desktop = Desktop(qapp)
    desktop.start()
    qtbot.waitUntil(lambda: desktop.engine.snapshot.state == "ready", timeout=30_000)
    desktop.window.show_panel("vram_plan")
    panel, first = desktop.window.vram_plan, desktop.engine.engine
    panel.knobs.lanes.slider.setValue(2)
    panel.knobs.yarn.select.menu().actions()[1].trigger()
    panel.knobs.context.slider.setValue(31)
    panel.knobs.apply.click()
    qtbot.waitUntil(
        lambda: desktop.engine.engine is not first and desktop.engine.snapshot.state == "ready", timeout=30_000
    )
    assert len(desktop.engine.snapshot.lanes) == 3
    assert desktop.engine.snapshot.context_length == 8192
    qtbot.waitUntil(lambda: not panel.knobs.changes(), timeout=5000)
    assert (panel.knobs.lanes.value, panel.knobs.context.value, panel.knobs.yarn.value) == (3, 8192, "2")
    qtbot.waitUntil(lambda: "In force" in panel.knobs._pending.text(), timeout=5000)
    desktop.window.close()
    desktop.window.deleteLater()
    desktop.engine.deleteLater()
    settled()


# What stands behind it (ignis_desktop.planning).


def test_an_engine_on_a_card_plans_that_card(tiny_model: Path) -> None:
    config = EngineConfig(model=tiny_model, device="cuda")
    card = MemoryPlan("vram", 28 * GIB, GIB, (), other=3 * GIB, headroom=GIB, capacity=32 * GIB)
    planned = plan_what_if(config, WhatIf(headroom=2 * GIB), card)
    assert planned.plan.kind == "vram"
    assert (planned.plan.capacity, planned.plan.other, planned.plan.budget) == (32 * GIB, 3 * GIB, 27 * GIB)
    assert "q2" in cannot_run(config, WhatIf(kv_format="q2"))
    assert cannot_run(config, WhatIf(kv_format="bf16")) == ""
    assert cannot_run(EngineConfig(), WhatIf(kv_format="q2")) == ""


def test_a_card_nobody_has_measured(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "card_memory", lambda: Memory(8 * GIB, 6 * GIB))
    planned = plan_what_if(EngineConfig(model=tiny_model, device="cuda"), WhatIf(), None)
    assert (planned.plan.capacity, planned.plan.other) == (8 * GIB, 2 * GIB)
