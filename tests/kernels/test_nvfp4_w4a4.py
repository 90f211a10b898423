"""Products with activations in NVFP4: their rounding, the matrix's natural order, and the whole in emulation."""

from __future__ import annotations

import pytest
import torch

from engine.checkpoint.quantize import PackedNVFP4, encode_e2m1
from engine.checkpoint.quantize import dequantize as dequantize_packed
from kernels.fused.nvfp4_layout import pack_nvfp4
from kernels.fused.nvfp4_w4a4 import natural_nvfp4, quantize_activations, w4a4_matmul
from tests.kernels.compare import randn
from tests.kernels.test_nvfp4_layout import random_part


@pytest.fixture(params=["reference", "triton"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("IGNIS_KERNELS", request.param)
    return request.param


def test_activations_are_rounded_block_by_block(way: str) -> None:
    x = randn(3, 80, seed=1, dtype=torch.bfloat16) * torch.logspace(-3, 2, 5).repeat_interleave(16)
    x[0, :16] = 0
    x[1, 16:32] = 1e9  # beyond the largest scale: saturates
    x = x.bfloat16()
    codes, scales = quantize_activations(x, 0.01, 512)
    assert codes.shape == (3, 256)
    assert not codes[:, 40:].any()
    assert not scales.float()[:, 5:].any()
    blocks = x.float().view(3, 5, 16)
    # Within a rounding of E4M3: Triton's interpreter cuts off where the card rounds.
    expected = (blocks.abs().amax(-1) / 0.06).clamp(max=448)
    found = scales.float()[:, :5]
    assert torch.allclose(found, expected, rtol=2**-3 if way == "triton" else 2**-4, atol=2**-9)
    exact = encode_e2m1(torch.where(found[..., None] > 0, blocks / 0.01 / found[..., None], 0.0)) & 0xF
    nibbles = torch.stack([codes & 15, codes >> 4], dim=-1).view(3, 32, 16)[:, :5]
    # A zero's sign means nothing, and the last bit of a quotient may decide a tie.
    same = (nibbles == exact) | ((nibbles & 7 == 0) & (exact & 7 == 0))
    assert same.float().mean() > 0.99


@pytest.mark.parametrize("seed", [1, 2])
def test_a_matrix_returns_to_its_natural_order(way: str, seed: int) -> None:
    codes, block_scale, scale = random_part(48, 1024, seed)
    weight = pack_nvfp4(codes, block_scale, scale)
    found, scales = natural_nvfp4(weight, torch.full((48 * 1024 * 9 // 16,), 0xAA, dtype=torch.uint8), 48)
    live = block_scale.view(torch.uint8) > 0
    assert torch.equal(scales.view(torch.uint8)[live], block_scale.view(torch.uint8)[live])
    assert torch.equal(found.view(48, 64, 8)[live], codes.view(48, 64, 8)[live])
    assert not found.view(48, 64, 8)[~live].any()


@pytest.mark.parametrize("rows_of_scratch", [64, 128])
def test_product(rows_of_scratch: int) -> None:
    """NVFP4's own error is what remains: 16 of activations, none of weights."""
    part = random_part(100, 576, seed=3)
    weight = pack_nvfp4(*part)
    x = randn(70, 576, seed=4, dtype=torch.bfloat16)
    scratch = torch.empty(rows_of_scratch * weight.columns * 9 // 16, dtype=torch.uint8)
    found = w4a4_matmul(x, weight, 0.002, scratch)
    exact = x.double() @ dequantize_packed(PackedNVFP4(*part)).double().T
    error = (found.double() - exact).norm() / exact.norm()
    assert 0.03 < error < 0.12


def test_too_little_scratch_is_refused() -> None:
    weight = pack_nvfp4(*random_part(16, 64, seed=1))
    with pytest.raises(ValueError, match="take a scratch of 18432 bytes, not 100"):
        w4a4_matmul(torch.zeros(1, 64).bfloat16(), weight, 1.0, torch.empty(100, dtype=torch.uint8))
