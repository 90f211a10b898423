"""Which of an operation's two forms runs: its Triton kernel on a CUDA card, its plain torch reference elsewhere.

``IGNIS_KERNELS=reference`` takes the references everywhere (to tell whether a kernel is at fault),
``IGNIS_KERNELS=triton`` the kernels everywhere (in Triton's interpreter, where there is no card).
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Literal, cast

if TYPE_CHECKING:
    from torch import Tensor

Choice = Literal["auto", "reference", "triton"]
VARIABLE = "IGNIS_KERNELS"


def choice() -> Choice:
    """What the environment asks for. Raises ``ValueError`` for anything but auto, reference and triton."""
    value = os.environ.get(VARIABLE) or "auto"
    if value not in ("auto", "reference", "triton"):
        raise ValueError(f"{VARIABLE} must be auto, reference or triton, not {value!r}.")
    return cast(Choice, value)


def use_triton(tensor: Tensor) -> bool:
    """Whether an operation on ``tensor`` runs as its Triton kernel."""
    wanted = choice()
    return tensor.is_cuda if wanted == "auto" else wanted == "triton"


@cache
def interpreted() -> bool:
    """Whether Triton runs its kernels in its interpreter, on the CPU: it decides when it is imported."""
    return os.environ.get("TRITON_INTERPRET", "0") == "1"
