"""Times of log lines: found, read, and counted on where lines leave the year or day out."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.answers.fold.clock import Clock
from engine.answers.fold.dates import DATE, MONTH_DAY, NONE, TIME, UPTIME
from engine.answers.fold.page import PAD, Page
from engine.answers.fold.stamps import Stamps, find_stamps

EPOCH = datetime(1970, 1, 1)
MOMENT = datetime(2026, 11, 30, 16, 40, 50)


def stamps_of(*rows: str) -> tuple[Page, Stamps]:
    page = Page("".join(row + "\n" for row in rows).encode())
    return page, find_stamps(page)


def text_of(page: Page, stamps: Stamps, number: int) -> str:
    return page.bytes[stamps.starts[number] : stamps.ends[number]].tobytes().decode()


def time_of(stamps: Stamps, number: int) -> datetime:
    return EPOCH + timedelta(microseconds=int(stamps.times[number]))


FORMATS = [
    ("2026-11-30 16:40:50.834 UTC| [3565] LOG:  ready", DATE, 834_000),
    ("2026-11-30T16:40:50Z| stdout F started", DATE, 0),
    ("2026-11-30T16:40:50.123456789+09:00| a", DATE, 123_456),
    ("2026-11-30 16:40:50,123| INFO x", DATE, 123_000),
    ("2026-11-30 16:40:50+09| x", DATE, 0),
    ("2026/11/30 16:40:50| [error] 12#12: *1 open()", DATE, 0),
    ("2026.11.30 16:40:50| x", DATE, 0),
    ('127.0.0.1 - - |[30/Nov/2026:16:40:50 +0000]| "GET / HTTP/1.1"', DATE, 0),
    ("3457:C |30 Nov 2026 16:40:50.890| # Configuration loaded", DATE, 890_000),
    ("Nov 30 16:40:50| host sshd[12]: x", MONTH_DAY, 0),
    ("Mon Nov 30 16:40:50 2026| x", DATE, 0),
    ("[Mon Nov 30 16:40:50.123 2026]| [core:error]", DATE, 123_000),
    ("Mon, 30 Nov 2026 16:40:50 GMT| x", DATE, 0),
    ("11/30/2026 4:40:50 PM| x", DATE, 0),
    ("30/11/2026 16:40:50| x", DATE, 0),
    ("30.11.2026 16:40:50| x", DATE, 0),
    ("26/11/30 16:40:50| INFO x", DATE, 0),
    ("20261130-16:40:50|:606|Step", DATE, 0),
    ("11-30 16:40:50.811|  1702  2395 D Wifi", MONTH_DAY, 811_000),
    ("I|1130 16:40:50.123456|   12345 kubelet.go:123] x", MONTH_DAY, 123_456),
    ("16:40:50,123| INFO x", TIME, 123_000),
    ("[16:40:50]| x", TIME, 0),
    ("261130 164050| 148 INFO dfs", DATE, 0),
    ("1796056850| x", DATE, 0),
    ("- |1796056850| 2026.11.30 R02-M1", DATE, 0),
    ("1796056850.25| x", DATE, 250_000),
    ("1796056850123| x", DATE, 123_000),
    ("[   12.345678]| usb 1-1: new device", UPTIME, 0),
    ("web_1  | |2026-11-30 16:40:50| x", DATE, 0),
    ("[pod/shop/web] |2026-11-30T16:40:50Z| x", DATE, 0),
    ('{"time":"|2026-11-30T16:40:50Z|","msg":"x"}', DATE, 0),
    ("time=|2026-11-30T16:40:50Z| level=info", DATE, 0),
    ("2026-11-30 16:40| x", DATE, None),
]


@pytest.mark.parametrize(("marked", "kind", "part"), FORMATS)
def test_every_usual_way_to_write_a_time(marked: str, kind: int, part: int | None) -> None:
    if marked.startswith("web_1"):
        before, stamp, after = "web_1  | ", "2026-11-30 16:40:50", " x"
    else:
        pieces = marked.split("|")
        before, stamp, after = ("", *pieces) if len(pieces) == 2 else ("|".join(pieces[:-2]), *pieces[-2:])
        if marked.startswith("20261130"):
            before, stamp, after = "", "20261130-16:40:50", ":606|Step"
    page, stamps = stamps_of(before + stamp + after)
    assert text_of(page, stamps, 0) == stamp
    assert stamps.kinds[0] == kind
    if kind == UPTIME:
        assert stamps.times[0] == NONE
        return
    expected = MOMENT.replace(second=0) if part is None else MOMENT + timedelta(microseconds=part)
    if kind == MONTH_DAY:
        expected = expected.replace(year=2000)
    if kind == TIME:
        expected = EPOCH + (expected - datetime(2026, 11, 30))
    assert time_of(stamps, 0) == expected


@pytest.mark.parametrize(
    "row",
    [
        "plain text at 10:22 without a second",
        "port 22:33:44:55 refused",
        "address 00:1a:2b:3c:4d:5e joined",
        "2026-11-30 25:40:50 no such hour",
        "2026-11-30 no time",
        "127.0.0.1:8080 answered",
        "session time: 0:00:00.204",
        "x" * 120 + " 2026-11-30 16:40:50",
        "Nov 30th at noon",
        "123456789 is too short for seconds",
        "[ 12.34 ] is not the kernel",
    ],
)
def test_what_is_no_time(row: str) -> None:
    assert len(stamps_of(row)[1].rows) == 0


def test_a_date_in_a_message_is_no_stamp() -> None:
    dated = "Certificate for shop.example is valid until 2027-01-01 00:00:00"
    assert len(stamps_of(dated, *(f"line {n} of a log" for n in range(50)))[1].rows) == 0
    stamped = [f"2026-11-30 16:40:{n:02} up" for n in range(50)]
    page, stamps = stamps_of(*stamped, "   last seen at 2026-11-30 10:00:00", *stamped)
    assert stamps.rows.tolist() == [*range(50), *range(51, 101)]
    assert set(stamps.starts - page.starts[stamps.rows]) == {0}


def test_durations_in_a_log_without_times_are_none() -> None:
    rows = [f"worker {n} is idle" for n in range(40)] + ["worker 7 took 00:05:12 to finish"]
    assert len(stamps_of(*rows)[1].rows) == 0


@given(
    st.lists(
        st.datetimes(datetime(1971, 1, 1), datetime(2099, 12, 31)).map(lambda t: t.replace(microsecond=0)), min_size=1
    ),
    st.sampled_from(
        ["%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%d/%b/%Y:%H:%M:%S", "%a %b %d %H:%M:%S %Y", "%m/%d/%Y %I:%M:%S %p"]
    ),
)
def test_dates_are_read_like_the_standard_library_does(times: list[datetime], pattern: str) -> None:
    _, stamps = stamps_of(*(time.strftime(pattern) + " event" for time in times))
    assert [time_of(stamps, n) for n in range(len(times))] == times


def test_positions_are_within_rows() -> None:
    page, stamps = stamps_of("", "Nov 30 16:40:50", "", "16:40:50")
    assert (stamps.starts >= PAD).all()
    assert (stamps.ends <= page.ends[stamps.rows]).all()


def clocked(*rows: str, clock: Clock | None = None) -> list[str]:
    """Times as a log's clock says them."""
    _, stamps = stamps_of(*rows)
    times = (clock or Clock()).times(stamps, len(rows))
    assert times is not None
    return [str(np.datetime64(int(t), "us"))[:16] if t != NONE else "" for t in times]


def test_a_day_begins_after_midnight() -> None:
    assert clocked("23:58:00 a", "23:59:00 b", "00:01:00 c", "12:30:00 d", "00:02:00 e") == [
        "1970-01-01T23:58",
        "1970-01-01T23:59",
        "1970-01-02T00:01",
        "1970-01-02T12:30",
        "1970-01-03T00:02",
    ]


def test_rows_out_of_order_turn_no_day() -> None:
    assert clocked("10:00:05 a", "10:00:03 b", "10:00:06 c") == ["1970-01-01T10:00"] * 3
    assert clocked("23:59:59 a", "00:00:01 b", "23:59:58 late", "00:00:02 c") == [
        "1970-01-01T23:59",
        "1970-01-02T00:00",
        "1970-01-01T23:59",
        "1970-01-02T00:00",
    ]


def test_a_year_begins_after_december() -> None:
    rows = ("Dec 31 23:59:59 h", "Jan  1 00:00:01 h", "Feb 29 10:00:00 h", "Dec 30 10:00:00 h", "Jan  2 10:00:00 h")
    assert clocked(*rows) == [
        "2000-12-31T23:59",
        "2001-01-01T00:00",
        "2001-03-01T10:00",
        "2001-12-30T10:00",
        "2002-01-02T10:00",
    ]


def test_rows_without_a_time_have_that_of_the_row_before() -> None:
    assert clocked("start", "10:00:00 a", "  more", "", "10:05:00 b") == [
        "",
        "1970-01-01T10:00",
        "1970-01-01T10:00",
        "1970-01-01T10:00",
        "1970-01-01T10:05",
    ]


def test_the_clock_goes_on_over_blocks() -> None:
    clock = Clock()
    assert clocked("23:59:00 a", clock=clock) == ["1970-01-01T23:59"]
    assert clocked("no time", "00:01:00 b", clock=clock) == ["1970-01-01T23:59", "1970-01-02T00:01"]
    assert clocked("no time", clock=clock) == ["1970-01-02T00:01"]
    _, none = stamps_of("nothing here")
    assert Clock().times(none, 1) is None


@given(st.lists(st.integers(1, 11 * 3600), min_size=1, max_size=60), st.integers(0, 86_399))
def test_times_of_day_that_only_go_on_are_counted_on_exactly(steps: list[int], start: int) -> None:
    """Whatever hours they were written in, as long as no silence is longer than half a day."""
    moments = np.cumsum([start, *steps])
    rows = [str(timedelta(seconds=int(m % 86_400))).rjust(8, "0") + " tick" for m in moments]
    _, stamps = stamps_of(*rows)
    times = Clock().times(stamps, len(rows))
    assert times is not None
    assert (times // 1_000_000).tolist() == moments.tolist()
