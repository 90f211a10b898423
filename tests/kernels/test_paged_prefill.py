"""Paged attention of packed runs, both forms."""

from __future__ import annotations

import pytest
import torch

from kernels.fused.paged_prefill import Plan, paged_prefill, paged_prefill_reference
from tests.kernels import naive
from tests.kernels.compare import assert_close, randn
from tests.kernels.test_paged_decode import FORMATS, dense, filled_pool, tolerance

RUNS = [(0, 1), (37, 18), (16, 16)]
"""(past, new tokens) of the runs of a chunk."""


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(("heads", "kv_heads", "dim", "splits"), [(4, 2, 32, 1), (2, 1, 32, 3)])
def test_packed_runs(
    heads: int, kv_heads: int, dim: int, splits: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, table = filled_pool([old + new for old, new in RUNS], kv_heads, dim, kind)
    past = torch.tensor([old for old, _ in RUNS], dtype=torch.int32)
    starts = torch.tensor([0, *(new for _, new in RUNS)]).cumsum(0).int()
    dtype, count = tolerance(kind), int(starts[-1])
    q, gate = randn(count, heads, dim, seed=1, dtype=dtype), randn(count, heads * dim, seed=2, dtype=dtype)
    exact = []
    for run, (old, new) in enumerate(RUNS):
        start = int(starts[run])
        k, v = dense(pool, table[run], old + new)
        exact.append(naive.attention(q[start : start + new], k, v, old))
    gated = torch.cat(exact).flatten(1) * gate.double().sigmoid()
    monkeypatch.setenv("IGNIS_KERNELS", "triton")
    plan = Plan(16, 16, 4, 1, splits)
    assert_close(paged_prefill(q, gate, pool, table, past, starts, longest=18, plan=plan), gated, dtype, steps=8)
    assert_close(paged_prefill_reference(q, gate, pool, table, past, starts, longest=18), gated, dtype, steps=8)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("splits", [1, 3])
def test_columns_that_are_nobodys(splits: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is padded gives, bit for bit, what it gives alone; pages beyond its own are not looked at."""
    pool, table = filled_pool([57], 1, 32, kind)
    past, starts = torch.tensor([37], dtype=torch.int32), torch.tensor([0, 20], dtype=torch.int32)
    dtype = tolerance(kind)
    q, gate = randn(64, 2, 32, seed=1, dtype=dtype), randn(64, 64, seed=2, dtype=dtype)
    q[20:], gate[20:] = float("nan"), float("nan")
    wide = torch.cat([table, torch.full((1, 5), 1 << 30, dtype=torch.int32)], 1)
    monkeypatch.setenv("IGNIS_KERNELS", "triton")
    plan = Plan(16, 16, 4, 1, splits)
    alone = paged_prefill(q[:20], gate[:20], pool, table, past, starts, longest=20, plan=plan)
    padded = paged_prefill(q, gate, pool, wide, past, starts, longest=64, plan=plan)
    assert torch.equal(padded[:20], alone)
    assert not padded[20:].any()
    plain = paged_prefill_reference(q, gate, pool, wide, past, starts, longest=64)
    assert_close(plain[:20], alone.double(), dtype, steps=8)
    assert not plain[20:].any()


def test_the_plain_form_takes_runs_of_any_length() -> None:
    """More tokens than a program of the decoding kernel holds."""
    pool, table = filled_pool([300], 1, 32, "float32")
    q, gate = randn(300, 2, 32, seed=1), randn(300, 64, seed=2)
    past, starts = torch.zeros(1, dtype=torch.int32), torch.tensor([0, 300], dtype=torch.int32)
    k, v = dense(pool, table[0], 300)
    exact = torch.nn.functional.scaled_dot_product_attention(
        *(x.double().transpose(0, 1) for x in (q, k.expand(-1, 2, -1), v.expand(-1, 2, -1))), is_causal=True
    )
    gated = exact.transpose(0, 1).flatten(1) * gate.double().sigmoid()
    assert_close(paged_prefill(q, gate, pool, table, past, starts, longest=300), gated, torch.float32, steps=8)


def test_shapes_that_do_not_fit_are_refused() -> None:
    pool, table = filled_pool([4], 2, 32, "float32")
    past, starts = torch.tensor([3], dtype=torch.int32), torch.tensor([0, 1], dtype=torch.int32)
    with pytest.raises(ValueError, match="do not fit 2 KV heads"):
        paged_prefill(randn(1, 3, 32, seed=1), randn(1, 96, seed=1), pool, table, past, starts, longest=1)
    q, gate = randn(1, 4, 32, seed=1), randn(1, 128, seed=1)
    with pytest.raises(ValueError, match="one start more"):
        paged_prefill(q, gate, pool, table, past, starts[:1], longest=1)
    with pytest.raises(ValueError, match="contiguous"):
        paged_prefill(randn(1, 32, 4, seed=1).transpose(1, 2), gate, pool, table, past, starts, longest=1)
