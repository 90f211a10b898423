"""Products with weights, few rows and many, against float64."""

from __future__ import annotations

import pytest
import torch

from kernels.linear import linear
from tests.kernels.compare import DTYPES, assert_close, randn


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [1, 3, 4, 8, 16, 17, 65])
@pytest.mark.parametrize("biased", [False, True])
def test_linear(rows: int, biased: bool, dtype: torch.dtype) -> None:
    # A slice of rows of a larger buffer, as a run of columns is.
    x = randn(rows + 2, 48, seed=1, dtype=dtype)[1:-1]
    weight, bias = randn(37, 48, seed=2, dtype=dtype), randn(37, seed=3, dtype=dtype) if biased else None
    exact = x.double() @ weight.double().T
    if bias is not None:
        exact += bias.double()
    y = linear(x, weight, bias)
    assert y.dtype == dtype
    assert_close(y, exact, dtype, steps=8)
