"""The counter-based random numbers."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.sample.random import uniform

MASK = (1 << 64) - 1


def splitmix64(state: int, count: int) -> list[int]:
    """The published generator, step by step."""
    out = []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        out.append(z ^ (z >> 31))
    return out


def test_the_generator_of_these_tests_is_splitmix64() -> None:
    # Known outputs for state 1234567.
    assert splitmix64(1234567, 3) == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@settings(deadline=None)
@given(st.integers(-(2**70), 2**70), st.integers(0, 1000))
def test_stream_is_splitmix64_from_the_mixed_seed(seed: int, step: int) -> None:
    start = splitmix64(seed & MASK, 1)[0]
    assert uniform(seed, step) == (splitmix64(start, step + 1)[-1] >> 11) / 2**53


def test_numbers_fill_the_unit_interval_evenly() -> None:
    # One stream, and the first numbers of neighbouring seeds, which users like to choose.
    for numbers in ([uniform(7, step) for step in range(20_000)], [uniform(seed, 0) for seed in range(20_000)]):
        assert all(0.0 <= number < 1.0 for number in numbers)
        bins = [0] * 100
        for number in numbers:
            bins[int(number * 100)] += 1
        # 99 degrees of freedom: 99.9 % of good generators stay below 149.
        assert sum((n - 200) ** 2 / 200 for n in bins) < 149
        lagged = sum((a - 0.5) * (b - 0.5) for a, b in pairwise(numbers))
        assert abs(lagged / len(numbers) * 12) < 4 / len(numbers) ** 0.5
