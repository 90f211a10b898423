"""Packing and unpacking against the formats' definitions, written out value by value."""

from __future__ import annotations

import math

import pytest
import torch

from engine.checkpoint.quantize import (
    E2M1,
    PackedFP8,
    PackedNVFP4,
    dequantize,
    encode_e2m1,
    nvfp4_block_scale,
    pack_nibbles,
    quantize_fp8,
    quantize_int8,
    quantize_nvfp4,
)

MAGNITUDES = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


def weight(rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    return 0.05 * torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


def test_e2m1_values_by_their_bits() -> None:
    for code in range(16):
        sign, exponent, mantissa = code >> 3, code >> 1 & 3, code & 1
        value = mantissa * 0.5 if exponent == 0 else (1 + mantissa / 2) * 2.0 ** (exponent - 1)
        assert E2M1[code].item() == (-value if sign else value)


def test_encoding_rounds_to_nearest_ties_to_even_and_saturates() -> None:
    values = torch.linspace(-8, 8, 6401)
    for value, code in zip(values.tolist(), encode_e2m1(values).tolist(), strict=True):
        nearest = min(range(8), key=lambda c: (abs(abs(value) - MAGNITUDES[c]), c % 2))
        assert code & 7 == nearest, value
        assert code >> 3 == (math.copysign(1, value) < 0), value


def test_the_even_column_is_the_low_nibble() -> None:
    codes = torch.tensor([[1, 2, 15, 0]], dtype=torch.uint8)
    assert pack_nibbles(codes).tolist() == [[0x21, 0x0F]]


def test_nvfp4_unpacks_as_the_format_says() -> None:
    generator = torch.Generator().manual_seed(3)
    codes = torch.randint(0, 256, (5, 24), generator=generator, dtype=torch.uint8)
    scales = torch.randint(1, 0x7F, (5, 3), generator=generator, dtype=torch.uint8)
    packed = PackedNVFP4(codes, scales.view(torch.float8_e4m3fn), torch.tensor(0.0123))
    out = dequantize(packed)
    for row in range(5):
        for column in range(48):
            byte = codes[row, column // 2].item()
            nibble = byte >> 4 if column % 2 else byte & 15
            bits = scales[row, column // 16].item()
            exponent, mantissa = bits >> 3, bits & 7
            scale = mantissa / 8 * 2.0**-6 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7)
            value = MAGNITUDES[nibble & 7] * (-1 if nibble >> 3 else 1)
            assert out[row, column].item() == pytest.approx(value * scale * 0.0123, rel=1e-6)


def test_nvfp4_scales_are_the_best_of_all_e4m3_scales() -> None:
    blocks = torch.cat([weight(40, 16, 5), weight(40, 16, 6).exp(), torch.zeros(1, 16)]) * 300
    chosen = nvfp4_block_scale(blocks).float()
    every = torch.arange(1, 0x7F, dtype=torch.uint8).view(torch.float8_e4m3fn).float()
    errors = torch.stack([(E2M1[encode_e2m1(blocks / s).int()] * s - blocks).square().sum(-1) for s in every])
    mine = (E2M1[encode_e2m1(blocks / chosen[:, None]).int()] * chosen[:, None] - blocks).square().sum(-1)
    assert torch.allclose(mine, errors.min(0).values, rtol=1e-5)


def test_nvfp4_round_trip() -> None:
    original = weight(96, 160)
    packed = quantize_nvfp4(original)
    assert packed.shape == (96, 160)
    assert (packed.codes.dtype, packed.block_scale.dtype) == (torch.uint8, torch.float8_e4m3fn)
    assert math.log2(packed.scale.item()).is_integer()
    error = (dequantize(packed) - original).norm() / original.norm()
    assert 0.075 < error < 0.085  # Gaussian weights; scaling each block by its largest value alone gives 0.094
    again = quantize_nvfp4(dequantize(packed))
    assert torch.equal(dequantize(again), dequantize(packed))


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1.0, 1e6, 1e12])
def test_nvfp4_at_any_magnitude(scale: float) -> None:
    original = weight(4, 32) * scale
    error = (dequantize(quantize_nvfp4(original)) - original).norm() / original.norm()
    assert error < 0.12


def test_a_matrix_of_zeros_stays_zero() -> None:
    assert not dequantize(quantize_nvfp4(torch.zeros(3, 32))).any()
    assert not dequantize(quantize_fp8(torch.zeros(3, 32))).any()
    assert not dequantize(quantize_int8(torch.zeros(3, 32))).any()


def test_fp8_round_trip_per_row() -> None:
    original = weight(64, 100) * torch.logspace(-4, 4, 64)[:, None]
    packed = quantize_fp8(original)
    assert (packed.kind, packed.codes.dtype, packed.scale.shape) == ("row", torch.float8_e4m3fn, (64,))
    assert torch.equal(packed.codes.float().abs().amax(1), torch.full((64,), 448.0))
    relative = (dequantize(packed) - original).norm(dim=1) / original.norm(dim=1)
    assert relative.max() < 0.035


def test_int8_round_trip_per_row() -> None:
    original = weight(64, 100) * torch.logspace(-4, 4, 64)[:, None]
    packed = quantize_int8(original)
    assert packed.codes.dtype == torch.int8
    assert torch.equal(packed.codes.abs().amax(1), torch.full((64,), 127, dtype=torch.int8))
    step = original.abs().amax(1, keepdim=True) / 127
    assert ((dequantize(packed) - original).abs() <= step / 2 * (1 + 1e-5)).all()


def test_fp8_blocks_unpack_as_the_format_says() -> None:
    codes = weight(200, 300).mul(1000).to(torch.float8_e4m3fn)
    scale = torch.rand(2, 3) + 0.5
    out = dequantize(PackedFP8(codes, scale, "block"))
    for row, column in [(0, 0), (127, 127), (128, 127), (127, 128), (199, 299), (130, 260)]:
        assert out[row, column] == codes[row, column].float() * scale[row // 128, column // 128]


def test_fp8_packs_more_than_two_axes() -> None:
    original = torch.randn(8, 3, 2, 4, 4, generator=torch.Generator().manual_seed(2))
    packed = quantize_fp8(original)
    assert dequantize(packed).shape == original.shape
    assert torch.allclose(dequantize(packed), original, atol=0.15)
