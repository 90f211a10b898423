"""The plan for loading a model on this machine: what the engine cannot run is refused here, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.config import EngineConfig, ModelConfig
from engine.memory import sizes
from engine.memory.plan.budget import MAX_PIXELS
from engine.memory.plan.host import plan_host
from engine.memory.plan.machine import Memory, card_memory, host_memory
from engine.memory.plan.result import Layout, PlanError
from engine.memory.plan.vram import plan_vram
from engine.memory.plan.weights import unpacked

if TYPE_CHECKING:
    import torch


def plan_load(
    model: ModelConfig, config: EngineConfig, device: torch.device, dtype: torch.dtype, *, pixels: int = MAX_PIXELS
) -> Layout:
    """Plan the memory of ``device``. Weights are unpacked to ``dtype`` while they are read.

    Args:
        pixels: of the largest picture.

    Raises:
        PlanError: the plan does not fit, or asks for something the engine does not do yet.
    """
    if device.type != "cuda":
        return plan_host(model, config, dtype, pixels=pixels)
    name = str(dtype).removeprefix("torch.")
    check_runs(config, name)
    memory = _card(device)
    weights = unpacked(model, dtype.itemsize, name)
    return plan_vram(
        model,
        config,
        weights,
        total=memory.total,
        free=memory.free,
        itemsize=2 if dtype.itemsize == 2 else 4,
        pixels=pixels,
        host=host_memory(),
    )


def check_runs(config: EngineConfig, name: str) -> None:
    """Raises ``PlanError`` for what can be planned for a card but not run there yet; ``name`` is the compute type."""
    if config.kv_format in sizes.PACKED or (config.kv_format == "bf16" and name != "bfloat16"):
        raise PlanError(
            f"The engine keeps keys and values in {name}, not yet in {config.kv_format}: leave out --kv-format "
            "(ignis plan shows what it would take)."
        )
    if config.draft_tokens:
        raise PlanError(
            "The engine does not draft yet: leave out --draft-tokens (ignis plan shows what it would take)."
        )


def _card(device: torch.device) -> Memory:
    import torch

    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", "")
    memory = card_memory(f"GPU-{uuid}" if uuid else "")
    if memory is not None:
        return memory
    free, total = torch.cuda.mem_get_info(device)
    return Memory(total, free + torch.cuda.memory_reserved(device))
