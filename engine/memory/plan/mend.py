"""What to change when a plan does not fit: each knob is tried alone, and the largest value that fits is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from engine.config import EngineConfig

Fits = Callable[[EngineConfig], bool]
STEP = 1024
LEAST_CONTEXT = 256
_MIB = 1 << 20
_SIZES = ("headroom", "memory_budget", "host_tier")


@dataclass(frozen=True)
class Mend:
    """Options of ``EngineConfig`` that together make a plan fit; ``str`` writes them as on the command line."""

    changes: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        return " with ".join(_flag(name, value) for name, value in self.changes)


def _flag(name: str, value: Any) -> str:
    flag = "--" + name.replace("_", "-")
    if value is None:
        return f"leaving out {flag}"
    return f"{flag} {value // _MIB}MiB" if name in _SIZES and value else f"{flag} {value}"


def mends(config: EngineConfig, context: int, fits: Fits, formats: tuple[str, ...]) -> list[Mend]:
    """Each of them makes the plan fit; one combination when no option does alone.

    Args:
        context: tokens that were wanted.
        formats: KV formats smaller than the wanted one, largest first.
    """
    found = [Mend(((name, value),)) for name, value in _alone(config, context, fits, formats)]
    if not found and config.lanes > 1:
        shorter = _context(replace(config, lanes=1), context, fits)
        found += [Mend((("lanes", 1), ("max_context", shorter)))] if shorter else []
    return found


def _alone(
    config: EngineConfig, context: int, fits: Fits, formats: tuple[str, ...]
) -> Iterator[tuple[str, int | str | None]]:
    if config.kv_tokens is not None and fits(replace(config, kv_tokens=None)):
        yield "kv_tokens", None
    shorter = _context(config, context, fits)
    if shorter:
        yield "max_context", shorter
    for name in formats:
        if fits(replace(config, kv_format=name)):  # type: ignore[arg-type]
            yield "kv_format", name
            break
    for lanes in range(config.lanes - 1, 0, -1):
        if fits(replace(config, lanes=lanes)):
            yield "lanes", lanes
            break
    if config.draft_tokens and fits(replace(config, draft_tokens=0)):
        yield "draft_tokens", 0
    if config.host_tier and fits(replace(config, host_tier=0)):
        yield "host_tier", 0


def _context(config: EngineConfig, context: int, fits: Fits) -> int:
    """The longest context that fits, in whole steps; 0 when none does."""
    step = STEP if context > STEP else 64
    low, high = LEAST_CONTEXT // step, (context - 1) // step  # low fits or is 0; nothing above high does
    if low and not fits(replace(config, max_context=low * step)):
        return 0
    while low < high:
        middle = (low + high + 1) // 2
        if fits(replace(config, max_context=middle * step)):
            low = middle
        else:
            high = middle - 1
    return low * step
