"""The causal convolution against a loop over tokens in float64."""

from __future__ import annotations

import pytest
import torch

from kernels.causal_conv import causal_conv_chunk, causal_conv_step
from tests.kernels import naive
from tests.kernels.compare import DTYPES, assert_close, randn


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [2, 4])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 65, 128, 129, 130, 257])
def test_chunk(length: int, width: int, dtype: torch.dtype) -> None:
    x, weight = randn(length, 24, seed=1, dtype=dtype), randn(width, 24, seed=2, dtype=dtype)
    state = randn(width - 1, 24, seed=3, dtype=dtype)
    before = state.clone()
    y, after = causal_conv_chunk(x, weight, state)
    assert y.dtype == dtype
    assert_close(y, naive.causal_conv(x, weight, state), dtype, steps=2)
    assert torch.equal(after, torch.cat([state, x])[-(width - 1) :])
    assert torch.equal(state, before)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lanes", [1, 5])
def test_step(lanes: int, dtype: torch.dtype) -> None:
    x, weight = randn(lanes, 24, seed=1, dtype=dtype), randn(4, 24, seed=2, dtype=dtype)
    state = randn(lanes, 3, 24, seed=3, dtype=dtype)
    y, after = causal_conv_step(x, weight, state)
    for lane in range(lanes):
        assert_close(y[lane : lane + 1], naive.causal_conv(x[lane : lane + 1], weight, state[lane]), dtype, steps=2)
        assert torch.equal(after[lane], torch.cat([state[lane, 1:], x[lane : lane + 1]]))
