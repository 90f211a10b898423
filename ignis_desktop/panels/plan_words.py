"""A memory plan in words, colours and rows, for the bar, the table and the knobs."""

from __future__ import annotations

from dataclasses import replace

from engine.messages import MemoryLine, MemoryPlan
from ignis_desktop.planning import Planned
from ignis_desktop.widgets.memory_bar import Look, MemoryPart
from ignis_desktop.widgets.memory_table import MemoryRow
from ignis_desktop.widgets.texts import tr

GIB, MIB = 1 << 30, 1 << 20
_TONES = {
    "weights": "weights",
    "runtime": "runtime",
    "context": "runtime",
    "kv_pool": "kv",
    "kv_window": "kv",
    "lane_state": "state",
    "retained": "state",
    "host_tier": "tier",
    "disk_tier": "tier",
    "drafter": "tier",
    "workspace": "workspace",
    "vision_cache": "vision",
}
_LANE_LINES = ("lane_state", "kv_window", "sampling", "round", "graphs", "verify")
"""Lines that grow with the number of lanes."""


def size_text(size: float) -> str:
    """ "2.8 GiB", "512 MiB"."""
    return f"{size / GIB:,.1f} GiB" if abs(size) >= GIB else f"{size / MIB:,.0f} MiB"


def change_text(size: float) -> str:
    """The same with its sign; "" for a change too small to show."""
    return "" if abs(size) < MIB / 2 else f"{'+' if size > 0 else '−'}{size_text(abs(size))}"


def line_label(name: str) -> str:
    return tr(f"memory.{name}")


def tone(name: str) -> str:
    return f"memory_{_TONES.get(name, 'rounds')}"


def bar_parts(plan: MemoryPlan) -> list[MemoryPart]:
    """Others' memory, the plan's lines, what stays free, the headroom."""
    parts = [_part("other", plan.other, plan, look="others")]
    parts += [_part(line.name, line.bytes, plan, tone(line.name)) for line in plan.lines if line.tier == "main"]
    parts.append(_part("free", max(plan.budget - plan.total, 0), plan, look="clear"))
    parts.append(_part("headroom", plan.headroom, plan, look="hatched"))
    return parts


def before_parts(plan: MemoryPlan) -> list[MemoryPart]:
    """The same of the plan in force, while another one is considered."""
    return [replace(part, detail=tr("memory.detail_before", detail=part.detail)) for part in bar_parts(plan)]


def _part(name: str, size: int, plan: MemoryPlan, colour: str = "", look: Look = "solid") -> MemoryPart:
    label = line_label(name)
    detail = tr("memory.detail", name=label, size=f"{size / MIB:,.1f}", share=f"{size / max(plan.capacity, 1):.1%}")
    return MemoryPart(name, label, size, detail, colour, look)


def table_rows(planned: Planned) -> list[MemoryRow]:
    """The lines of the memory that is planned, their sum, the rest of that memory, then other tiers."""
    plan = planned.plan
    capacity = max(plan.capacity - planned.short, 1)
    rows = [_row(line, capacity) for line in plan.lines if line.tier == "main"]
    budget = tr("memory.of_budget", size=f"{(plan.budget - planned.short) / MIB:,.1f}")
    rows.append(MemoryRow("total", tr("memory.total"), plan.total, plan.total / capacity, budget, kind="sum"))
    rest: tuple[tuple[str, int, Look], ...] = (
        ("headroom", plan.headroom, "hatched"),
        ("other", plan.other, "others"),
        ("free", max(plan.budget - planned.short - plan.total, 0), "clear"),
    )
    for name, size, look in rest:
        rows.append(MemoryRow(name, line_label(name), size, size / capacity, tr(f"memory.{name}_why"), "", look))
    for tier in ("host", "disk"):
        lines = [line for line in plan.lines if line.tier == tier]
        if lines:
            rows.append(MemoryRow(tier, tr(f"memory.tier_{tier}"), kind="title"))
        rows += [_row(line) for line in lines]
    return rows


def _row(line: MemoryLine, capacity: int = 0) -> MemoryRow:
    share = line.bytes / capacity if capacity else None
    return MemoryRow(line.name, line_label(line.name), line.bytes, share, line.why, tone(line.name))


def summary(planned: Planned) -> str:
    """ "1.64 GiB of the 21.20 GiB that may be taken"."""
    total, budget = (f"{size / GIB:,.2f} GiB" for size in (planned.plan.total, planned.plan.budget - planned.short))
    return tr("plan.summary_short" if planned.short else "plan.summary", total=total, budget=budget)


def lane_bytes(planned: Planned) -> int:
    """What all lanes take beside the KV pool."""
    return planned.bytes_of(*_LANE_LINES)


def captions(planned: Planned, base: Planned) -> dict[str, tuple[str, str]]:
    """Knob → (what its value buys, the difference to ``base``)."""
    lanes, context = planned.lanes, planned.max_context
    each = lane_bytes(planned)
    tier, tier_before = planned.bytes_of("host_tier"), base.bytes_of("host_tier")
    tokens = planned.kv_tokens - base.kv_tokens if planned.kv_format != base.kv_format else 0
    return {
        "max_context": (
            tr("plan.context_buys", lanes=lanes, tokens=f"{context:,}", size=size_text(planned.full_lanes_bytes)),
            change_text(lanes * (context - base.max_context) * planned.token_bytes),
        ),
        "lanes": (
            tr("plan.lanes_buy", lanes=lanes, each=size_text(each / lanes), size=size_text(each)),
            change_text(each - lane_bytes(base)) if lanes != base.lanes else "",
        ),
        "kv_format": (
            tr("plan.kv_buys", size=f"{planned.token_bytes:,}", tokens=f"{planned.kv_tokens:,}"),
            "" if not tokens else tr("plan.tokens_change", tokens=f"{tokens:+,}".replace("-", "−")),
        ),
        "yarn": (tr("plan.yarn_buys", tokens=f"{round(planned.native_context * planned.yarn):,}"), ""),
        "headroom": (tr("plan.headroom_buys"), change_text(planned.plan.headroom - base.plan.headroom)),
        "host_tier": (
            tr("plan.tier_buys", tokens=f"{tier // planned.token_bytes:,}"),
            change_text(tier - tier_before),
        ),
    }


def mend_text(changes: tuple[tuple[str, int | str | None], ...]) -> str:
    """ "Context 61,440" for what would make a plan fit."""
    return ", ".join(f"{tr(f'plan.{name}')} {_value_text(name, value)}" for name, value in changes)


def _value_text(name: str, value: int | str | None) -> str:
    if name in ("headroom", "host_tier"):
        return size_text(int(value or 0))
    if name == "kv_format":
        return tr(f"kv.{value}")
    return f"{value:,}" if isinstance(value, int) else str(value)
