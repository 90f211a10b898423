"""What to change when a plan does not fit: each knob is tried alone, and the largest value that fits is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from engine.config import EngineConfig

Fits = Callable[[EngineConfig], bool]
STEP = 1024
LEAST_CONTEXT = 256


def mends(config: EngineConfig, context: int, fits: Fits, formats: tuple[str, ...]) -> list[str]:
    """Command-line options, each of which makes the plan fit; one combination when none does alone.

    Args:
        context: tokens that were wanted.
        formats: KV formats smaller than the wanted one, largest first.
    """
    found = list(_alone(config, context, fits, formats))
    if not found and config.lanes > 1:
        shorter = _context(replace(config, lanes=1), context, fits)
        found += [f"--lanes 1 with --max-context {shorter}"] if shorter else []
    return found


def _alone(config: EngineConfig, context: int, fits: Fits, formats: tuple[str, ...]) -> Iterator[str]:
    if config.kv_tokens is not None and fits(replace(config, kv_tokens=None)):
        yield "leaving out --kv-tokens"
    shorter = _context(config, context, fits)
    if shorter:
        yield f"--max-context {shorter}"
    for name in formats:
        if fits(replace(config, kv_format=name)):  # type: ignore[arg-type]
            yield f"--kv-format {name}"
            break
    for lanes in range(config.lanes - 1, 0, -1):
        if fits(replace(config, lanes=lanes)):
            yield f"--lanes {lanes}"
            break
    if config.draft_tokens and fits(replace(config, draft_tokens=0)):
        yield "--draft-tokens 0"
    if config.host_tier and fits(replace(config, host_tier=0)):
        yield "--host-tier 0"


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
