"""Random inputs and the closeness expected of each type."""

from __future__ import annotations

import torch
from torch import Tensor

DTYPES = [torch.float32, torch.bfloat16]


def randn(*shape: int, seed: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def assert_close(found: Tensor, exact: Tensor, dtype: torch.dtype, *, steps: float = 4.0) -> None:
    """Within ``steps`` roundings of ``dtype`` at the scale of the exact result."""
    assert found.shape == exact.shape
    assert found.isfinite().all()
    scale = exact.abs().max().item()
    assert (found.double() - exact).abs().max().item() <= steps * torch.finfo(dtype).eps * max(scale, 1e-3)
