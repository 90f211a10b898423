"""Splitting attention's input product: norms, rotation, and what is written where."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernels.fused.fp8 import FP8, unpack
from kernels.fused.partial import Partial
from kernels.fused.pool import LayerPool
from kernels.fused.qkv import split_qkv, split_qkv_reference
from kernels.norm import rms_norm
from kernels.rotary import rotate
from tests.kernels.compare import assert_close, randn

GEOMETRIES = [(6, 1, 32, 8), (3, 3, 64, 32), (2, 1, 256, 32)]
"""Query heads, KV heads, head dimension, half of the dimensions that turn."""


def make_pool(rows: int, heads: int, dim: int, *, packed: bool, page: int = 16) -> LayerPool:
    """One layer of a pool of several, keys and values interleaved as a real one's are; full of NaN."""
    if not packed:
        whole = torch.full((3, 2, rows, heads, dim), float("nan"), dtype=torch.bfloat16)
        return LayerPool(whole[1, 0], whole[1, 1], page=page)
    codes = torch.full((3, 2, rows, heads, dim), 0x7F, dtype=torch.uint8).view(FP8)
    scales = torch.full((3, 2, rows, heads), float("nan"))
    return LayerPool(codes[1, 0], codes[1, 1], scales[1, 0], scales[1, 1], page=page)


def inputs(geometry: tuple[int, int, int, int], count: int, rows: int, *, slots: bool) -> tuple[Any, ...]:
    heads, kv_heads, dim, half = geometry
    whole = randn(count, (2 * heads + 2 * kv_heads) * dim, seed=1)
    product = Partial.split(whole, torch.Generator().manual_seed(2)) if slots else Partial.of(whole.bfloat16())
    angles = randn(count, half, seed=3)
    where = torch.randperm(rows, generator=torch.Generator().manual_seed(4))[:count].int()
    return product, randn(dim, seed=5) + 1, randn(dim, seed=6) + 1, angles.cos(), angles.sin(), where


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("slots", [False, True])
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_both_forms_against_the_plain_operations(
    geometry: tuple[int, int, int, int], slots: bool, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads, kv_heads, dim, _ = geometry
    product, q_scale, k_scale, cos, sin, rows = inputs(geometry, 3, 48, slots=slots)
    rows[1] = -1
    whole = product.sum().double()
    query, key, value = whole.split([2 * heads * dim, kv_heads * dim, kv_heads * dim], dim=-1)
    query, key = query.view(3, heads, 2 * dim), key.view(3, kv_heads, dim)
    angles = cos.double(), sin.double()
    exact_q = rotate(rms_norm(query[..., :dim], q_scale, 1e-6).double(), *angles)
    exact_k = rotate(rms_norm(key, k_scale, 1e-6).double(), *angles)
    kept = rows >= 0
    for kernel in (False, True):
        monkeypatch.setenv("IGNIS_KERNELS", "triton" if kernel else "reference")
        pool = make_pool(48, kv_heads, dim, packed=packed)
        q, gate = split_qkv(product, q_scale, k_scale, cos, sin, rows, pool, 1e-6)
        assert_close(q, exact_q, torch.bfloat16, steps=1)
        assert_close(gate, query[..., dim:].reshape(3, -1), torch.bfloat16, steps=1)
        for found, scale, exact in ((pool.k, pool.k_scale, exact_k), (pool.v, pool.v_scale, value.view_as(key))):
            written = unpack(found, scale, rows[kept].long())
            assert_close(written, exact[kept], FP8 if packed else torch.bfloat16, steps=1)
            others = torch.ones(48, dtype=torch.bool)
            others[rows[kept].long()] = False
            assert unpack(found, scale, others.nonzero().flatten()).isnan().all()


def test_packed_rows_are_the_same_bits_in_both_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a row of zeros has the scale 0 and is read back as zeros."""
    product, *rest, rows = inputs(GEOMETRIES[1], 4, 32, slots=False)
    product.values[1] = 0
    pools = []
    for choice in ("reference", "triton"):
        monkeypatch.setenv("IGNIS_KERNELS", choice)
        pool = make_pool(32, 3, 64, packed=True)
        split_qkv(product, *rest, rows, pool, 1e-6)
        pools.append(pool)
    plain, fused = pools
    assert plain.v_scale is not None
    assert fused.v_scale is not None
    assert torch.equal(plain.v.view(torch.uint8), fused.v.view(torch.uint8))
    assert torch.equal(plain.v_scale[rows.long()], fused.v_scale[rows.long()])
    assert (unpack(fused.v, fused.v_scale, rows[1:2].long()) == 0).all()


def test_sizes_that_do_not_fit_are_refused() -> None:
    product, q_scale, k_scale, cos, sin, rows = inputs(GEOMETRIES[0], 2, 16, slots=False)
    pool = make_pool(16, 4, 32, packed=False)
    with pytest.raises(ValueError, match="no queries, gates, keys and values"):
        split_qkv_reference(product, q_scale, k_scale, cos, sin, rows, pool, 1e-6)
    pool = make_pool(16, 1, 32, packed=False)
    with pytest.raises(ValueError, match="do not fit heads"):
        split_qkv_reference(product, q_scale[:16], k_scale, cos, sin, rows, pool, 1e-6)
    with pytest.raises(ValueError, match="head dimensions"):
        make_pool(16, 1, 24, packed=False)
    with pytest.raises(ValueError, match="need their scales"):
        LayerPool(pool.k.to(FP8), pool.v.to(FP8))
