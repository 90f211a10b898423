"""Programmatic dependent launch: a kernel starts while the one before it still runs, and waits only where it must.

What a kernel reads or writes before ``gdc_wait`` must not be touched by the few kernels launched just before it.
Weights are such, and state that was last written a round ago: hundreds of kernels before, too large to stand side by
side on a card.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from kernels.registry import interpreted


def overlap(dependent: bool, tensor: Tensor) -> dict[str, Any]:
    """Keyword arguments of a launch: whether the kernel waits (``DEPENDENT``) and how it is launched.

    Off in the interpreter and on cards before SM90, which know no dependent launch.
    """
    on = dependent and not interpreted() and _starts_early(tensor.device)
    return {"DEPENDENT": True, "launch_pdl": True} if on else {"DEPENDENT": False}


def ceil_div(a: int, b: int) -> int:
    """⌈a / b⌉. Triton's own function, meant for kernels, takes microseconds on the host, at every launch."""
    return -(-a // b)


def power_of_two(n: int) -> int:
    """The smallest power of two that is at least ``n`` ≥ 1; see :func:`ceil_div`."""
    return 1 << (n - 1).bit_length()


@lru_cache(maxsize=8)
def _starts_early(device: torch.device) -> bool:
    return torch.cuda.get_device_capability(device)[0] >= 9
