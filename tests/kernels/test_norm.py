"""RMS normalisation, plain and gated, against float64."""

from __future__ import annotations

import pytest
import torch

from kernels.norm import add_rms_norm, rms_norm, rms_norm_gated
from tests.kernels import naive
from tests.kernels.compare import DTYPES, assert_close, randn

SHAPES = [(1, 8), (5, 3, 64), (7, 129)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_rms_norm(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x, scale = randn(*shape, seed=1, dtype=dtype) * 7, 1 + randn(shape[-1], seed=2)
    y = rms_norm(x, scale, 1e-6)
    assert y.dtype == dtype
    assert_close(y, naive.rms_norm(x, scale, 1e-6), dtype)


def test_epsilon_counts_where_values_are_small() -> None:
    x, scale = randn(4, 32, seed=1) * 1e-3, torch.ones(32)
    assert_close(rms_norm(x, scale, 1e-6), naive.rms_norm(x, scale, 1e-6), torch.float32)
    assert rms_norm(torch.zeros(1, 32), scale, 1e-6).abs().max() == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_rms_norm_gated(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x, gate, scale = randn(*shape, seed=1), randn(*shape, seed=2, dtype=dtype), randn(shape[-1], seed=3)
    y = rms_norm_gated(x, gate, scale, 1e-6)
    assert y.dtype == dtype
    wide = gate.double()
    assert_close(y, naive.rms_norm(x, scale, 1e-6) * wide * wide.sigmoid(), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_add_rms_norm(dtype: torch.dtype) -> None:
    residual, delta, scale = randn(5, 64, seed=1, dtype=dtype), randn(5, 64, seed=2, dtype=dtype), randn(64, seed=3)
    total, normed = add_rms_norm(residual, delta, scale, 1e-6)
    assert torch.equal(total, residual + delta)
    assert_close(normed, naive.rms_norm(total, scale, 1e-6), dtype)
