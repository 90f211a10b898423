"""RMS normalisation in the two forms the model uses."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def rms_norm(x: Tensor, scale: Tensor, eps: float) -> Tensor:
    """x / rms(x) · scale over the last dimension, computed in float32.

    Args:
        x: [..., D], any float type.
        scale: float32 [D]. For the zero-centred norms of the decoder the caller passes 1 + w.

    Returns:
        [..., D] in x's type.
    """
    return F.rms_norm(x.float(), (x.shape[-1],), scale, eps).to(x.dtype)


def rms_norm_gated(x: Tensor, gate: Tensor, scale: Tensor, eps: float) -> Tensor:
    """rms_norm(x) · SiLU(gate): the norm on a Gated DeltaNet's output.

    Args:
        x: float32 [..., D], the recurrence's output.
        gate: [..., D] in the compute type.
        scale: float32 [D], used as it is (not zero-centred).

    Returns:
        [..., D] in the gate's type.
    """
    return (F.rms_norm(x.float(), (x.shape[-1],), scale, eps) * F.silu(gate.float())).to(gate.dtype)


def add_rms_norm(residual: Tensor, delta: Tensor, scale: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """The residual stream after a sublayer and its norm for the next one: (residual + delta, norm of it)."""
    total = residual + delta
    return total, rms_norm(total, scale, eps)
