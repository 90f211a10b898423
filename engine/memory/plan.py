"""The memory plan: every buffer the engine will hold, line by line, before anything is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import psutil
import torch

from engine.checkpoint.layout import expected_tensors
from engine.config import EngineConfig, ModelConfig
from engine.memory.lane_state import LaneState
from engine.memory.paged_kv import PagedKV
from engine.messages import EngineError, MemoryLine, MemoryPlan
from engine.sample.sampler import Sampler

HEADROOM = 512 << 20
"""Host memory left to everybody else."""
RUNTIME = 320 << 20
"""What Python, torch and the libraries hold themselves; measured, see docs/engine.md."""
VISION_CACHE = 32 << 20


class PlanError(EngineError):
    """The plan does not fit; the message names the shortfall and what would mend it."""


@dataclass(frozen=True)
class Layout:
    """Sizes of the buffers that the plan reserved."""

    max_context: int
    pages: int
    vision_cache: int
    parameters: int
    plan: MemoryPlan


def plan_host(model: ModelConfig, config: EngineConfig, dtype: torch.dtype, available: int | None = None) -> Layout:
    """Plan host memory for a model on the CPU.

    Args:
        available: bytes that may be used; None asks the system what is free now.

    Raises:
        PlanError: not even one full context fits.
    """
    memory = psutil.virtual_memory()
    free = memory.available if available is None else available
    text = model.text
    context = min(config.max_context or text.max_context, text.max_context)
    token_bytes = PagedKV.bytes_per_token(text, dtype)
    pages_each = -(-context // config.page_size)
    wanted = -(-config.kv_tokens // config.page_size) if config.kv_tokens is not None else config.lanes * pages_each
    if wanted < pages_each:
        raise PlanError(
            f"kv_tokens is {config.kv_tokens:,}, one context needs {context:,}: raise kv_tokens or lower max_context.",
            code="plan_does_not_fit",
        )
    slot = LaneState.bytes_per_slot(text, dtype)
    sampling = Sampler.bytes_per_lane(text.vocab_size)
    parameters = sum(prod(shape) for shape in expected_tensors(model).values())
    chunk = config.prefill_chunk
    widest = max(2 * text.intermediate_size + text.hidden_size, 4 * text.gdn_channels)
    workspace = 4 * chunk * widest * 4 + 64 * text.vocab_size * 4
    cache = VISION_CACHE if model.vision is not None else 0
    fixed = [
        MemoryLine("weights", parameters * dtype.itemsize, f"{parameters:,} parameters in {_name(dtype)}"),
        MemoryLine("runtime", RUNTIME, "Python, torch and libraries"),
        MemoryLine("lane_state", config.lanes * slot, f"{config.lanes} lanes × {slot:,} B recurrent state"),
        MemoryLine("retained", config.retained_limit * slot, f"{config.retained_limit} retained prefixes × {slot:,} B"),
        MemoryLine("sampling", config.lanes * sampling, f"{config.lanes} lanes × {sampling:,} B penalties"),
        MemoryLine("workspace", workspace, f"activations of a {chunk}-token chunk"),
        MemoryLine("vision_cache", cache, "encoded pictures"),
        MemoryLine("headroom", HEADROOM, "left free"),
    ]
    needed = sum(line.bytes for line in fixed)
    page_bytes = token_bytes * config.page_size
    pages = min(wanted, (free - needed) // page_bytes)
    least = pages_each if config.kv_tokens is None else wanted
    if pages < least:
        short = needed + least * page_bytes - free
        raise PlanError(
            f"The plan needs {short:,} bytes more than the {free:,} that are free: lower --max-context (now "
            f"{context:,} tokens of {token_bytes:,} B) or --lanes (now {config.lanes}), or close other programs.",
            code="plan_does_not_fit",
        )
    why = f"{pages:,} pages × {config.page_size} tokens × {token_bytes:,} B"
    lines = (*fixed[:2], MemoryLine("kv_pool", pages * page_bytes, why), *fixed[2:])
    plan = MemoryPlan("host", free, sum(line.bytes for line in lines), lines, other=memory.total - memory.available)
    return Layout(context, pages, cache, parameters, plan)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
