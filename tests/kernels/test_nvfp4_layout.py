"""NVFP4 in fragment order: every code and scale comes back bit for bit, packed by torch or by Triton."""

from __future__ import annotations

from itertools import starmap

import pytest
import torch
from torch import Tensor

from engine.checkpoint.quantize import E2M1, PackedNVFP4
from engine.checkpoint.quantize import dequantize as dequantize_packed
from kernels.fused.nvfp4_layout import decode_scales, decode_words, dequantize, pack_nvfp4, pack_rows, pack_words


def random_part(rows: int, columns: int, seed: int, scale: float = 2.0**-7) -> tuple[Tensor, Tensor, Tensor]:
    """Every code, every scale from zero over the subnormals to 448."""
    generator = torch.Generator().manual_seed(seed)
    codes = torch.randint(0, 256, (rows, columns // 2), dtype=torch.uint8, generator=generator)
    bits = torch.randint(0, 0x7F, (rows, columns // 16), dtype=torch.uint8, generator=generator)
    bits[torch.rand(bits.shape, generator=generator) < 0.2] = 0
    return codes, bits.view(torch.float8_e4m3fn), torch.tensor(scale)


def unpacked(codes: Tensor, block_scale: Tensor, scale: Tensor) -> Tensor:
    return dequantize_packed(PackedNVFP4(codes, block_scale, scale))


def test_every_pair_of_codes_in_every_place() -> None:
    codes = torch.arange(256, dtype=torch.uint8).view(2, 128).repeat(8, 1)
    codes = torch.stack([codes.roll(shift, 1) for shift in range(4)]).view(16, 4, 128)[:, :2].reshape(16, 256)
    words = pack_words(codes, torch.ones(16, 32, dtype=torch.uint8))
    values = decode_words(words).view(torch.bfloat16).double() * 2.0**126
    # Word of row 8r + g, columns 128c + 64b + 16t + 8w … stands at [c, b, g, t, r, w].
    pairs = E2M1[torch.stack([codes % 16, codes // 16], -1).view(16, 512).int()].double()
    expected = pairs.view(2, 8, 4, 2, 4, 2, 8).permute(2, 3, 1, 4, 0, 5, 6).reshape(-1, 8)
    assert torch.equal(values.view(-1, 8), expected)


def test_every_scale_exactly() -> None:
    bits = torch.arange(0x7F, dtype=torch.uint8).view(torch.float8_e4m3fn)
    scale = torch.nn.functional.pad(bits.view(torch.uint8), (0, 1), value=1).view(4, 32).repeat(4, 1)
    weight = pack_nvfp4(torch.zeros(16, 256, dtype=torch.uint8), scale.view(torch.float8_e4m3fn), torch.tensor(1.0))
    found = decode_scales(weight.scales, 512)[:4].double().view(-1)[1:0x7F] * 2.0**-81
    assert torch.equal(found, bits[1:].double())


@pytest.mark.parametrize("triton", [False, True])
@pytest.mark.parametrize(("rows", "columns"), [(64, 512), (128, 1024), (16, 64), (40, 576), (5, 16)])
def test_a_matrix_comes_back(rows: int, columns: int, triton: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IGNIS_KERNELS", "triton" if triton else "reference")
    part = random_part(rows, columns, seed=rows + columns)
    weight = pack_nvfp4(*part)
    assert torch.equal(dequantize(weight), unpacked(*part))


@pytest.mark.parametrize("triton", [False, True])
def test_joined_parts_keep_their_scales(triton: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IGNIS_KERNELS", "triton" if triton else "reference")
    parts = [random_part(rows, 512, seed=rows, scale=2.0**-rows) for rows in (48, 16, 24)]
    joined = pack_nvfp4(*(list(values) for values in zip(*parts, strict=True)))
    assert joined.out_features == 88
    assert torch.equal(dequantize(joined), torch.cat(list(starmap(unpacked, parts))))


def test_both_ways_of_packing_write_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernels.fused.nvfp4_layout._SLICE", 16 * 1024)
    part = random_part(100, 624, seed=3)
    slices = pack_nvfp4(*part)
    monkeypatch.setenv("IGNIS_KERNELS", "triton")
    kernel = pack_nvfp4(*part)
    assert torch.equal(slices.words, kernel.words)
    assert torch.equal(slices.scales, kernel.scales)
    assert torch.equal(slices.factors, kernel.factors)
    assert torch.equal(dequantize(slices), unpacked(*part))


def test_what_does_not_fit_is_refused() -> None:
    codes, scales, scale = random_part(32, 512, seed=1)
    with pytest.raises(ValueError, match="a multiple of 16 rows"):
        pack_nvfp4([codes[:8], codes], [scales[:8], scales], [scale, scale])
    weight = pack_nvfp4(codes, scales, scale)
    with pytest.raises(ValueError, match="no part of an NVFP4 matrix"):
        pack_rows(weight, 16, codes, scales, scale)
    with pytest.raises(ValueError, match="no part of an NVFP4 matrix"):
        pack_nvfp4(codes, scales[:, 1:], scale)
    bad = scales.view(torch.uint8).clone()
    bad[3, 4] = 0xB0
    with pytest.raises(ValueError, match="negative or NaN"):
        pack_nvfp4(codes, bad.view(torch.float8_e4m3fn), scale)
