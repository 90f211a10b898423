from __future__ import annotations

import pytest

from engine.schedule.counters import Rate


def test_a_rate_looks_at_the_last_two_seconds() -> None:
    rate = Rate()
    assert rate.value(10.0) == 0.0
    for step in range(100):
        rate.add(10.0 + step * 0.1, 5)
    assert rate.value(19.9) == pytest.approx(50, rel=0.1)
    assert rate.value(20.9) == pytest.approx(25, rel=0.1)
    assert rate.value(30.0) == 0.0
