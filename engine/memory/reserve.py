"""A card's memory is taken at load, as the plan says, and not added to."""

from __future__ import annotations

import torch

from engine.messages import MemoryPlan

_LATER = ("workspace", "vision_cache")
"""Lines of a plan that requests fill."""


def reserve(plan: MemoryPlan, device: torch.device) -> None:
    """Take from the driver what requests will need, so that nobody else can, and let torch take no more than the plan's
    budget: what does not fit fails the request that asked for it, not another program.

    To be called last: capturing a graph gives everything back that is not in use.
    """
    lines = {line.name: line.bytes for line in plan.lines if line.tier == "main"}
    torch.cuda.empty_cache()
    # Given back to torch at once, which keeps it: later tensors are cut from these blocks.
    blocks = [torch.empty(lines[name], dtype=torch.uint8, device=device) for name in _LATER]
    del blocks
    # The driver counts a little more of a card than CUDA does.
    total = torch.cuda.get_device_properties(device).total_memory
    share = (plan.budget - lines["context"]) / total
    torch.cuda.set_per_process_memory_fraction(min(max(share, 0.01), 1.0), torch.cuda.current_device())
