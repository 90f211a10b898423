"""The plan for a model on the CPU: every buffer in the host's memory, line by line."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import ceil
from typing import TYPE_CHECKING

from engine.compute import ITEMSIZE, ComputeType
from engine.config import EngineConfig, ModelConfig
from engine.memory import sizes
from engine.memory.plan.activations import workspace
from engine.memory.plan.budget import MAX_PIXELS, Attempt, context_of, pool, refusal, room, vision_cache, vision_line
from engine.memory.plan.machine import Memory, host_memory
from engine.memory.plan.result import Layout, PlanError
from engine.memory.plan.weights import unpacked
from engine.messages import MemoryLine, MemoryPlan

if TYPE_CHECKING:
    import torch

HEADROOM = 512 << 20
RUNTIME = 320 << 20
"""What Python, torch and the libraries hold themselves; measured, see docs/engine.md."""
HOST_TIER = 256 << 20
TIER_SHARE = 4
"""The host tier takes at most one part in so many of all memory."""


def plan_host(
    model: ModelConfig,
    config: EngineConfig,
    dtype: torch.dtype | ComputeType,
    available: Memory | int | None = None,
    *,
    pixels: int = MAX_PIXELS,
) -> Layout:
    """Plan host memory for a model on the CPU.

    Args:
        dtype: the compute type; weights, keys and values are kept in it.
        available: what there is: a host's memory, or bytes of one with nothing else on it. None asks this one.
        pixels: of the largest picture.

    Raises:
        PlanError: not even one full context fits, or an option is beyond what the engine does on the CPU.
    """
    name = str(dtype).removeprefix("torch.")
    itemsize = ITEMSIZE[name]
    kept = {"bfloat16": "bf16"}.get(name, name)
    _check(config, kept, name)
    memory = host_memory() if available is None else available
    if isinstance(memory, int):
        memory = Memory(memory, memory)
    model = model if config.yarn is None else model.stretched(config.yarn)
    space = room(config, memory.total, memory.free, HEADROOM)
    attempt = partial(_attempt, model, itemsize=itemsize, kept=kept, memory=memory, budget=space.budget, pixels=pixels)
    context, found = context_of(model, config), attempt(config)
    if found.short:
        raise refusal(config, context, found, space, attempt)
    token = sizes.kv_token_bytes(model.text, kept)
    page = token * config.page_size
    why = f"{found.pages:,} pages × {config.page_size} tokens × {token:,} B"
    lines = [*found.lines[:2], MemoryLine("kv_pool", found.pages * page, why), *found.lines[2:]]
    tier = next(line for line in lines if line.name == "host_tier")
    if config.host_tier is None:
        left = space.budget - found.fixed - found.pages * page
        size = min(HOST_TIER, memory.total // TIER_SHARE, left) // page * page
        lines[lines.index(tier)] = tier = replace(
            tier, bytes=size, why=f"{size // page:,} pages of kept or parked state"
        )
    total = sum(line.bytes for line in lines)
    if config.disk_tier is not None:
        lines.append(MemoryLine("disk_tier", config.disk_tier_bytes, f"at most, in {config.disk_tier}", "disk"))
    plan = MemoryPlan("host", space.budget, total, tuple(lines), space.other, space.headroom, memory.total)
    weights = unpacked(model, itemsize, name)
    cache = vision_cache(model, pixels, itemsize)
    return Layout(context, found.pages, cache, tier.bytes, None, kept, weights.parameters, plan)


def _check(config: EngineConfig, kept: str, name: str) -> None:
    if config.kv_format not in ("auto", kept):
        raise PlanError(
            f"On the CPU keys and values are kept in the compute type, {name}; {config.kv_format} needs a GPU: leave "
            "out --kv-format."
        )
    if config.draft_tokens:
        raise PlanError("Nothing is drafted on the CPU: leave out --draft-tokens.")


def _attempt(
    model: ModelConfig,
    config: EngineConfig,
    *,
    itemsize: int,
    kept: str,
    memory: Memory,
    budget: int,
    pixels: int,
) -> Attempt:
    text, context = model.text, context_of(model, config)
    token = sizes.kv_token_bytes(text, kept)
    each = ceil(context / config.page_size)
    lines = _lines(model, config, itemsize, kept, memory, context, pixels)
    return pool(config, context, token * config.page_size, config.lanes * each, lines, budget)


def _lines(
    model: ModelConfig, config: EngineConfig, itemsize: int, kept: str, memory: Memory, context: int, pixels: int
) -> list[MemoryLine]:
    """All lines but the pool's. The host tier is what was asked for; by itself it takes what the pool leaves."""
    text, lanes = model.text, config.lanes
    weights = unpacked(model, itemsize, "bfloat16" if kept == "bf16" else kept)
    slot, sampling = sizes.state_bytes(text, itemsize), sizes.sampling_bytes(text.vocab_size)
    work = workspace(
        text,
        model.vision,
        chunk=config.prefill_chunk,
        lanes=lanes,
        columns=1,
        pixels=pixels,
        itemsize=itemsize,
        gathered=context,
    )
    tier = config.host_tier or 0
    if tier > memory.total // TIER_SHARE:
        raise PlanError(
            f"The host tier of {tier:,} bytes is more than a quarter of the memory ({memory.total:,}): lower "
            "--host-tier."
        )
    return [
        MemoryLine("weights", weights.bytes, weights.why),
        MemoryLine("runtime", RUNTIME, "Python, torch and libraries"),
        MemoryLine("lane_state", lanes * slot, f"{lanes} lanes × {slot:,} B"),
        MemoryLine("retained", *sizes.shelf_bytes(text, lanes, config.retained_limit, slot, itemsize)),
        MemoryLine("host_tier", tier, "pages of kept or parked state, as set" if tier else "off"),
        MemoryLine("sampling", lanes * sampling, f"{lanes} lanes × {sampling:,} B penalties and masks"),
        MemoryLine("workspace", work.bytes, work.why),
        vision_line(model, pixels, itemsize),
    ]
