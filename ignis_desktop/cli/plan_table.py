"""A memory plan as lines of text, the same in ``ignis plan`` and while ``ignis serve`` starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.messages import MemoryPlan

MIB = 1024**2
_WIDTH = 12


def plan_lines(plan: MemoryPlan) -> Iterator[str]:
    """One line of text for each line of the plan, then the sum, the headroom, what others hold, and the other tiers."""
    whole = plan.capacity or plan.budget
    for line in plan.lines:
        if line.tier == "main":
            yield _row(line.name, line.bytes, line.why, whole)
    yield _row("total", plan.total, f"of {plan.budget / MIB:,.1f} MiB that may be taken", whole)
    yield _row("headroom", plan.headroom, "left to other programs", whole)
    yield _row("other", plan.other, "held by other programs and the system" if plan.other else "nothing else", whole)
    for tier, title in (("host", "Beside it, in the host's memory:"), ("disk", "On disk:")):
        lines = [line for line in plan.lines if line.tier == tier]
        if lines:
            yield title
        for line in lines:
            yield _row(line.name, line.bytes, line.why)


def _row(name: str, size: int, why: str, whole: int = 0) -> str:
    share = f"{size / whole:>7.1%}" if whole else f"{'':>7}"
    return f"  {name:<{_WIDTH}} {size / MIB:>10,.1f} MiB {share}  {why}".rstrip()
