"""The precision Ember ships at, as a rounding of its weights: NVFP4 text projections, INT8 embedding and vision.

Training with these roundings applied to the working copy of the weights while the optimiser keeps float32 masters is
quantisation-aware training with a straight-through gradient: no operation of the forward changes.
"""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK = 16
E2M1_MAX, E4M3_MAX = 6.0, 448.0


def kind(name: str, tensor: Tensor) -> str:
    """How the shipped checkpoint stores a tensor: "nvfp4", "int8" (a scale a row) or "bf16"."""
    if tensor.dim() < 2 or "conv1d" in name or ".in_proj_a." in name or ".in_proj_b." in name:
        return "bf16"
    if "embed_tokens" in name or ("visual" in name and "merger.linear_fc1" not in name):
        return "int8"
    return "nvfp4"


def round_e2m1(x: Tensor) -> Tensor:
    """Nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives, ties to even mantissa; saturates at ±6."""
    a = x.abs().clamp(max=E2M1_MAX)
    step = torch.where(a < 2, 0.5, torch.where(a < 4, 1.0, 2.0))
    return torch.copysign((a / step).round() * step, x)


def round_nvfp4(x: Tensor) -> Tensor:
    """x [..., rows, columns] as NVFP4 would read back: blocks of 16 share an E4M3 scale, each matrix a float32 one."""
    blocks = x.float().unflatten(-1, (-1, BLOCK))
    top = blocks.abs().amax(-1, keepdim=True)
    whole = (top.amax((-3, -2), keepdim=True) / (E2M1_MAX * E4M3_MAX)).clamp(min=1e-12)
    scale = (top / E2M1_MAX / whole).clamp(max=E4M3_MAX).to(torch.float8_e4m3fn).float() * whole
    return torch.where(scale > 0, round_e2m1(blocks / scale.clamp(min=1e-12)) * scale, 0.0).flatten(-2)


def round_int8(x: Tensor) -> Tensor:
    """x [..., rows, columns] as INT8 with one float32 scale a row would read back."""
    scale = (x.float().abs().amax(-1, keepdim=True) / 127).clamp(min=1e-12)
    return (x.float() / scale).round().clamp(-127, 127) * scale


def shipped(how: str, x: Tensor) -> Tensor:
    """A matrix (or a stack of them) as a checkpoint that stores it as ``how`` would read it back, float32."""
    return round_nvfp4(x) if how == "nvfp4" else round_int8(x) if how == "int8" else x.float()


def shipped_state(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """A state dict as the shipped checkpoint would read it back."""
    return {
        name: shipped(kind(name, x), x.flatten(1)).view(x.shape) if x.dim() > 1 else x.float()
        for name, x in state.items()
    }
