from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ignis_desktop.bench.stats import Spread, median, overlap_rate, percentile


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50), st.floats(0, 1))
def test_percentiles_are_numpys(values: list[float], share: float) -> None:
    assert percentile(values, share) == pytest.approx(np.percentile(values, 100 * share), abs=1e-6)


def test_nothing_has_no_percentile() -> None:
    with pytest.raises(ValueError, match="no values"):
        median([])
    assert Spread.of([]) is None


def test_a_spread_in_another_unit() -> None:
    spread = Spread.of([0.001 * n for n in range(101)])
    assert spread is not None
    assert spread.json(1e3) == {"count": 101, "p50": 50.0, "p95": 95.0, "p99": 99.0, "max": 100.0}


def test_rates_count_only_while_all_run() -> None:
    steady = [0.1 * n for n in range(101)]  # 10 a second, from 0 to 10
    late = [4 + 0.2 * n for n in range(11)]  # 5 a second, from 4 to 6
    assert overlap_rate([steady]) == pytest.approx(10)
    assert overlap_rate([steady, late]) == pytest.approx(15)
    assert overlap_rate([steady, late], [2, 1]) == pytest.approx(25)
    assert overlap_rate([[0.0, 1.0], [2.0, 3.0]]) == 0.0
