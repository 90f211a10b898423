"""Gated DeltaNet, chunked and step by step, against a loop over tokens in float64."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kernels.gated_delta import CHUNK, gated_delta_chunked, gated_delta_step
from tests.kernels import naive
from tests.kernels.compare import DTYPES, assert_close, randn


def inputs(length: int, heads: int, dk: int, dv: int, dtype: torch.dtype, decay: float) -> list[Tensor]:
    """q, k, v, g, beta; keys lean towards each other, as after a convolution, so that deltas really interact."""
    k = randn(length, heads, dk, seed=2) + 2 * randn(1, heads, dk, seed=6)
    return [
        randn(length, heads, dk, seed=1, dtype=dtype),
        k.to(dtype),
        randn(length, heads, dv, seed=3, dtype=dtype),
        -decay * randn(length, heads, seed=4).exp(),
        randn(length, heads, seed=5, dtype=dtype).sigmoid(),
    ]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 127, 128, 129, 200])
@pytest.mark.parametrize(("heads", "dk", "dv"), [(2, 16, 16), (3, 8, 24), (1, 16, 8)])
def test_chunked(length: int, heads: int, dk: int, dv: int, dtype: torch.dtype) -> None:
    x, state = inputs(length, heads, dk, dv, dtype, 0.1), randn(heads, dk, dv, seed=7)
    given = [part.clone() for part in x]
    exact, after = naive.gated_delta(*x, state)
    out = gated_delta_chunked(*x, state)
    assert all(torch.equal(part, before) for part, before in zip(x, given, strict=True))
    # All float32 inside, whatever the inputs' type.
    assert out.dtype == torch.float32
    assert_close(out, exact, torch.float32, steps=10)
    assert_close(state, after, torch.float32, steps=10)


@pytest.mark.parametrize("decay", [0.0, 1e-4, 3.0, 30.0])
def test_chunked_from_no_forgetting_to_forgetting_all(decay: float) -> None:
    x, state = inputs(150, 2, 16, 16, torch.float32, decay), randn(2, 16, 16, seed=7)
    exact, after = naive.gated_delta(*x, state)
    assert_close(gated_delta_chunked(*x, state), exact, torch.float32, steps=50)
    assert_close(state, after, torch.float32, steps=50)


@pytest.mark.parametrize("cut", [1, 40, CHUNK, CHUNK + 1, 149])
def test_a_run_in_two_parts(cut: int) -> None:
    x, state = inputs(150, 2, 16, 16, torch.float32, 0.1), randn(2, 16, 16, seed=7)
    exact, after = naive.gated_delta(*x, state)
    out = torch.cat([gated_delta_chunked(*(part[s] for part in x), state) for s in (slice(cut), slice(cut, None))])
    assert_close(out, exact, torch.float32, steps=10)
    assert_close(state, after, torch.float32, steps=10)


def test_zero_keys_write_nothing() -> None:
    """A padded or dead channel has no direction; 1e-6 under the root keeps it from becoming NaN."""
    x, state = inputs(70, 2, 16, 16, torch.float32, 0.1), randn(2, 16, 16, seed=7)
    x[1] = torch.zeros_like(x[1])
    exact, after = naive.gated_delta(*x, state)
    assert_close(gated_delta_chunked(*x, state), exact, torch.float32, steps=20)
    assert_close(state, after, torch.float32, steps=20)


def test_small_keys_are_normalised_as_published() -> None:
    """|k| = 1e-3: here the 1e-6 under the root halves the square."""
    x, state = inputs(5, 2, 16, 16, torch.float32, 0.1), randn(2, 16, 16, seed=7)
    x[1] = x[1] / x[1].norm(dim=-1, keepdim=True) * 1e-3
    exact, _ = naive.gated_delta(*x, state)
    assert_close(gated_delta_chunked(*x, state.clone()), exact, torch.float32, steps=20)
    assert_close(gated_delta_step(*(part[:1] for part in x), state[None].clone()), exact[:1], torch.float32, steps=20)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lanes", [1, 5])
def test_step(lanes: int, dtype: torch.dtype) -> None:
    x, states = inputs(lanes, 3, 8, 24, dtype, 0.3), randn(lanes, 3, 8, 24, seed=7)
    expected = [naive.gated_delta(*(part[lane : lane + 1] for part in x), states[lane]) for lane in range(lanes)]
    out = gated_delta_step(*x, states)
    assert out.dtype == torch.float32
    assert_close(out, torch.cat([o for o, _ in expected]), torch.float32, steps=10)
    assert_close(states, torch.stack([after for _, after in expected]), torch.float32, steps=10)
