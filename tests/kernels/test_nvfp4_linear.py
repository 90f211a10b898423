"""Products with NVFP4 weights: their reference, the order of activations, and how work is shared out."""

from __future__ import annotations

import pytest
import torch

from engine.checkpoint.quantize import PackedNVFP4
from engine.checkpoint.quantize import dequantize as dequantize_packed
from kernels.fused.activations import arrange, fragment_column, fragment_position, natural
from kernels.fused.norm import add_rms_norm
from kernels.fused.nvfp4_layout import pack_nvfp4
from kernels.fused.nvfp4_linear import nvfp4_linear, plan
from kernels.fused.partial import Partial, slot_count
from kernels.fused.silu_mul import silu_mul
from tests.kernels.compare import assert_close, randn
from tests.kernels.test_nvfp4_layout import random_part

SHAPES = [(34816, 5120), (5120, 17408), (16384, 5120), (5120, 6144), (14336, 5120), (64, 512), (640, 1024)]


@pytest.mark.parametrize("in_fragments", [False, True])
def test_reference(in_fragments: bool) -> None:
    part = random_part(48, 576, seed=1)
    weight = pack_nvfp4(*part)
    x = randn(9, 576, seed=2, dtype=torch.bfloat16)
    exact = x.double() @ dequantize_packed(PackedNVFP4(*part)).double().T
    given = arrange(x, 576, fragments=True) if in_fragments else x
    product = nvfp4_linear(given.contiguous(), weight, in_fragments=in_fragments)
    assert_close(product.sum(), exact, torch.float32, steps=20)


def test_activations_of_another_shape_are_refused() -> None:
    weight = pack_nvfp4(*random_part(16, 64, seed=1))
    for x in (torch.zeros(1, 64), torch.zeros(1, 32).bfloat16(), torch.zeros(64, 2).bfloat16().T):
        with pytest.raises(ValueError, match=r"takes contiguous bfloat16 \[N, 64\]"):
            nvfp4_linear(x, weight)


def test_lanes_of_a_fragment_find_their_columns() -> None:
    """Fragment d = (b, w, j1) of lane t takes columns 64b + 16t + 8w + 4·j1 + 2·j0 + i at k = 8·j0 + 2t + i."""
    for column in range(128):
        b, t, w, j1, j0, i = column >> 6, column >> 4 & 3, column >> 3 & 1, column >> 2 & 1, column >> 1 & 1, column & 1
        expected = 16 * (4 * b + 2 * w + j1) + 8 * j0 + 2 * t + i
        assert fragment_position.fn(column) == expected
        assert fragment_column.fn(expected + 1024) == column + 1024


@pytest.mark.parametrize("triton", [False, True])
@pytest.mark.parametrize(("width", "columns"), [(512, 512), (576, 1024), (1030, 1536)])
@pytest.mark.parametrize("fragments", [False, True])
def test_arrange(width: int, columns: int, fragments: bool, triton: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IGNIS_KERNELS", "triton" if triton else "reference")
    x = randn(3, width, seed=1, dtype=torch.bfloat16)
    arranged = arrange(x, columns, fragments=fragments)
    back = natural(arranged) if fragments else arranged
    assert torch.equal(back[:, :width], x)
    assert not back[:, width:].any()


@pytest.mark.parametrize("triton", [False, True])
def test_writers_of_activations_store_them_in_fragments(triton: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IGNIS_KERNELS", "triton" if triton else "reference")
    product = Partial.of(randn(3, 256, seed=1))
    residual, scale = randn(3, 256, seed=2, dtype=torch.bfloat16), 1 + randn(256, seed=3)
    _, normed = add_rms_norm(residual.clone(), product, scale, 1e-6)
    _, arranged = add_rms_norm(residual.clone(), product, scale, 1e-6, in_fragments=True)
    assert torch.equal(natural(arranged), normed)
    assert torch.equal(natural(silu_mul(product, in_fragments=True)), silu_mul(product))


@pytest.mark.parametrize(("processors", "capability"), [(132, 90), (170, 120), (24, 120)])
@pytest.mark.parametrize("columns", [1, 8, 9, 16, 17, 33, 64])
def test_plans_share_all_units_and_few_slots(columns: int, processors: int, capability: int) -> None:
    for rows, k in SHAPES:
        how = plan(rows, k, columns, processors, capability)
        tiles, blocks = rows // how.tile, k // how.unit
        assert how.columns >= min(columns, 8)
        assert rows % how.tile == 0
        assert 1 <= slot_count(tiles, blocks, how.programs) <= blocks
