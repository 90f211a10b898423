"""Times as people write them."""

from __future__ import annotations

import re
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.answers.fold.moments import DAY, HOUR, MINUTE, MOMENT, SECOND, Moment, read_moment, straightened

PATTERN = re.compile(MOMENT, re.IGNORECASE | re.VERBOSE)


def found(text: str) -> list[Moment | None]:
    """All moments in a text."""
    return [read_moment(match.group()) for match in PATTERN.finditer(straightened(text))]


def at(hour: int, minute: int = 0, second: float = 0, unit: int = MINUTE, **date: int) -> Moment:
    return Moment(**date, clock=hour * HOUR + minute * MINUTE + round(second * SECOND), unit=unit)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("14:02", at(14, 2)),
        ("9:05", at(9, 5)),
        ("14:02:33", at(14, 2, 33, SECOND)),
        ("14:02:33.5", at(14, 2, 33.5, SECOND // 10)),
        ("14:02:33,123456789", at(14, 2, 33.123456, 1)),
        ("2 pm", at(14, unit=HOUR)),
        ("2pm", at(14, unit=HOUR)),
        ("2 p.m.", at(14, unit=HOUR)),
        ("12 am", at(0, unit=HOUR)),
        ("12 pm", at(12, unit=HOUR)),
        ("2:30pm", at(14, 30)),
        ("12:15 AM", at(0, 15)),
        ("3 o'clock", at(3, unit=HOUR)),
        ("noon", at(12)),
        ("midnight", at(0)),
        ("14:02 UTC", at(14, 2)),
        ("2026-03-01", Moment(2026, 3, 1)),
        ("2026/3/1", Moment(2026, 3, 1)),
        ("2026.03.01", Moment(2026, 3, 1)),
        ("Mar 1", Moment(None, 3, 1)),
        ("mar 1", Moment(None, 3, 1)),
        ("March 1st", Moment(None, 3, 1)),
        ("March the 1st", Moment(None, 3, 1)),
        ("1 March", Moment(None, 3, 1)),
        ("1st of March", Moment(None, 3, 1)),
        ("1 March 2026", Moment(2026, 3, 1)),
        ("March 1, 2026", Moment(2026, 3, 1)),
        ("Sept. 5", Moment(None, 9, 5)),
        ("May 3", Moment(None, 5, 3)),
        ("Feb 29", Moment(None, 2, 29)),
        ("2024-02-29", Moment(2024, 2, 29)),
        ("30.11.2026", Moment(2026, 11, 30)),
        ("11/30/2026", Moment(2026, 11, 30)),
        ("30/11/2026", Moment(2026, 11, 30)),
        ("03/04/2026", Moment(2026, 3, 4)),
        ("Nov  3 16:40:50", at(16, 40, 50, SECOND, month=11, day=3)),
        ("2026-03-01 14:02", at(14, 2, year=2026, month=3, day=1)),
        ("2026-03-01T14:02:33Z", at(14, 2, 33, SECOND, year=2026, month=3, day=1)),
        ("2026-03-01 at 14:02", at(14, 2, year=2026, month=3, day=1)),
        ("14:02 on Mar 1", at(14, 2, month=3, day=1)),
        ("2 pm, March 1st", at(14, unit=HOUR, month=3, day=1)),
        ("30/Nov/2026:16:42:46", at(16, 42, 46, SECOND, year=2026, month=11, day=30)),
        ("Monday, 30 Nov 2026 16:42", at(16, 42, year=2026, month=11, day=30)),
        ("Mon Nov 30 16:42:46", at(16, 42, 46, SECOND, month=11, day=30)),
    ],
)
def test_a_moment_alone(text: str, moment: Moment) -> None:
    assert found(text) == [moment]
    assert found(f"what was logged at {text}?") == [moment]
    assert found(f"({text})") == [moment]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "25:10",
        "14:60",
        "14:02:99",
        "1:2",
        "127.0.0.1:5432",
        "10.0.0.1:80 refused",
        "aa:bb:12:34",
        "1.2.3",
        "version 2026.3",
        "2026-13-01",
        "2026-02-30",
        "Feb 30",
        "Mar 32",
        "32 March",
        "30.13.2026",
        "yesterday",
        "Monday",
        "tomorrow at dawn",
        "last week",
        "in March",
        "which client may 5 call",
        "a second",
        "5 minutes",
        "14 pm",
        "deb12-2026-03-01-x",
        "marx 1",
        "dec1",
        "line 1402",
    ],
)
def test_what_is_no_moment(text: str) -> None:
    assert [moment for moment in found(text) if moment is not None] == []


def test_two_moments_are_two() -> None:
    assert found("between 14:02 and 14:05 on Mar 1") == [at(14, 2), at(14, 5, month=3, day=1)]


STYLES = [
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%Y/%m/%d %H:%M:%S",
    "%d/%b/%Y:%H:%M:%S",
    "%B %d, %Y at %H:%M:%S",
    "%d %B %Y %H:%M:%S",
    "%b %d %Y %I:%M:%S %p",
    "%H:%M:%S on %Y-%m-%d",
    "%A, %d %b %Y %H:%M:%S",
]


@given(st.datetimes(datetime(1990, 1, 1), datetime(2089, 12, 31)), st.sampled_from(STYLES))
def test_whatever_is_printed_is_read(time: datetime, style: str) -> None:
    clock = (time.hour * 60 + time.minute) * MINUTE + time.second * SECOND
    assert found(time.strftime(style)) == [Moment(time.year, time.month, time.day, clock, SECOND)]


@given(st.text(max_size=60))
def test_any_text_is_read_without_a_fault(text: str) -> None:
    straight = straightened(text)
    assert len(straight) == len(text)
    for moment in found(text):
        if moment is not None:
            assert moment.dated or moment.clock is not None
            assert moment.clock is None or 0 <= moment.clock < DAY


def test_a_moment_takes_the_date_of_another() -> None:
    assert at(14, 2).on(Moment(2026, 3, 1)) == at(14, 2, year=2026, month=3, day=1)
    assert Moment(None, 4, 2).on(Moment(2026, 3, 1)) == Moment(None, 4, 2)
