"""Argmax and top-k without sorting, against a stable sort."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.sample.ranking import Ranking

LEVELS = [-float("inf"), -3.0, -0.5, 0.0, 0.25, 1.0, 1e30]
"""Few values: most rows are full of ties."""


def rows(seed: int, count: int, vocabulary: int, tied: bool) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    if tied:
        return torch.tensor(LEVELS)[torch.randint(len(LEVELS), (count, vocabulary), generator=generator)]
    return torch.randn(count, vocabulary, generator=generator).bfloat16().float()


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 5000), st.booleans(), st.data())
def test_top_equals_a_stable_sort(seed: int, count: int, vocabulary: int, tied: bool, data: st.DataObject) -> None:
    x = rows(seed, count, vocabulary, tied)
    k = data.draw(st.integers(1, min(vocabulary, 60)) | st.integers(1, vocabulary), label="k")
    chosen = data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=count, unique=True), label="rows")
    values, ids = Ranking(x).top(torch.tensor(chosen), k)
    expected, order = x[chosen].sort(dim=-1, descending=True, stable=True)
    assert torch.equal(values, expected[:, :k])
    assert torch.equal(ids, order[:, :k])


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 1000), st.booleans())
def test_best_is_the_first_largest(seed: int, vocabulary: int, tied: bool) -> None:
    x = rows(seed, 4, vocabulary, tied)
    value, index = Ranking(x).best()
    for row in range(4):
        listed = x[row].tolist()
        assert value[row].item() == max(listed)
        assert index[row].item() == listed.index(max(listed))


def test_negative_zero_ranks_beside_zero_by_value() -> None:
    values, ids = Ranking(torch.tensor([[-1.0, 0.0, -0.0, 2.0]])).top(torch.tensor([0]), 4)
    assert values[0].tolist() == [2.0, 0.0, 0.0, -1.0]
    assert ids[0].tolist() == [3, 1, 2, 0]


def test_best_reports_nan_and_infinity_of_their_own_row_only() -> None:
    x = torch.zeros(3, 200)
    x[0, 150], x[1, 10], x[2, 3] = float("nan"), float("inf"), 1.0
    value, _ = Ranking(x).best()
    assert value[0].isnan()
    assert value[1:].tolist() == [float("inf"), 1.0]
