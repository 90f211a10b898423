"""Rounding to NVFP4 with a layer's inputs in mind (GPTQ, Frantar et al., arXiv:2210.17323).

Plain rounding keeps weights close; this keeps *outputs* close, on inputs with given second moments: columns are rounded
one after the other, and the columns still to come make up for the error so far.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.checkpoint.quantize import (
    BLOCK,
    PackedNVFP4,
    encode_e2m1,
    nvfp4_block_scale,
    nvfp4_scale,
    pack_nibbles,
    round_e2m1,
)

DAMPING = 0.01
"""Share of the mean second moment added to each, so that inputs that hardly vary do not take over."""


def quantize_nvfp4_for_inputs(weight: Tensor, moments: Tensor) -> PackedNVFP4:
    """Round a matrix [rows, columns] for inputs x with ``moments`` = Σ x xᵀ, float32 [columns, columns]."""
    order, blocks = _largest_first(moments)
    left = weight.float()[:, order]
    scale = nvfp4_scale(weight)
    upper = _inverse_root(moments[order][:, order])
    rounded = torch.empty_like(left)
    scales = []
    for start in range(0, left.shape[1], BLOCK):
        end = start + BLOCK
        inside = upper[start:end, start:end]
        block_scale = nvfp4_block_scale(left[:, start:end] / scale, inside.diagonal() ** -2.0)
        scales.append(block_scale)
        step = block_scale.float() * scale
        errors = torch.empty(len(left), BLOCK)
        for column in range(BLOCK):
            values = left[:, start + column]
            rounded[:, start + column] = round_e2m1(values / step)
            errors[:, column] = (values - rounded[:, start + column] * step) / inside[column, column]
            left[:, start + column : end] -= errors[:, column, None] * inside[column, column:]
        left[:, end:] -= errors @ upper[start:end, end:]
    codes = encode_e2m1(rounded)[:, order.argsort()]
    return PackedNVFP4(pack_nibbles(codes), torch.stack(scales, 1)[:, blocks.argsort()], scale)


def _largest_first(moments: Tensor) -> tuple[Tensor, Tensor]:
    """(order of the columns, order of the blocks): strong inputs first, when most columns are left to make up for them;
    the columns of a block stay together, they share a scale."""
    strength = moments.diagonal().view(-1, BLOCK)
    blocks = strength.sum(1).argsort(descending=True)
    inner = strength[blocks].argsort(1, descending=True)
    return (blocks[:, None] * BLOCK + inner).flatten(), blocks


def _inverse_root(moments: Tensor) -> Tensor:
    """Upper triangular U with Uᵀ U the inverse of the damped moments."""
    damped = moments.double()
    unseen = damped.diagonal() == 0
    mean = damped.diagonal().mean()
    damped = damped + torch.eye(len(damped), dtype=torch.double) * DAMPING * mean + torch.diag(unseen.double() * mean)
    return torch.linalg.cholesky(torch.linalg.inv(damped), upper=True).float()
