"""Attention and its readout against a loop over queries in float64."""

from __future__ import annotations

import pytest
import torch

from kernels.attention import _masked, attention, full_attention, read_peaks, read_scores
from tests.kernels import naive
from tests.kernels.compare import DTYPES, assert_close, randn


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("length", "past"), [(1, 0), (1, 1), (1, 64), (1, 333), (2, 0), (65, 0), (2, 63), (64, 129)])
@pytest.mark.parametrize(("heads", "kv_heads", "dim"), [(4, 4, 16), (6, 2, 32), (3, 1, 8)])
def test_attention(length: int, past: int, heads: int, kv_heads: int, dim: int, dtype: torch.dtype) -> None:
    q = randn(length, heads, dim, seed=1, dtype=dtype) * 2
    k, v = (randn(past + length, kv_heads, dim, seed=seed, dtype=dtype) for seed in (2, 3))
    out = attention(q, k, v, past)
    assert out.dtype == dtype
    exact = naive.attention(q, k, v, past)
    assert_close(out, exact, dtype, steps=8)
    # What devices without the processor's split use.
    assert_close(_masked(q, k, v, past), exact, dtype, steps=8)


def test_scores_far_apart_do_not_overflow() -> None:
    """The past outweighs the new tokens by e^500, then the other way round."""
    q, v = torch.full((3, 1, 8), 20.0), randn(9, 1, 8, seed=1)
    for large in (slice(0, 6), slice(6, 9)):
        k = torch.zeros(9, 1, 8)
        k[large] = 9.0
        assert_close(attention(q, k, v, 6), naive.attention(q, k, v, 6), torch.float32, steps=8)


@pytest.mark.parametrize("length", [1, 3])
def test_queries_and_keys_may_be_views(length: int) -> None:
    """As they come: queries split from a joined product, keys a slice of a layer's pool."""
    q = randn(length, 4, 2 * 16, seed=1)[..., :16]
    pool = randn(2, 80, 2, 16, seed=2)
    k, v = pool[0, 16:60], pool[1, 16:60]
    exact = naive.attention(q, k, v, 44 - length)
    assert_close(attention(q, k, v, 44 - length), exact, torch.float32, steps=8)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [1, 2, 67])
def test_full_attention(count: int, dtype: torch.dtype) -> None:
    q, k, v = (randn(count, 3, 24, seed=seed, dtype=dtype) for seed in (1, 2, 3))
    rows = [naive.attention(q[i : i + 1], k, v, count - 1) for i in range(count)]
    assert_close(full_attention(q, k, v), torch.cat(rows), dtype, steps=8)


@pytest.mark.parametrize("dtype", DTYPES)
def test_read_scores(dtype: torch.dtype) -> None:
    q, k = randn(6, 32, seed=1, dtype=dtype), randn(19, 2, 32, seed=2, dtype=dtype)
    heads = torch.tensor([5, 0, 3, 2, 0])
    exact = torch.stack([k[:, head // 3].double() @ q[head].double() / 32**0.5 for head in heads.tolist()])
    found = read_scores(q, k, heads)
    # Products of stored values, whatever their type, summed in float32.
    assert found.dtype == torch.float32
    assert_close(found, exact, torch.float32)


def test_read_scores_of_no_key() -> None:
    assert read_scores(randn(4, 8, seed=1), torch.empty(0, 2, 8), torch.tensor([1, 2])).shape == (2, 0)


FP8 = torch.float8_e4m3fn


def packed(k: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Keys [S, Hkv, D] as FP8 codes with one scale a row [S, Hkv], as a packed pool holds them."""
    scales = k.float().abs().amax(-1) / torch.finfo(FP8).max
    return (k.float() / scales[..., None]).to(FP8), scales


def test_scores_of_packed_keys_are_those_of_the_keys_they_stand_for() -> None:
    q, k = randn(6, 256, seed=1), randn(19, 2, 256, seed=2) * torch.logspace(-3, 2, 19)[:, None, None]
    codes, scales = packed(k)
    heads = torch.arange(6)
    dense = codes.double() * scales.double()[..., None]
    exact = torch.stack([dense[:, head // 3] @ q[head].double() / 16 for head in range(6)])
    assert_close(read_scores(q, codes, heads, scales), exact, torch.float32)
    # And they are near those of the keys before packing: e4m3 keeps three bits behind the leading one.
    whole = read_scores(q, k, heads)
    noise = (read_scores(q, codes, heads, scales) - whole).norm(dim=-1) / whole.norm(dim=-1)
    assert 1e-4 < noise.max() < 2**-4


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 7), (7, 1), (2, 2), (5, 6)])
@pytest.mark.parametrize("scaled", [False, True])
def test_read_peaks(rows: int, columns: int, scaled: bool) -> None:
    """A best cell anywhere on the grid: corners, edges and inside, with exactly the neighbours that are there."""
    count = rows * columns
    for seed in range(12):
        q, k = randn(6, 32, seed=seed), randn(count, 2, 32, seed=100 + seed)
        k[seed % count] *= 9.0
        codes, scales = packed(k) if scaled else (k, None)
        heads = torch.tensor([5, 0, 3, 2])
        best, found = read_peaks(q, codes, heads, columns, scales)
        scores = read_scores(q, codes, heads, scales).view(-1, rows, columns)
        padded = torch.nn.functional.pad(scores, (1, 1, 1, 1), value=float("-inf"))
        assert found.shape == (4, 5)
        for number in range(4):
            row, column = divmod(int(scores[number].argmax()), columns)
            assert best[number] == row * columns + column
            there = [(1, 1), (1, 0), (1, 2), (0, 1), (2, 1)]
            wanted = torch.stack([padded[number, row + down, column + across] for down, across in there])
            assert torch.equal(found[number], wanted)
