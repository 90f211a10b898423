"""What a plan is: the lines for people, the sizes for the loader, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.memory.plan.mend import Mend
from engine.messages import EngineError, MemoryPlan


class PlanError(EngineError):
    """The plan does not fit; the message names the shortfall and what would mend it.

    ``short`` is the shortfall in bytes, 0 when no amount of memory would help; ``mends`` is what the message advises.
    """

    def __init__(self, message: str, *, short: int = 0, mends: Sequence[Mend] = ()) -> None:
        super().__init__(message, code="plan_does_not_fit")
        self.short = short
        self.mends = tuple(mends)


@dataclass(frozen=True)
class Layout:
    """Sizes of the buffers that the plan reserved."""

    max_context: int
    pages: int
    vision_cache: int
    """Bytes of encoded pictures."""
    host_tier: int
    """Bytes of the arena for pages of kept and parked state."""
    weights: int | None
    """Bytes of the one block that holds all weights on a card; None on the host, where each has its own memory."""
    kv_format: str
    """"float32", "bf16", "fp8" or "q2"."""
    parameters: int
    plan: MemoryPlan
