"""The plan for loading a model on this machine: what the engine cannot run is refused here, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.compute import runs_fused
from engine.config import EngineConfig, ModelConfig
from engine.memory.plan.budget import MAX_PIXELS
from engine.memory.plan.host import plan_host
from engine.memory.plan.machine import Memory, card_memory, cuda_context, host_memory
from engine.memory.plan.result import Layout, PlanError
from engine.memory.plan.vram import plan_vram
from engine.memory.plan.weights import Formats, on_card, plain_on_card

if TYPE_CHECKING:
    import torch


def plan_load(
    model: ModelConfig,
    config: EngineConfig,
    device: torch.device,
    dtype: torch.dtype,
    checkpoint: Formats,
    *,
    pixels: int = MAX_PIXELS,
) -> Layout:
    """Plan the memory of ``device``.

    Args:
        checkpoint: what is to be loaded; where the decoder is not fused, its weights are unpacked to ``dtype``.
        pixels: of the largest picture.

    Raises:
        PlanError: the plan does not fit, or asks for something the engine does not do yet.
    """
    if device.type != "cuda":
        return plan_host(model, config, dtype, pixels=pixels)
    name = str(dtype).removeprefix("torch.")
    fused = runs_fused(model.text, device.type, name)
    check_runs(config, name, fused=fused)
    _touch(device)
    memory = _card(device)
    weights = on_card(model, checkpoint) if fused else plain_on_card(model, dtype.itemsize, name)
    return plan_vram(
        model,
        config,
        weights,
        total=memory.total,
        free=memory.free,
        itemsize=2 if dtype.itemsize == 2 else 4,
        pixels=pixels,
        host=host_memory(),
        context_bytes=cuda_context(_uuid(device)),
    )


def check_runs(config: EngineConfig, name: str, *, fused: bool) -> None:
    """Raises ``PlanError`` for what can be planned for a card but not run there; ``name`` is the compute type,
    ``fused`` whether the card's kernels run."""
    kept = ["auto"] + ["bf16"] * (name == "bfloat16") + ["fp8"] * fused
    if config.kv_format not in kept:
        raise PlanError(
            f"The engine keeps keys and values in {name}, not yet in {config.kv_format}: leave out --kv-format "
            "(ignis plan shows what it would take)."
        )
    if config.draft_tokens:
        raise PlanError(
            "The engine does not draft yet: leave out --draft-tokens (ignis plan shows what it would take)."
        )


def _touch(device: torch.device) -> None:
    """Let the driver make its context and cuBLAS its workspace, so that both can be measured."""
    import torch

    a = torch.ones(64, 64, dtype=torch.bfloat16, device=device)
    torch.mm(a, a)
    torch.cuda.synchronize(device)


def _uuid(device: torch.device) -> str:
    import torch

    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", "")
    return f"GPU-{uuid}" if uuid else ""


def _card(device: torch.device) -> Memory:
    import torch

    memory = card_memory(_uuid(device))
    if memory is not None:
        return memory
    free, total = torch.cuda.mem_get_info(device)
    return Memory(total, free + torch.cuda.memory_reserved(device))
