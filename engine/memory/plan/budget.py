"""What host and GPU plans have in common: the context, the budget, the pool, the sentence of a refusal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil

from engine.config import EngineConfig, ModelConfig
from engine.memory.plan.mend import Mend, mends
from engine.memory.plan.result import PlanError
from engine.messages import MemoryLine

MIB = 1 << 20
MAX_PIXELS = 4096 * 4096
"""Of the largest picture, when the model's own limit is not known."""
PICTURES = 2
"""Pictures of the largest size that the cache of encoded ones holds."""
LEAST_VISION_CACHE = 32 << 20
LEAST_HEADROOM = 256 << 20
"""A smaller headroom is not advised."""


@dataclass(frozen=True)
class Room:
    """How much may be taken of ``total`` bytes, of which ``free`` are free."""

    total: int
    free: int
    budget: int

    @property
    def headroom(self) -> int:
        return self.free - self.budget

    @property
    def other(self) -> int:
        return self.total - self.free


@dataclass(frozen=True)
class Attempt:
    """Fixed lines and how many pages fit beside them; ``short`` bytes are missing for the least number of pages."""

    lines: Sequence[MemoryLine]
    pages: int
    short: int

    @property
    def fixed(self) -> int:
        return main_bytes(self.lines)


def main_bytes(lines: Sequence[MemoryLine]) -> int:
    return sum(line.bytes for line in lines if line.tier == "main")


def room(config: EngineConfig, total: int, free: int, headroom: int) -> Room:
    """Raises ``PlanError`` when an explicit budget is not free."""
    if config.memory_budget is None:
        wanted = headroom if config.headroom is None else config.headroom
        return Room(total, free, max(free - wanted, 0))
    if config.memory_budget > free:
        raise PlanError(
            f"The budget is {config.memory_budget:,} bytes, but only {free:,} are free: lower it or close programs.",
            short=config.memory_budget - free,
        )
    return Room(total, free, config.memory_budget)


def context_of(model: ModelConfig, config: EngineConfig) -> int:
    """Tokens one lane may hold. Raises ``PlanError`` when that is more than the (stretched) model reads."""
    longest = model.text.max_context
    wanted = config.max_context or longest
    if wanted > longest:
        rope = model.text.rope
        native = rope.yarn_original_context if rope.yarn_factor > 1 else longest
        factor = ceil(wanted / native)
        stretch = f"--yarn {factor} stretches it, or " if factor <= 8 else ""
        raise PlanError(
            f"A context of {wanted:,} tokens is longer than the {longest:,} that the model reads: {stretch}"
            f"--max-context {longest} fits."
        )
    return wanted


def encoded_picture(model: ModelConfig, pixels: int, itemsize: int) -> int:
    """Bytes of the largest picture, encoded; 0 for a model without a vision tower."""
    return 0 if model.vision is None else pixels // model.vision.cell**2 * model.vision.out_hidden_size * itemsize


def vision_cache(model: ModelConfig, pixels: int, itemsize: int) -> int:
    """Bytes of encoded pictures that are kept: some of the largest size."""
    if model.vision is None:
        return 0
    return max(PICTURES * encoded_picture(model, pixels, itemsize), LEAST_VISION_CACHE)


def vision_line(model: ModelConfig, pixels: int, itemsize: int) -> MemoryLine:
    """What is kept, and the picture that is being encoded: it takes its place among them from the start."""
    size = vision_cache(model, pixels, itemsize) + encoded_picture(model, pixels, itemsize)
    return MemoryLine("vision_cache", size, "encoded pictures, and one under way" if size else "no pictures")


def pool(
    config: EngineConfig, context: int, page_bytes: int, most: int, lines: Sequence[MemoryLine], budget: int
) -> Attempt:
    """Pages beside the fixed lines: what is left, at most ``most`` or what ``kv_tokens`` asks for.

    Raises ``PlanError`` when ``kv_tokens`` is less than one context.
    """
    each = ceil(context / config.page_size)
    asked = None if config.kv_tokens is None else ceil(config.kv_tokens / config.page_size)
    if asked is not None and asked < each:
        raise PlanError(
            f"kv_tokens is {config.kv_tokens:,}, one context needs {context:,}: raise --kv-tokens or lower "
            "--max-context."
        )
    left = budget - main_bytes(lines)
    least = each if asked is None else asked
    pages = min(most if asked is None else asked, max(left, 0) // page_bytes)
    return Attempt(lines, pages, max(least * page_bytes - left, 0))


def refusal(
    config: EngineConfig,
    context: int,
    attempt: Attempt,
    space: Room,
    again: Callable[[EngineConfig], Attempt],
    formats: tuple[str, ...] = (),
) -> PlanError:
    """The sentence for a plan that is ``attempt.short`` bytes short.

    Args:
        again: the same plan with other options.
        formats: smaller KV formats, largest first.
    """

    def fits(other: EngineConfig) -> bool:
        try:
            return again(other).short == 0
        except PlanError:
            return False

    ways = mends(replace(config, max_context=context), context, fits, formats)
    spare = space.headroom - attempt.short
    if config.memory_budget is not None and spare >= 0:
        ways.append(Mend((("memory_budget", ceil((space.budget + attempt.short) / MIB) * MIB),)))
    elif config.memory_budget is None and spare >= LEAST_HEADROOM:
        ways.append(Mend((("headroom", spare // MIB * MIB),)))
    if ways:
        advice = f"{ways[0]} fits" + "".join(f", or {way}" for way in ways[1:])
    elif attempt.short <= space.other:
        advice = "close other programs"
    else:
        advice = f"all but the KV pool takes {attempt.fixed:,} already, so only more memory or a smaller model helps"
    held = f", other programs hold {space.other:,}" if space.other else ""
    return PlanError(
        f"{context:,} tokens of context need {attempt.short:,} bytes more than the {space.budget:,} that may be taken "
        f"({space.headroom:,} stay free{held}): {advice}.",
        short=attempt.short,
        mends=ways,
    )
