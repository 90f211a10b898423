"""The plan for a card's memory, for a card that is here or for any other: nothing of it needs a GPU.

What cannot be known before the card was used (context, graphs) is an assumption and says so. All other lines state what
torch takes of the driver, to the step of 2 MiB in which it takes it: ``runtime`` holds what they leave out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Literal

from engine.checkpoint.geometries import Drafter
from engine.config import EngineConfig, ModelConfig, TextConfig
from engine.memory import sizes
from engine.memory.plan.activations import workspace
from engine.memory.plan.budget import (
    MAX_PIXELS,
    Attempt,
    context_of,
    main_bytes,
    pool,
    refusal,
    room,
    vision_cache,
    vision_line,
)
from engine.memory.plan.host import TIER_SHARE
from engine.memory.plan.machine import Memory
from engine.memory.plan.result import Layout, PlanError
from engine.memory.plan.weights import Weights
from engine.memory.segments import SMALL, STEP, taken
from engine.messages import MemoryLine, MemoryPlan

HEADROOM = 1 << 30
CONTEXT = 432 << 20
"""The driver's and CUDA's own share: what a published plan for a 32 GiB card states."""
KERNELS = 168 << 20
"""The driver's share of compiled kernels and of captured rounds and chunks, measured on an H200: 140 MiB with 143
kernels, eight widths and seven sizes of chunks."""
GRAPH = 16 << 20
"""Intermediate results of one captured round, measured there with the 27B; its logits come to that."""
CHUNK_GRAPHS = 56 << 20
"""Intermediate results of all captured sizes of short chunks, which share what the largest takes. Measured there: torch
held 238 MiB for the graphs of eight rounds and seven sizes, 42 more than rounds are counted with; a third is margin."""
CUBLAS = 32 << 20
"""Workspace that torch gives cuBLAS on SM90 (``aten/src/ATen/cuda/CublasHandlePool.cpp``); elsewhere it is smaller."""
SMALL_FREE, SMALL_KEPT = 32 << 20, 4 << 20
"""Tensors of up to a MiB come out of blocks of their own: those of requests (a chunk's tables and positions, the logits
of a lane that waits), and those that stay."""
HOST_TIER = 2 << 30


@dataclass(frozen=True)
class _Card:
    """All of a plan that the mends do not change."""

    model: ModelConfig
    weights: Weights
    drafter: Drafter | None
    host: Memory | None
    itemsize: int
    pixels: int
    budget: int
    context: int | None


def plan_vram(
    model: ModelConfig,
    config: EngineConfig,
    weights: Weights,
    *,
    total: int,
    free: int,
    itemsize: Literal[2, 4] = 2,
    pixels: int = MAX_PIXELS,
    drafter: Drafter | None = None,
    host: Memory | None = None,
    context_bytes: int | None = None,
) -> Layout:
    """Plan a GPU's memory.

    Args:
        weights: what the card will hold of them (``engine.memory.plan.weights``).
        total, free: bytes of the card, and of them those that no other process holds.
        itemsize: bytes of the compute type.
        pixels: of the largest picture.
        drafter: the model's, if there is one.
        host: memory of the machine the card is in; None is not known, and enough.
        context_bytes: what the driver's context was measured to take; None is not known.

    Raises:
        PlanError: not even one full context fits.
    """
    model = model if config.yarn is None else model.stretched(config.yarn)
    if config.draft_tokens and drafter is None:
        raise PlanError("There is no drafter for this model: leave out --draft-tokens.")
    space = room(config, total, free, HEADROOM)
    card = _Card(model, weights, drafter, host, itemsize, pixels, space.budget, context_bytes)
    attempt = partial(_attempt, card)
    context, found = context_of(model, config), attempt(config)
    kept = _kept(config, itemsize)
    if found.short:
        raise refusal(config, context, found, space, attempt, _smaller(kept))
    token = sizes.kv_token_bytes(model.text, kept)
    size = found.pages * config.page_size * token
    why = f"{found.pages:,} pages × {config.page_size} tokens × {token:,} B ({kept})"
    lines = (*found.lines[:2], MemoryLine("kv_pool", size, why), *found.lines[2:])
    plan = MemoryPlan("vram", space.budget, main_bytes(lines), lines, space.other, space.headroom, total)
    return Layout(
        max_context=context,
        pages=found.pages,
        vision_cache=vision_cache(model, pixels, itemsize),
        host_tier=next(line.bytes for line in lines if line.name == "host_tier"),
        weights=weights.bytes,
        kv_format=kept,
        parameters=weights.parameters,
        plan=plan,
    )


def _kept(config: EngineConfig, itemsize: int) -> str:
    if config.kv_format == "auto":
        return "bf16" if itemsize == 2 else "float32"
    return config.kv_format


def _smaller(kept: str) -> tuple[str, ...]:
    """KV formats that take less, largest first."""
    return sizes.PACKED[sizes.PACKED.index(kept) + 1 :] if kept in sizes.PACKED else sizes.PACKED


def _attempt(card: _Card, config: EngineConfig) -> Attempt:
    context, kept = context_of(card.model, config), _kept(config, card.itemsize)
    lines = _device_lines(card, config, context, kept) + _host_lines(card, config, kept)
    page = config.page_size * sizes.kv_token_bytes(card.model.text, kept)
    # The pool takes the rest, up to what lanes and kept states can fill.
    most = (2 * config.lanes + config.retained_limit) * ceil(context / config.page_size)
    return pool(config, context, page, most, lines, card.budget)


def _device_lines(card: _Card, config: EngineConfig, context: int, kept: str) -> list[MemoryLine]:
    text, lanes, columns = card.model.text, config.lanes, config.draft_tokens + 1
    slot, sampling = sizes.state_bytes(text, card.itemsize), sizes.sampling_bytes(text.vocab_size)
    pages = ceil(context / config.page_size)
    work = workspace(
        text,
        card.model.vision,
        chunk=config.prefill_chunk,
        lanes=lanes,
        columns=columns,
        pixels=card.pixels,
        itemsize=card.itemsize,
        gathered=0,
    )
    rounds = sizes.round_bytes(lanes, pages, columns)
    cache = vision_line(card.model, card.pixels, card.itemsize)
    widths = lanes * (2 if config.draft_tokens else 1)
    logits = 2 * sum(range(lanes + 1)) * columns * text.vocab_size * 4
    chunks = CHUNK_GRAPHS if config.prefill_chunk >= sizes.PADDED[0] else 0
    graphs = widths * GRAPH + logits + chunks
    why = f"{widths} rounds × {GRAPH:,} B + logits {logits:,} B + short chunks {chunks:,} B"
    return [
        MemoryLine("weights", card.weights.bytes, card.weights.why),
        _context(card.context),
        _runtime(card, lanes, (cache.bytes, work.bytes)),
        _window(text, lanes, config.prefill_chunk, kept),
        MemoryLine("lane_state", lanes * slot, f"{lanes} lanes × {slot:,} B"),
        MemoryLine("workspace", work.bytes, work.why),
        cache,
        MemoryLine("sampling", lanes * sampling, f"{lanes} lanes × {sampling:,} B penalties and masks"),
        MemoryLine("round", rounds, f"{lanes} lanes × ({pages:,} pages × 4 B + 64 B + {columns} × 40 B)"),
        MemoryLine("graphs", graphs, why),
        _verify(text, card.drafter, lanes, config.draft_tokens),
        _drafter(card.drafter, lanes, config.draft_tokens),
    ]


def _context(measured: int | None) -> MemoryLine:
    size, how = (CONTEXT, "assumed until it is measured on the card") if measured is None else (measured, "measured")
    why = f"the driver's and its libraries' {size:,} B, {how} + kernels and graphs {KERNELS:,} B"
    return MemoryLine("context", size + KERNELS, why)


def _runtime(card: _Card, lanes: int, later: Sequence[int]) -> MemoryLine:
    """What torch takes for itself, and beside the tensors of other lines, those of ``later`` being reserved last.
    Buffers that are not built yet (drafts, exact windows) are not rounded up."""
    text = card.model.text
    scratch, inputs = sizes.scratch_bytes(text), sizes.padded_bytes(text)
    states = [lanes * size for size in sizes.state_parts(text, card.itemsize)]
    sampling = [lanes * size for size in sizes.sampling_parts(text.vocab_size)]
    # In the order in which they come; the pool's size is not known yet, so it is rounded up by a whole step.
    buffers = [CUBLAS, *states, card.weights.bytes, scratch, inputs, *sampling, *later]
    buffers = [size for size in buffers if size > SMALL]
    rounding = taken(buffers) - sum(buffers) + STEP
    parts = {
        "for unpacked weights": scratch,
        "inputs of short chunks": inputs,
        "cuBLAS": CUBLAS,
        "small tensors": SMALL_FREE + SMALL_KEPT,
        "rounded up by torch": rounding,
    }
    why = " + ".join(f"{what} {size:,} B" for what, size in parts.items())
    return MemoryLine("runtime", sum(parts.values()), why)


def _window(text: TextConfig, lanes: int, chunk: int, kept: str) -> MemoryLine:
    if kept not in sizes.WINDOWED:
        return MemoryLine("kv_window", 0, f"{kept} keeps all tokens alike")
    rows, token = sizes.exact_rows(chunk), sizes.kv_token_bytes(text, "bf16")
    parts = f"{sizes.EXACT_FIRST} + {sizes.EXACT_LAST} + {chunk:,}"
    return MemoryLine("kv_window", lanes * rows * token, f"{lanes} lanes × ({parts}) tokens × {token:,} B (bf16)")


def _verify(text: TextConfig, drafter: Drafter | None, lanes: int, drafts: int) -> MemoryLine:
    if not drafts or drafter is None:
        return MemoryLine("verify", 0, "no drafts")
    column = sizes.verify_bytes(text, drafter.taps)
    return MemoryLine("verify", lanes * (drafts + 1) * column, f"{lanes} lanes × {drafts + 1} columns × {column:,} B")


def _drafter(drafter: Drafter | None, lanes: int, drafts: int) -> MemoryLine:
    if not drafts or drafter is None:
        return MemoryLine("drafter", 0, "no drafts")
    tokens = drafter.window + drafts + 1
    why = f"{drafter.weights:,} B BF16 + {lanes} lanes × {tokens:,} tokens × {drafter.token_bytes:,} B"
    return MemoryLine("drafter", drafter.weights + lanes * tokens * drafter.token_bytes, why)


def _host_lines(card: _Card, config: EngineConfig, kept: str) -> list[MemoryLine]:
    """Pinned memory beside the card. A state takes its exact window and the drafter's along."""
    slot = sizes.state_bytes(card.model.text, card.itemsize)
    if kept in sizes.WINDOWED:
        slot += sizes.exact_rows(0) * sizes.kv_token_bytes(card.model.text, "bf16")
    if config.draft_tokens and card.drafter is not None:
        slot += card.drafter.window * card.drafter.token_bytes
    shelf, why = sizes.shelf_bytes(card.model.text, config.lanes, config.retained_limit, slot, card.itemsize)
    tier = config.host_tier
    if tier is None:
        tier = HOST_TIER if card.host is None else min(HOST_TIER, card.host.total // TIER_SHARE)
    if card.host is not None and (tier > card.host.total // TIER_SHARE or tier + shelf > card.host.free):
        raise PlanError(
            f"Pinned host memory for kept state ({shelf:,} bytes) and the host tier ({tier:,}) do not fit: "
            f"{card.host.free:,} are free and the tier may take a quarter of {card.host.total:,}: lower --host-tier or "
            "--lanes.",
        )
    lines = [
        MemoryLine("retained", shelf, f"{why}, pinned", "host"),
        MemoryLine("host_tier", tier, "pages of kept or parked state, pinned" if tier else "off", "host"),
    ]
    if config.disk_tier is not None:
        lines.append(MemoryLine("disk_tier", config.disk_tier_bytes, f"at most, in {config.disk_tier}", "disk"))
    return lines
