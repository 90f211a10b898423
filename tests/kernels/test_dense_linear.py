"""Products of a few columns with BF16 and FP8 weights against float64."""

from __future__ import annotations

import pytest
import torch

from engine.checkpoint.quantize import PackedFP8, quantize_fp8
from engine.checkpoint.quantize import dequantize as dequantize_packed
from kernels.fused.dense_linear import dense_linear, fp8_linear, unpack_fp8
from tests.kernels.compare import assert_close, randn

BF16, F32 = torch.bfloat16, torch.float32
SHAPES = [(1, 9, 320), (3, 5, 136), (17, 6, 256), (2, 1100, 72), (64, 3, 128)]
"""Columns, rows, their length."""


@pytest.fixture(params=["reference", "triton"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IGNIS_KERNELS", request.param)


@pytest.mark.parametrize("dtype", [BF16, F32])
@pytest.mark.parametrize(("columns", "rows", "length"), SHAPES)
def test_dense(columns: int, rows: int, length: int, dtype: torch.dtype) -> None:
    # A slice of a larger buffer, as a part of a round's columns is.
    x, weight = (
        randn(columns + 2, 2 * length, seed=1, dtype=BF16)[1:-1, :length],
        randn(rows, length, seed=2, dtype=BF16),
    )
    y = dense_linear(x, weight, dtype)
    assert y.dtype == dtype
    assert_close(y, x.double() @ weight.double().T, dtype, steps=20 if dtype == F32 else 2)


@pytest.mark.parametrize("kind", ["row", "block"])
@pytest.mark.parametrize(("columns", "rows", "length"), [(1, 50, 320), (9, 140, 144), (70, 33, 128)])
def test_fp8(columns: int, rows: int, length: int, kind: str) -> None:
    x, weight = randn(columns, length, seed=1, dtype=BF16), quantize_fp8(randn(rows, length, seed=2))
    if kind == "block":
        weight = PackedFP8(weight.codes, randn(-(-rows // 128), -(-length // 128), seed=3).abs(), "block")
    exact = x.double() @ dequantize_packed(weight).double().T
    assert_close(fp8_linear(x, weight.codes, weight.scale, F32), exact, F32, steps=20)
    assert torch.allclose(unpack_fp8(weight.codes, weight.scale).float(), dequantize_packed(weight), rtol=2**-7, atol=0)


def test_shapes_that_do_not_fit_are_refused() -> None:
    x, weight = torch.zeros(1, 16).bfloat16(), torch.zeros(4, 32).bfloat16()
    with pytest.raises(ValueError, match="cannot be multiplied"):
        dense_linear(x, weight)
    with pytest.raises(ValueError, match="multiple of 8 columns"):
        dense_linear(x, weight[:, ::2])
    with pytest.raises(ValueError, match="neither by row nor by block"):
        fp8_linear(x, torch.zeros(4, 16).to(torch.float8_e4m3fn), torch.ones(3))
