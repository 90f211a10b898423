"""A card's memory is taken at load, as the plan says, and not added to."""

from __future__ import annotations

import torch

from engine.messages import MemoryPlan

_LATER = ("workspace", "vision_cache")
"""Lines of a plan that requests fill."""
_SMALL, _PIECE = 32 << 20, 1 << 20
"""Tensors of up to a MiB (a chunk's tables and positions, the logits of a lane that waits) come out of blocks of their
own, never out of the large ones: so much of those is taken too."""


def reserve(plan: MemoryPlan, device: torch.device) -> None:
    """Take from the driver what requests will need, so that nobody else can, and let torch take no more than the plan's
    budget: what does not fit fails the request that asked for it, not another program.

    To be called last: capturing a graph gives everything back that is not in use.
    """
    lines = {line.name: line.bytes for line in plan.lines if line.tier == "main"}
    torch.cuda.empty_cache()
    # Given back to torch at once, which keeps it: later tensors are cut from these blocks.
    blocks = [torch.empty(lines[name], dtype=torch.uint8, device=device) for name in _LATER]
    blocks += [torch.empty(_PIECE, dtype=torch.uint8, device=device) for _ in range(_SMALL // _PIECE)]
    del blocks
    # The driver counts a little more of a card than CUDA does.
    total = torch.cuda.get_device_properties(device).total_memory
    share = (plan.budget - lines["context"]) / total
    torch.cuda.set_per_process_memory_fraction(min(max(share, 0.01), 1.0), torch.cuda.current_device())


def lift() -> None:
    """Let torch take what the card has again: before another model is loaded, whose budget may be larger."""
    torch.cuda.set_per_process_memory_fraction(1.0, torch.cuda.current_device())
