"""Programmatic dependent launch: a kernel starts while the one before it still runs, and waits only where it must.

What a kernel reads or writes before ``gdc_wait`` must not be touched by the few kernels launched just before it.
Weights are such, and state that was last written a round ago: hundreds of kernels before, too large to stand side by
side on a card.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from kernels.registry import interpreted


def overlap(dependent: bool, tensor: Tensor) -> dict[str, Any]:
    """Keyword arguments of a launch: whether the kernel waits (``DEPENDENT``) and how it is launched.

    Off in the interpreter and on cards before SM90, which know no dependent launch.
    """
    on = dependent and not interpreted() and torch.cuda.get_device_capability(tensor.device)[0] >= 9
    return {"DEPENDENT": True, "launch_pdl": True} if on else {"DEPENDENT": False}
