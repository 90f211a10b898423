"""Prompts' products: unpacked matrices are the checkpoint's, rounded once."""

from __future__ import annotations

import pytest
import torch

from engine.checkpoint.quantize import PackedNVFP4
from engine.checkpoint.quantize import dequantize as dequantize_packed
from kernels.fused.nvfp4_layout import pack_nvfp4
from kernels.fused.nvfp4_unpack import nvfp4_matmul, unpack_nvfp4
from tests.kernels.compare import assert_close, randn
from tests.kernels.test_nvfp4_layout import random_part


@pytest.mark.parametrize("triton", [False, True])
@pytest.mark.parametrize("scale", [2.0**-7, 3.7])
def test_unpacked_rows_are_the_checkpoints(triton: bool, scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IGNIS_KERNELS", "triton" if triton else "reference")
    part = random_part(88, 528, seed=1, scale=scale)
    weight = pack_nvfp4(*part)
    exact = dequantize_packed(PackedNVFP4(*part))
    for start, rows in ((0, 88), (64, 20)):
        out = unpack_nvfp4(weight, torch.full((rows, 528), float("nan"), dtype=torch.bfloat16), start)
        expected = exact[start : start + rows].bfloat16()
        if not triton:  # whose interpreter cuts float32 off where the card rounds
            # The scales are applied one after the other, which may fall on the other side of a tie.
            assert (out != expected).float().mean() < 1e-3
        assert torch.allclose(out.float(), expected.float(), rtol=2**-7, atol=0)


@pytest.mark.parametrize("rows_of_scratch", [64, 128, 500])
@pytest.mark.parametrize(("rows", "columns"), [(200, 576), (128, 512)])
def test_matmul(rows: int, columns: int, rows_of_scratch: int) -> None:
    part = random_part(rows, columns, seed=3)
    weight = pack_nvfp4(*part)
    x = randn(70, columns, seed=4, dtype=torch.bfloat16)
    scratch = torch.full((rows_of_scratch * weight.in_features,), float("nan"), dtype=torch.bfloat16)
    exact = x.double() @ dequantize_packed(PackedNVFP4(*part)).double().T
    assert_close(nvfp4_matmul(x, weight, scratch), exact, torch.bfloat16, steps=4)


def test_what_cannot_be_unpacked_is_refused() -> None:
    weight = pack_nvfp4(*random_part(64, 512, seed=1))
    with pytest.raises(ValueError, match="takes a scratch of 32768, not 512"):
        nvfp4_matmul(torch.zeros(1, 512).bfloat16(), weight, torch.empty(512).bfloat16())
    with pytest.raises(ValueError, match="from a multiple of 64 rows"):
        unpack_nvfp4(weight, torch.empty(16, 512).bfloat16(), 8)
