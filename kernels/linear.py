"""Matrix products with weights."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

FEW_ROWS = range(4, 17)
"""Rows of a round for which oneDNN multiplies float32 up to 2.5 times faster than the BLAS behind ``F.linear``
(measured on AVX-512: 8 × 576 by a 49,216 × 576 head in 15 ms instead of 28). It keeps buffers for every shape it has
seen, so it is not asked for more rows than there can be lanes, where it gains little."""


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b. x: [T, in]; weight: [out, in]; bias: [out]. Returns [T, out] in x's type."""
    few = x.shape[0] in FEW_ROWS and x.dtype == torch.float32 and x.device.type == "cpu"
    if few and torch.backends.mkldnn.is_available():
        y: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
        return y
    return F.linear(x, weight, bias)
