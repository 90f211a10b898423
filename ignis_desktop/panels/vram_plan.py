"""The VRAM plan panel: where memory goes, and what turning a knob would change, before anything is loaded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from engine.messages import EngineError, EngineSnapshot
from ignis_desktop.engine_thread import EngineThread
from ignis_desktop.panels.model_line import loading_text, model_line
from ignis_desktop.panels.plan_knobs import PlanKnobs
from ignis_desktop.panels.plan_words import (
    bar_parts,
    before_parts,
    change_text,
    mend_text,
    size_text,
    summary,
    table_rows,
)
from ignis_desktop.planning import Planned, WhatIf
from ignis_desktop.store.settings import SettingsFile
from ignis_desktop.widgets.buttons import Select, button
from ignis_desktop.widgets.memory_bar import MemoryBar
from ignis_desktop.widgets.memory_table import MemoryTable
from ignis_desktop.widgets.panel import PanelHeader, ScrolledColumn
from ignis_desktop.widgets.texts import tr

_NARROW = 900
"""Pixels of width under which the knobs stand above the table."""
_KNOBS = 312
_CARD = 32 << 30
_BIG = WhatIf("qwen3.8-27b", _CARD, max_context=128 << 10, lanes=8, kv_format="q2")
"""The model that is asked about most, on the card it is made for."""


class VramPlanPanel(QWidget):
    restart_wanted = Signal()
    """The engine shall load again with what is set now."""

    def __init__(self, engine: EngineThread, settings: SettingsFile, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._settings = settings
        self._seen: tuple[object, ...] = ()
        self._stale = True
        self._state = ""
        self._base: Planned | None = None
        self._shown: Planned | None = None
        self._wanted = WhatIf()
        self._offered: list[tuple[tuple[str, Any], ...]] = []
        self.setObjectName("panelBody")
        self.header = PanelHeader(tr("nav.vram_plan"))
        self.model = Select([("own", tr("plan.own")), ("big", tr("plan.big"))], "own")
        self.model.setAccessibleName(tr("plan.model"))
        self.model.chosen.connect(self._choose)
        self.header.right.addWidget(self.model)
        self.summary = QLabel()
        self.summary.setProperty("kind", "figure")
        self.difference = QLabel()
        self.difference.setProperty("tone", "secondary")
        self.bar = MemoryBar()
        self.bar.setAccessibleName(tr("plan.bar"))
        self.table = MemoryTable()
        self.bar.pointed.connect(self.table.point_at)
        self.table.pointed.connect(self.bar.point_at)
        self.knobs = PlanKnobs()
        self.knobs.changed.connect(self._replan)
        self.knobs.reset.clicked.connect(self._start_over)
        self.knobs.apply.clicked.connect(self._apply)
        self.fault, self._fault_text, self._mends = self._fault_card()
        self.body = body = ScrolledColumn(1240, margin=24)
        line = QHBoxLayout()
        line.setSpacing(12)
        line.addWidget(self.summary)
        line.addWidget(self.difference, 1)
        self._middle = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._middle.setSpacing(16)
        self._table_column = QVBoxLayout()
        self._table_column.addWidget(self.table)
        self._table_column.addStretch(1)
        self._middle.addLayout(self._table_column, 1)
        self._middle.addWidget(self.knobs)
        column = body.column
        column.setSpacing(12)
        column.addLayout(line)
        column.addWidget(self.bar)
        column.addWidget(self.fault)
        column.addLayout(self._middle)
        column.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.header)
        layout.addWidget(body, 1)

    def _fault_card(self) -> tuple[QFrame, QLabel, QHBoxLayout]:
        frame = QFrame()
        frame.setObjectName("errorCard")
        text = QLabel(wordWrap=True)
        mends = QHBoxLayout()
        mends.setSpacing(8)
        layout = QVBoxLayout(frame)
        layout.setContentsMargins(16, 12, 16, 12)
        layout.setSpacing(8)
        layout.addWidget(text)
        layout.addLayout(mends)
        frame.hide()
        return frame, text, mends

    # Showing

    def show_snapshot(self, snapshot: EngineSnapshot) -> None:
        """Starts over when another plan is in force; costs next to nothing otherwise."""
        self.header.set_subject(model_line(snapshot) if self.model.value == "own" else "")
        seen = (snapshot.memory_plan, snapshot.state == "failed", self._engine.engine)
        if len(seen) != len(self._seen) or any(a is not b for a, b in zip(seen, self._seen, strict=True)):
            self._seen = seen
            self._stale = True
            if self.isVisible():
                self._start_over()
        elif {snapshot.state, self._state} != {"ready"} and self._shown is not None:
            self._show_pending(self._shown, self._shown is not self._base)
        self._state = snapshot.state

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.body.setFocus()  # keys scroll; no control looks chosen
        if self._stale:
            self._start_over()
        else:
            self._replan()  # other programs may hold more or less by now

    def _start_over(self) -> None:
        """The plan in force, or of the other model as it is usually run; knobs as it has them."""
        self._stale = False
        self._wanted = _BIG if self.model.value == "big" else WhatIf()
        try:
            self._base = self._engine.plan(self._wanted)
        except EngineError as error:
            self._base = None
            self._show_nothing(error.message)
            return
        in_force = self._engine.snapshot.memory_plan
        if self.model.value == "own" and in_force is not None and not self._base.short:
            self._base = replace(self._base, plan=in_force)
        self.knobs.take(self._base)
        self._show(self._base)

    def _replan(self) -> None:
        if self._base is None:
            return
        changed = self.knobs.changes()
        if not changed:
            self._show(self._base)
            return
        try:
            planned = self._engine.plan(replace(self._wanted, **changed))
        except EngineError as error:
            self._show_nothing(error.message)
            return
        self._show(planned)

    def _show(self, planned: Planned) -> None:
        self._shown = planned
        base = self._base or planned
        changed = planned is not base
        self.summary.setText(summary(planned))
        delta = change_text(planned.plan.total - base.plan.total) if changed else ""
        self.difference.setText(tr("plan.difference", size=delta) if delta else "")
        before = before_parts(base.plan) if changed and not base.short and not planned.short else ()
        self.bar.show_parts(bar_parts(planned.plan), planned.plan.capacity - planned.short, before)
        self.table.show_rows(table_rows(planned))
        self.table.show()
        self._show_fault(tr("plan.short", size=size_text(planned.short)) if planned.short else "", planned)
        self.knobs.show_plan(planned, base)
        self._show_pending(planned, changed)

    def _show_nothing(self, reason: str) -> None:
        """There is no such plan."""
        self._shown = None
        self.summary.setText("")
        self.difference.setText("")
        self.bar.show_parts((), 0)
        self.table.hide()
        self._show_fault(reason, None)
        self.knobs.setEnabled(self._base is not None)
        self.knobs.say("")

    def _show_fault(self, text: str, planned: Planned | None) -> None:
        self.fault.setVisible(bool(text))
        known = [m.changes for m in planned.mends if self.knobs.can_take(m.changes)] if planned is not None else []
        if planned is None:
            self._fault_text.setText(text)
        else:
            self._fault_text.setText(f"{text} {tr('plan.mends' if known else 'plan.no_mend')}")
        if known == self._offered:
            return
        self._offered = known
        while (item := self._mends.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        for changes in known:
            fix = button(mend_text(changes))
            fix.clicked.connect(lambda _checked=False, changes=changes: self._mend(changes))
            self._mends.addWidget(fix)
        if known:
            self._mends.addStretch(1)

    def _show_pending(self, planned: Planned, changed: bool) -> None:
        snapshot = self._engine.snapshot
        if self.model.value == "big":
            self.knobs.say(tr("plan.only_what_if"), offered=False)
        elif planned.short:
            self.knobs.say(tr("plan.does_not_fit"))
        elif not changed:
            ready = snapshot.state == "ready"
            self.knobs.say(tr("plan.in_force") if ready else loading_text(snapshot))
        else:
            reason = self._engine.cannot_run(replace(self._wanted, **self.knobs.changes()))
            self.knobs.say(reason or tr("settings.pending"), applies=not reason)

    # Doing

    def _choose(self) -> None:
        self._start_over()
        self.show_snapshot(self._engine.snapshot)

    def _mend(self, changes: tuple[tuple[str, Any], ...]) -> None:
        self.knobs.turn(changes)
        self._replan()

    def _apply(self) -> None:
        self._settings.change(**self.knobs.settings())
        self.restart_wanted.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        narrow = self.width() < _NARROW
        direction = QBoxLayout.Direction.BottomToTop if narrow else QBoxLayout.Direction.LeftToRight
        self._middle.setDirection(direction)
        self.knobs.flow(2 if narrow else 1)
        self.knobs.setMinimumWidth(0 if narrow else _KNOBS)
        self.knobs.setMaximumWidth(16_777_215 if narrow else _KNOBS)
