"""A card's memory is taken at load, as the plan says, and not added to."""

from __future__ import annotations

import torch

from engine.memory.plan.vram import SMALL_FREE
from engine.memory.segments import SMALL, STEP
from engine.messages import MemoryPlan


def reserve(plan: MemoryPlan, device: torch.device) -> None:
    """Take from the driver what requests will need, so that nobody else can, and let torch take no more than the plan's
    budget: what does not fit fails the request that asked for it, not another program.

    To be called last: capturing a graph gives everything back that is not in use. What the plan allows for graphs and
    they did not take is the requests', so that torch holds what is planned.
    """
    lines = {line.name: line.bytes for line in plan.lines if line.tier == "main"}
    torch.cuda.empty_cache()
    # Given back to torch at once, which keeps it: later tensors are cut from these blocks.
    blocks = [torch.empty(SMALL, dtype=torch.uint8, device=device) for _ in range(SMALL_FREE // SMALL)]
    if lines["vision_cache"]:
        blocks.append(torch.empty(lines["vision_cache"], dtype=torch.uint8, device=device))
    left = plan.total - lines["context"] - torch.cuda.memory_reserved(device)
    blocks.append(torch.empty(max(left // STEP * STEP, lines["workspace"]), dtype=torch.uint8, device=device))
    del blocks
    # The driver counts a little more of a card than CUDA does.
    total = torch.cuda.get_device_properties(device).total_memory
    share = (plan.budget - lines["context"]) / total
    torch.cuda.set_per_process_memory_fraction(min(max(share, 0.01), 1.0), torch.cuda.current_device())


def lift() -> None:
    """Let torch take what the card has again: before another model is loaded, whose budget may be larger."""
    torch.cuda.set_per_process_memory_fraction(1.0, torch.cuda.current_device())
