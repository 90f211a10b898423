"""What launches need to know of the card."""

from __future__ import annotations

from functools import lru_cache

import torch


@lru_cache(maxsize=8)
def processors(device: torch.device) -> int:
    """Multiprocessors; a few where there is no card and the interpreter runs the kernels."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4


@lru_cache(maxsize=8)
def roomy(device: torch.device) -> bool:
    """Whether a block may have 227 KiB of shared memory, as on SM90 and SM100; 99 KiB elsewhere."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device)[0] in (9, 10)
