"""Rows that a question's words leave, in logs that say more or less of the time."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.answers.fold.fold import Fold, fold
from engine.answers.fold.index import read_question
from engine.answers.fold.select import Selection, select
from engine.answers.fold.source import Source

LOGS = Path(__file__).parents[3] / "data" / "logs"


def answered(folded: Fold, question: str) -> list[int] | None:
    """Line numbers that the index alone leaves."""
    selection = selected(folded, question)
    return None if selection is None else folded.lines_of(selection.rows).tolist()


def selected(folded: Fold, question: str) -> Selection | None:
    return select(folded, np.arange(folded.rows), read_question(question))


def logged(times: list[str]) -> Fold:
    return fold(Source("".join(f"{time} event {n}\n" for n, time in enumerate(times, 1))))


DAY_LOG = logged(["13:58:00", "14:00:00", "14:01:59", "14:02:00", "14:02:33", "14:02:59", "14:03:00", "15:00:00"])


@pytest.mark.parametrize(
    ("question", "lines"),
    [
        ("What happened at 14:02?", [4, 5, 6]),
        ("at 14:02:33", [5]),
        ("at 2 pm", [2, 3, 4, 5, 6, 7]),
        ("after 14:02", [5, 6, 7, 8]),
        ("since 14:02", [4, 5, 6, 7, 8]),
        ("before 14:02", [1, 2, 3]),
        ("until 14:02", [1, 2, 3, 4]),
        ("between 14:00 and 14:02", [2, 3, 4]),
        ("from 14:02:33 to 15:00", [5, 6, 7, 8]),
        ("around 15:03", [8]),
        ("around 14:02:35", [5]),
        ("the first after 14:02", [5]),
        ("the last before 14:02", [3]),
        ("right before 14:02", [3]),
        ("the second at 14:02", [5]),
        ("the 9th", []),
        ("the second to last", [7]),
        ("the last", [8]),
        ("the last 3 events", [6, 7, 8]),
        ("the first two events", [1, 2]),
        ("in the first 3 minutes", [1, 2]),
        ("in the last 60 minutes", [2, 3, 4, 5, 6, 7, 8]),
        ("at 09:00", []),
        ("on Mar 1", None),
        ("on Mar 1 at 14:02:33", [5]),
        ("between Mar 1 and Mar 2", None),
    ],
)
def test_times_of_day(question: str, lines: list[int] | None) -> None:
    assert answered(DAY_LOG, question) == lines


NIGHT = logged(["23:49:59", "23:50:00", "23:59:59", "00:00:00", "00:10:00", "00:11:00"])


@pytest.mark.parametrize(
    ("question", "lines"),
    [
        ("between 23:50 and 00:10", [2, 3, 4, 5]),
        ("after 23:50", [3, 4, 5, 6]),
        ("before midnight", [1, 2, 3]),
        ("after midnight", [5, 6]),
        ("around midnight", [3, 4]),
        ("at 00:10", [5]),
    ],
)
def test_a_log_over_midnight(question: str, lines: list[int]) -> None:
    assert answered(NIGHT, question) == lines


DATED = logged(
    [
        "2026-02-28 23:50:00",
        "2026-02-28 23:59:00",
        "2026-03-01 00:05:00",
        "2026-03-01 14:02:30",
        "2026-03-02 14:02:30",
        "2026-03-03 09:00:00",
    ]
)


@pytest.mark.parametrize(
    ("question", "lines"),
    [
        ("on 2026-03-01", [3, 4]),
        ("on Mar 1", [3, 4]),
        ("on March 1st, 2025", []),
        ("after Mar 1", [5, 6]),
        ("since Mar 1", [3, 4, 5, 6]),
        ("before Mar 1", [1, 2]),
        ("until Mar 1", [1, 2, 3, 4]),
        ("between Mar 1 and Mar 2", [3, 4, 5]),
        ("at 14:02", [4, 5]),
        ("on Mar 2 at 14:02", [5]),
        ("after 14:02 on Mar 1", [4, 5, 6]),
        ("between 23:55 and 00:10", [2, 3]),
        ("between 2026-02-28 23:55 and 00:10", [2, 3]),
        ("around midnight", [2, 3]),
        ("after 9 am", [1, 2, 4, 5]),
        ("between 8 am and 10 am", [6]),
        ("in the last 1 day", [5, 6]),
        ("the first on Mar 1", [3]),
        ("around Mar 2", [3, 4, 5, 6]),
    ],
)
def test_dates(question: str, lines: list[int]) -> None:
    assert answered(DATED, question) == lines


def test_dates_without_a_year() -> None:
    folded = logged(["Dec 30 10:00:00 h", "Dec 31 23:59:00 h", "Jan  1 00:01:00 h", "Jan  2 10:00:00 h"])
    assert answered(folded, "on Dec 31") == [2]
    assert answered(folded, "after Dec 30") == [2, 3, 4]
    assert answered(folded, "before Jan 1") == [1, 2]
    assert answered(folded, "since Jan 1") == [3, 4]
    assert answered(folded, "on 2026-12-31") == [2]
    assert answered(folded, "at 10:00") == [1, 4]


def test_logs_without_times_say_so() -> None:
    folded = fold(Source((LOGS / "sshd.log").read_bytes()))
    assert answered(folded, "What happened at 14:02?") is None
    assert answered(folded, "in the last 10 minutes") is None
    assert answered(folded, "the last line") == [556]


def test_counts_are_of_lines() -> None:
    folded = fold(Source("a b c 1\n" + "a b c " + "2 " * 4000 + "\nz\na b c 3\n"))
    rows = np.arange(folded.rows)
    selection = select(folded, rows, read_question("How many times?"))
    assert selection is not None
    assert selection.count == 4
    assert len(selection.rows) == folded.rows > 4
    both = selected(folded, "How often, and which was the last?")
    assert both is not None
    assert (both.count, len(both.rows)) == (4, 1)


def test_rows_of_a_template_are_counted_and_ordered() -> None:
    """As asked of the real log: how often were slots reserved, and when first."""
    folded = fold(Source((LOGS / "postgresql.log").read_bytes()))
    (template,) = (t for t in folded.templates if b"reserved" in t.tokens)
    rows = folded.rows_of([template.number])
    selection = select(folded, rows, read_question("How many times was a slot reserved?"))
    assert selection is not None
    assert selection.count == 9
    selection = select(folded, rows, read_question("When was a slot first reserved after 16:41?"))
    assert selection is not None
    assert "remaining connection slots" in folded.source.line(int(folded.lines_of(selection.rows)[0]))
    assert selection.rows[0] == rows[0]


def test_windows_of_the_real_log_hold_its_lines() -> None:
    folded = fold(Source((LOGS / "postgresql.log").read_bytes()))
    inside = answered(folded, "What happened at 16:41:02?")
    assert inside
    stamped = [n for n in range(1, 1443) if folded.source.line(n).startswith("2026-11-30 16:41:02")]
    assert set(stamped) <= set(inside)
    # What is there beside is what goes on with those lines.
    assert all(folded.source.line(n)[0] in "\t " for n in set(inside) - set(stamped))


MOMENTS = st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31)).map(lambda t: t.replace(microsecond=0))


@settings(max_examples=80)
@given(st.lists(MOMENTS, min_size=1, max_size=30), MOMENTS, st.integers(0, 10**6))
def test_windows_are_what_comparing_says(times: list[datetime], moment: datetime, later: int) -> None:
    folded = logged([time.strftime("%Y-%m-%d %H:%M:%S") for time in times])
    end = moment + timedelta(seconds=later)
    for words, inside in (
        (f"after {moment}", lambda t: t > moment),
        (f"since {moment}", lambda t: t >= moment),
        (f"before {moment}", lambda t: t < moment),
        (f"until {moment}", lambda t: t <= moment),
        (f"at {moment}", lambda t: t == moment),
        (f"between {moment} and {end}", lambda t: moment <= t <= end),
        (f"on {moment.date()}", lambda t: t.date() == moment.date()),
        (f"after {moment.date()}", lambda t: t.date() > moment.date()),
    ):
        assert answered(folded, words) == [n for n, time in enumerate(times, 1) if inside(time)], words
