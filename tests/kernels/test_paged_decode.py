"""Paged attention of a round, both forms, over lanes of different lengths."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kernels.fused.fp8 import pack, unpack
from kernels.fused.paged_decode import Plan, paged_decode, paged_decode_reference
from kernels.fused.pool import LayerPool, lane_rows
from tests.kernels import naive
from tests.kernels.compare import assert_close, randn
from tests.kernels.test_qkv import make_pool

ROUNDS = [(6, 2, 32, 1), (3, 1, 64, 3), (6, 2, 32, 5), (7, 1, 32, 7)]
"""Query heads, KV heads, head dimension, columns of each lane."""
FORMATS = ["float32", "bfloat16", "fp8"]


def filled_pool(
    lengths: list[int], heads: int, dim: int, kind: str, *, page: int = 16, loud: float = 1.0
) -> tuple[LayerPool, Tensor]:
    """A pool with lanes of ``lengths`` in pages out of order, NaN in every row that no lane has, and their table, with
    pages that do not exist beyond their ends."""
    counts = [-(-length // page) for length in lengths]
    order = torch.randperm(sum(counts) + 2, generator=torch.Generator().manual_seed(9))
    table = torch.full((len(lengths), max(counts) + 2), 1 << 20, dtype=torch.int32)
    pool = make_pool(len(order) * page, heads, dim, packed=kind == "fp8", page=page)
    if kind == "float32":
        pool = LayerPool(pool.k.float(), pool.v.float(), page=page)
    for lane, length in enumerate(lengths):
        pages = order[sum(counts[:lane]) : sum(counts[: lane + 1])]
        table[lane, : len(pages)] = pages
        rows = lane_rows(pages, torch.arange(length), page)
        size = torch.logspace(-1, 1, length)[:, None, None] * loud
        for number, (target, scales) in enumerate(((pool.k, pool.k_scale), (pool.v, pool.v_scale))):
            x = randn(length, heads, dim, seed=100 * number + lane) * (size if number else loud)
            if scales is None:
                target[rows] = x.to(target.dtype)
            else:
                codes, scale = pack(x)
                target.view(torch.uint8)[rows] = codes.view(torch.uint8)
                scales[rows] = scale
    return pool, table


def dense(pool: LayerPool, pages: Tensor, length: int) -> tuple[Tensor, Tensor]:
    rows = lane_rows(pages, torch.arange(length), pool.page)
    return unpack(pool.k, pool.k_scale, rows).double(), unpack(pool.v, pool.v_scale, rows).double()


def exact_decode(q: Tensor, gate: Tensor, pool: LayerPool, table: Tensor, past: Tensor) -> Tensor:
    columns = len(q) // len(past)
    parts = []
    for lane, old in enumerate(past.tolist()):
        k, v = dense(pool, table[lane], old + columns)
        parts.append(naive.attention(q[lane * columns : (lane + 1) * columns], k, v, old))
    return torch.cat(parts).flatten(1) * gate.double().sigmoid()


def tolerance(kind: str) -> torch.dtype:
    return torch.float32 if kind == "float32" else torch.bfloat16


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(("heads", "kv_heads", "dim", "columns"), ROUNDS)
def test_lanes_of_all_lengths(
    heads: int, kv_heads: int, dim: int, columns: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    past = torch.tensor([0, 45], dtype=torch.int32)
    pool, table = filled_pool([old + columns for old in past.tolist()], kv_heads, dim, kind)
    dtype = tolerance(kind)
    q = randn(2 * columns, heads, dim, seed=1, dtype=dtype)
    gate = randn(2 * columns, heads * dim, seed=2, dtype=dtype)
    exact = exact_decode(q, gate, pool, table, past)
    monkeypatch.setenv("IGNIS_KERNELS", "triton")
    for keys_first in (False, True) if kind == "fp8" else (False,):
        plan = Plan(3, 16, 4, 1, keys_first)
        assert_close(paged_decode(q, gate, pool, table, past, plan=plan), exact, dtype, steps=8)
    assert_close(paged_decode_reference(q, gate, pool, table, past), exact, dtype, steps=8)


@pytest.mark.parametrize("splits", [1, 4, 40])
def test_every_number_of_splits(splits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """More splits than tiles, too, and columns that see nothing of the last tile."""
    monkeypatch.setenv("IGNIS_KERNELS", "triton")
    past = torch.tensor([30, 62], dtype=torch.int32)
    pool, table = filled_pool([34, 66], 2, 32, "float32")
    q, gate = randn(8, 4, 32, seed=1), randn(8, 128, seed=2)
    exact = exact_decode(q, gate, pool, table, past)
    assert_close(paged_decode(q, gate, pool, table, past, plan=Plan(splits, 16, 4, 1)), exact, torch.float32, steps=8)


@pytest.mark.parametrize("kind", FORMATS)
def test_scores_far_apart_do_not_overflow(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IGNIS_KERNELS", "triton")
    past = torch.tensor([60], dtype=torch.int32)
    pool, table = filled_pool([61], 1, 32, kind, loud=100.0)
    dtype = tolerance(kind)
    q, gate = randn(1, 4, 32, seed=1, dtype=dtype) * 10, randn(1, 128, seed=2, dtype=dtype)
    found = paged_decode(q, gate, pool, table, past, plan=Plan(4, 16, 4, 1))
    assert_close(found, exact_decode(q, gate, pool, table, past), dtype, steps=16)


def test_shapes_that_do_not_fit_are_refused() -> None:
    pool, table = filled_pool([4], 2, 32, "float32")
    past = torch.tensor([3], dtype=torch.int32)
    with pytest.raises(ValueError, match="do not fit 2 KV heads"):
        paged_decode(randn(1, 3, 32, seed=1), randn(1, 96, seed=1), pool, table, past)
    with pytest.raises(ValueError, match="do not fit each other"):
        paged_decode(randn(3, 2, 32, seed=1), randn(3, 64, seed=1), pool, table, past.repeat(2))
    with pytest.raises(ValueError, match="fewer columns at a time"):
        paged_decode(randn(600, 2, 32, seed=1), randn(600, 64, seed=1), pool, table, past)
    with pytest.raises(ValueError, match="contiguous"):
        paged_decode(randn(1, 32, 2, seed=1).transpose(1, 2), randn(1, 64, seed=1), pool, table, past)
    packed, table = filled_pool([4], 1, 16, "fp8")
    with pytest.raises(ValueError, match="32 values or more"):
        paged_decode(randn(1, 1, 16, seed=1), randn(1, 16, seed=1), packed, table, past)
    packed, table = filled_pool([4], 1, 32, "fp8")
    with pytest.raises(ValueError, match="fewer columns at a time"):
        paged_decode(randn(65, 1, 32, seed=1), randn(65, 32, seed=1), packed, table, past)
