"""The knobs beside the memory plan: context, lanes, KV format, YaRN, headroom, host tier."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from ignis_desktop.panels.plan_words import captions, size_text
from ignis_desktop.planning import Planned
from ignis_desktop.widgets.buttons import button
from ignis_desktop.widgets.knob import ChoiceKnob, Knob, SliderKnob
from ignis_desktop.widgets.panel import section
from ignis_desktop.widgets.texts import tr

MIB, GIB = 1 << 20, 1 << 30
_STOPS = 32
"""Steps of the context's slider."""
_YARN = (1, 2, 4)
_FORMATS = ("float32", "bf16", "fp8", "q2")


class PlanKnobs(QFrame):
    """Announces ``changed`` while a knob is turned; what that makes of the plan is the panel's."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("card")
        self._base: Planned | None = None
        self.context = SliderKnob(tr("plan.max_context"), lambda value: f"{value:,}")
        self.lanes = SliderKnob(tr("plan.lanes"), str)
        self.kv_format = ChoiceKnob(tr("plan.kv_format"), [(name, tr(f"kv.{name}")) for name in _FORMATS])
        self.yarn = ChoiceKnob(
            tr("plan.yarn"), [(str(factor), tr("plan.off") if factor == 1 else f"{factor} ×") for factor in _YARN]
        )
        self.headroom = SliderKnob(tr("plan.headroom"), size_text)
        self.host_tier = SliderKnob(tr("plan.host_tier"), lambda size: size_text(size) if size else tr("plan.off"))
        self._knobs: dict[str, Knob] = {
            "max_context": self.context,
            "lanes": self.lanes,
            "kv_format": self.kv_format,
            "yarn": self.yarn,
            "headroom": self.headroom,
            "host_tier": self.host_tier,
        }
        for knob in self._knobs.values():
            knob.changed.connect(self._on_changed)
        self.reset = button(tr("plan.reset"), "quiet")
        self.apply = button(tr("plan.apply"), "primary")
        self._pending = QLabel(wordWrap=True)
        self._pending.setProperty("kind", "small")
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(32)
        self._grid.setVerticalSpacing(12)
        self._columns = 0
        top = QHBoxLayout()
        top.addWidget(section(tr("plan.what_if")), 1)
        top.addWidget(self.reset)
        self._bottom = QVBoxLayout()
        self._bottom.setSpacing(8)
        self._bottom.addWidget(self._pending)
        self._bottom.addWidget(self.apply)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 8, 16, 14)
        layout.setSpacing(8)
        layout.addLayout(top)
        layout.addLayout(self._grid)
        layout.addStretch(1)
        layout.addLayout(self._bottom)
        self.flow(1)

    def flow(self, columns: int) -> None:
        """Stands the knobs in one or two columns."""
        if columns == self._columns:
            return
        self._columns = columns
        for number, knob in enumerate(self._knobs.values()):
            self._grid.removeWidget(knob)
            self._grid.addWidget(knob, number // columns, number % columns)
        for column in range(2):
            self._grid.setColumnStretch(column, 1 if column < columns else 0)

    # What the knobs say

    def take(self, base: Planned) -> None:
        """Sets the knobs to a plan; from now on changes are counted from there."""
        self._base = base
        plan = base.plan
        on_card = plan.kind == "vram"
        self.setEnabled(True)
        self.yarn.set_value(str(round(base.yarn)))
        self.context.set_value(base.max_context, _context_stops(self._longest))
        self.lanes.set_value(base.lanes, range(1, 17))
        self.kv_format.set_value(base.kv_format)
        self.kv_format.select.setEnabled(on_card)
        self.headroom.set_value(plan.headroom, range(0, 4 * GIB + 1, 256 * MIB))
        most = 16 * GIB if on_card else min(plan.capacity // 4, 4 * GIB)
        step = 512 * MIB if on_card else 64 * MIB
        self.host_tier.set_value(base.bytes_of("host_tier"), range(0, most + 1, step))

    def changes(self) -> dict[str, Any]:
        """Values that differ from those taken, named as in ``WhatIf``. The context is always said once anything is: it
        does not follow YaRN by itself."""
        before, now = self._taken(), self._values()
        found = {name: value for name, value in now.items() if value != before[name]}
        return found | {"max_context": now["max_context"]} if found else {}

    def settings(self) -> dict[str, Any]:
        """The changes as the window's settings keep them."""
        found = self.changes()
        for name in ("headroom", "host_tier"):
            if name in found:
                found[name] = found[name] // MIB
        return found

    def can_take(self, changes: Iterable[tuple[str, Any]]) -> bool:
        """Whether there is a knob for each of them that can be turned."""
        names = {name for name, _ in changes}
        return names <= self._knobs.keys() and ("kv_format" not in names or self.kv_format.select.isEnabled())

    def turn(self, changes: Iterable[tuple[str, Any]]) -> None:
        for name, value in changes:
            knob = self._knobs[name]
            if isinstance(knob, SliderKnob):
                knob.set_value(int(value))
            elif isinstance(knob, ChoiceKnob):
                knob.set_value(str(value))

    def _values(self) -> dict[str, Any]:
        return {
            "max_context": self.context.value,
            "lanes": self.lanes.value,
            "kv_format": self.kv_format.value,
            "yarn": int(self.yarn.value),
            "headroom": self.headroom.value,
            "host_tier": self.host_tier.value,
        }

    def _taken(self) -> dict[str, Any]:
        base = self._base
        if base is None:
            return self._values()
        return {
            "max_context": base.max_context,
            "lanes": base.lanes,
            "kv_format": base.kv_format,
            "yarn": round(base.yarn),
            "headroom": base.plan.headroom,
            "host_tier": base.bytes_of("host_tier"),
        }

    @property
    def _longest(self) -> int:
        return (self._base.native_context if self._base is not None else 1) * int(self.yarn.value)

    def _on_changed(self) -> None:
        if self.sender() is self.yarn:
            self.context.set_value(min(self.context.value, self._longest), _context_stops(self._longest))
        self.changed.emit()

    # What the plan says

    def show_plan(self, planned: Planned, base: Planned) -> None:
        """What each value buys, and what changing it costs."""
        self.setEnabled(True)
        for name, (caption, change) in captions(planned, base).items():
            self._knobs[name].explain(caption, change)
        if planned.plan.kind == "host":
            self.kv_format.explain(tr("plan.kv_on_cpu", size=f"{planned.token_bytes:,}"))

    def say(self, text: str, *, applies: bool = False, offered: bool = True) -> None:
        """What stands above the button, whether it can be pressed, and whether there is one at all."""
        self._pending.setText(text)
        self.apply.setEnabled(applies)
        self.apply.setVisible(offered)
        self.reset.setEnabled(bool(self.changes()))


def _context_stops(longest: int) -> list[int]:
    return [max(longest * number // _STOPS, 1) for number in range(1, _STOPS + 1)]
