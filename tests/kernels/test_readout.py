"""The readout on the card: scores through the page table, and peaks."""

from __future__ import annotations

import pytest
import torch

from kernels.attention import read_peaks
from kernels.fused.readout import pick_peaks, pick_peaks_reference, read_scores
from tests.kernels.compare import assert_close, randn
from tests.kernels.test_paged_decode import FORMATS, dense, filled_pool, tolerance


@pytest.mark.parametrize("kind", FORMATS)
def test_scores_of_a_span_and_single_positions(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pool, table = filled_pool([20, 90], 3, 32, kind)
    q = randn(4, 6, 32, seed=1, dtype=tolerance(kind))
    heads, rows = torch.tensor([5, 0, 3, 0]), torch.tensor([2, 6, 3, 0], dtype=torch.int32)
    extra = torch.tensor([0, 89, 3])
    keys = dense(pool, table[1], 90)[0]
    wanted = torch.cat([keys[17:83], keys[extra]])
    exact = torch.stack([wanted[:, head // 2] @ q[2, head].double() / 32**0.5 for head in heads.tolist()])
    for choice in ("reference", "triton"):
        monkeypatch.setenv("IGNIS_KERNELS", choice)
        out = torch.full((7, 69), float("nan"))
        read_scores(q, 2, heads, rows, pool, table[1], (17, 83), extra, out)
        assert_close(out[rows.long()], exact, torch.float32)
        assert out[[1, 4, 5]].isnan().all()  # rows of other layers stay


def test_a_span_of_nothing_or_no_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IGNIS_KERNELS", "triton")
    pool, table = filled_pool([20], 3, 32, "float32")
    none = torch.empty(0, dtype=torch.int64)
    q, out = randn(1, 3, 32, seed=1), torch.full((2, 1), 7.0)
    read_scores(q, 0, none, none, pool, table[0], (3, 4), none, out)
    read_scores(q, 0, torch.tensor([1]), torch.tensor([1]), pool, table[0], (3, 3), none, out[:, :0])
    assert (out == 7.0).all()


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 7), (7, 1), (2, 2), (5, 6), (40, 60)])
def test_peaks(rows: int, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A best cell anywhere, ties won by the first, as the plain operation has it."""
    monkeypatch.setenv("IGNIS_KERNELS", "triton")
    size = rows * columns
    scores = torch.randint(-9, 9, (24, size), generator=torch.Generator().manual_seed(1)).float()
    scores[torch.arange(24), torch.arange(24) * 7 % size] = 20.0
    scores[0, [0, size - 1]] = 30.0
    best, around = torch.empty(24, dtype=torch.int64), torch.empty(24, 5)
    pick_peaks(scores, columns, best, around)
    expected = torch.empty_like(best), torch.empty_like(around)
    pick_peaks_reference(scores, columns, *expected)
    assert torch.equal(best, expected[0])
    assert torch.equal(around, expected[1])
    # The scores as they are: a query of ones on one dimension of keys.
    for head in range(3):
        keys = scores[head][:, None, None]
        cell, near = read_peaks(torch.ones(1, 1), keys, torch.tensor([0]), columns)
        assert int(cell) == int(best[head])
        assert torch.equal(near[0], around[head])


def test_shapes_that_do_not_fit_are_refused() -> None:
    pool, table = filled_pool([20], 3, 32, "float32")
    one = torch.tensor([0])
    q = randn(1, 3, 32, seed=1)
    with pytest.raises(ValueError, match="cannot take 1 heads"):
        read_scores(q, 0, one, one, pool, table[0], (0, 4), one, torch.empty(1, 4))
    with pytest.raises(ValueError, match="do not fit 3 KV heads"):
        read_scores(q[:, :2], 0, one, one, pool, table[0], (0, 4), one, torch.empty(1, 5))
    with pytest.raises(ValueError, match="no rows of 3"):
        pick_peaks(torch.empty(1, 4), 3, torch.empty(1, dtype=torch.int64), torch.empty(1, 5))
    with pytest.raises(ValueError, match="do not fit"):
        pick_peaks(torch.empty(1, 4), 2, torch.empty(2, dtype=torch.int64), torch.empty(1, 5))
