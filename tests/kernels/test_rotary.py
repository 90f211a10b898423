"""Rotary embedding against complex products in float64."""

from __future__ import annotations

import pytest
import torch

from kernels.rotary import rotate
from tests.kernels import naive
from tests.kernels.compare import DTYPES, assert_close, randn


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("size", "pairs"), [(64, 32), (64, 8), (6, 1), (72, 36), (256, 32)])
def test_rotate(size: int, pairs: int, dtype: torch.dtype) -> None:
    x, angles = randn(9, 3, size, seed=1, dtype=dtype), randn(9, pairs, seed=2) * 100
    cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)
    y = rotate(x, cos, sin)
    assert y.dtype == dtype
    assert_close(y, naive.rotate(x, cos, sin), dtype)
    assert torch.equal(y[..., 2 * pairs :], x[..., 2 * pairs :])
