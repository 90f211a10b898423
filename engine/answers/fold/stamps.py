"""Times that log lines begin with, found and read for a whole block at once.

A time of day is found by its colons; what stands before it is held against the ways to write a date. Times are what
the line says: a zone is taken off and not applied, as a question means the time that can be read there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.answers.fold.dates import (
    BASE_YEAR,
    DATE,
    DAY,
    MONTH_DAY,
    NONE,
    SECOND,
    UPTIME,
    Numbers,
    dates_before,
    days_of,
    is_digit,
    number_at,
)
from engine.answers.fold.page import DIGIT, WORD, Bytes, Mask, Page, Positions

HEAD = 100
"""Bytes of a row in which its stamp begins."""
_SHARE = 20
"""A way of writing times is the log's if one row in so many has it, or if it begins rows."""
_NEAR = 10
"""Of the rows with it, one in so many begins it about as far from the start; elsewhere it is part of a message."""

_BEFORE_TIME = np.frombuffer(b"\0\n [(<|\"'=T", np.uint8)
_OPEN = {ord("["): ord("]"), ord("("): ord(")"), ord("<"): ord(">")}
_ZONES = (
    b"UTC",
    b"GMT",
    b"CET",
    b"CEST",
    b"EST",
    b"EDT",
    b"CST",
    b"CDT",
    b"PST",
    b"PDT",
    b"KST",
    b"JST",
    b"IST",
    b"MSK",
)


@dataclass
class Stamps:
    """Stamps of a block, at most one a row, sorted. ``starts``, ``ends``: positions with brackets around. ``times``:
    microseconds since 1970 as written; ``NONE`` for an uptime. ``kinds``: TIME, MONTH_DAY, DATE or UPTIME."""

    rows: Positions
    starts: Positions
    ends: Positions
    times: Numbers
    kinds: npt.NDArray[np.int8]

    def take(self, keep: Mask) -> Stamps:
        return Stamps(self.rows[keep], self.starts[keep], self.ends[keep], self.times[keep], self.kinds[keep])


def find_stamps(page: Page) -> Stamps:
    """The time each row begins with, where it begins with one."""
    found, formats = _with_colons(page)
    bare = np.ones(page.rows, np.bool_)
    bare[found.rows] = False
    others = _without_colons(page, np.flatnonzero(bare))
    stamps = _merged([_usual(page, found, formats), *others])
    _widen(page.bytes, stamps)
    return stamps


def _merged(parts: list[Stamps]) -> Stamps:
    joined = Stamps(
        *(np.concatenate([getattr(p, name) for p in parts]) for name in ("rows", "starts", "ends", "times", "kinds"))
    )
    order = np.argsort(joined.rows, kind="stable")
    return Stamps(
        joined.rows[order], joined.starts[order], joined.ends[order], joined.times[order], joined.kinds[order]
    )


def _with_colons(page: Page) -> tuple[Stamps, Numbers]:
    """Each row's first time of day with a date before it, or with seconds; and the way in which it is written."""
    b = page.bytes
    colons = np.flatnonzero(b == 58)
    colons = colons[
        is_digit(b, colons - 1) & is_digit(b, colons + 1) & is_digit(b, colons + 2) & ~is_digit(b, colons + 3)
    ]
    two = is_digit(b, colons - 2)
    starts = colons - 1 - two
    rows = page.row_of(colons)
    before = b[starts - 1]
    hours = number_at(b, colons - 2, 2) * two + number_at(b, colons - 1, 1) * ~two
    minutes = number_at(b, colons + 1, 2)
    seconds = (b[colons + 3] == 58) & is_digit(b, colons + 4) & is_digit(b, colons + 5)
    valid = (hours < 24) & (minutes < 60) & (starts - page.starts[rows] <= HEAD) & (starts >= page.starts[rows])
    valid &= (before - 48 >= 10) & ((b[colons + 3] != 58) | seconds)
    starts, colons, rows, hours, minutes, seconds = (x[valid] for x in (starts, colons, rows, hours, minutes, seconds))
    begins, days, kinds, formats = dates_before(b, starts)
    lone = formats < 0
    valid = ~lone | (seconds & (colons - starts == 2) & np.isin(b[starts - 1], _BEFORE_TIME) & (b[colons + 6] != 58))
    valid &= begins >= page.starts[rows]
    first = np.flatnonzero(valid)
    first = first[np.diff(rows[first], prepend=-1) != 0]
    starts, colons, rows, hours, minutes, seconds, begins, days, kinds, formats = (
        x[first] for x in (starts, colons, rows, hours, minutes, seconds, begins, days, kinds, formats)
    )
    ends, times = _clock(b, colons, hours, minutes, seconds)
    ends, days, kinds = _year_behind(b, ends, days, kinds)
    return Stamps(rows, begins, _zone(b, ends), days * DAY + times, kinds), formats


def _clock(
    b: Bytes,
    colons: Positions,
    hours: Numbers,
    minutes: Numbers,
    seconds: Mask,
) -> tuple[Positions, Numbers]:
    """Ends of the times of day, and their microseconds."""
    ends = colons + 3 + 3 * seconds
    value = (hours * 60 + minutes) * 60 + number_at(b, colons + 4, 2) * seconds
    value *= SECOND
    mark = b[ends]
    going = seconds & ((mark == ord(".")) | (mark == ord(","))) & is_digit(b, ends + 1)
    ends = ends + going
    scale = SECOND
    for _ in range(9):
        going = going & is_digit(b, ends)
        if not going.any():
            break
        scale //= 10
        value += going * scale * (b[ends].astype(np.int64) - 48)
        ends = ends + going
    gap = b[ends] == 32
    letter = b[ends + gap] | 32
    half = ((letter == ord("a")) | (letter == ord("p"))) & ((b[ends + gap + 1] | 32) == ord("m"))
    half &= ((b[ends + gap + 2] | 32) - 97 >= 26) & (hours >= 1) & (hours <= 12)
    shift = np.where(letter == ord("p"), 12, 0) - np.where(hours == 12, 12, 0)
    return ends + half * (gap + 2), value + half * shift * 3600 * SECOND


def _year_behind(
    b: Bytes, ends: Positions, days: Numbers, kinds: npt.NDArray[np.int8]
) -> tuple[Positions, Numbers, npt.NDArray[np.int8]]:
    """The year of C's asctime: Mon Nov 30 16:40:50 2026."""
    has = (kinds == MONTH_DAY) & (b[ends] == 32) & ~is_digit(b, ends + 5)
    for i in range(1, 5):
        has &= is_digit(b, ends + i)
    year = number_at(b, ends + 1, 4)
    has &= (year >= 1970) & (year < 2200)
    date = (days.astype("datetime64[D]")).astype("datetime64[M]")
    day = days - date.astype("datetime64[D]").astype(np.int64) + 1
    month = date.astype(np.int64) % 12 + 1
    days = np.where(has, days_of(np.where(has, year, BASE_YEAR), month, day), days)
    return ends + 5 * has, days, np.where(has, DATE, kinds).astype(np.int8)


def _zone(b: Bytes, ends: Positions) -> Positions:
    """Behind the zone that follows a time: Z, +0900, +09:00, +09, UTC and the like."""
    zulu = (b[ends] == ord("Z")) & (((b[ends + 1] | 32) - 97) >= 26)
    gap = b[ends] == 32
    at = ends + gap
    sign = ((b[at] == ord("+")) | (b[at] == ord("-"))) & is_digit(b, at + 1) & is_digit(b, at + 2)
    colon = b[at + 3] == 58
    four = sign & is_digit(b, at + 3 + colon) & is_digit(b, at + 4 + colon) & ~is_digit(b, at + 5 + colon)
    short = sign & ~four & ~gap & ~colon & ~is_digit(b, at + 3)
    out: Positions = ends + zulu
    out = np.where(four, at + 5 + colon, np.where(short, at + 3, out))
    for zone in _ZONES:
        open_ = np.flatnonzero((b[at] == zone[0]) & (out == ends))
        named = np.ones(len(open_), np.bool_)
        for i, letter in enumerate(zone):
            named &= b[at[open_] + i] == letter
        named &= ((b[at[open_] + len(zone)] | 32) - 97) >= 26
        out[open_] = np.where(named, at[open_] + len(zone), out[open_])
    return out


def _usual(page: Page, found: Stamps, formats: Numbers) -> Stamps:
    """Without what is rather part of a message: see ``_SHARE`` and ``_NEAR``."""
    keep = np.zeros(len(formats), np.bool_)
    offsets = found.starts - page.starts[found.rows]
    for number in np.unique(formats).tolist():
        mine = formats == number
        count = int(mine.sum())
        leads = mine & (offsets <= 1)
        places = np.bincount(offsets[mine] >> 3, minlength=1)
        near = np.convolve(places, [1, 1, 1], "same")
        usual = mine & (near[np.minimum(offsets >> 3, len(near) - 1)] * _NEAR >= count)
        if number < 0:
            keep |= usual if count * _SHARE >= page.rows * 5 else np.zeros_like(mine)
        elif count * _SHARE >= page.rows:
            keep |= usual
        else:
            keep |= leads
    return found.take(keep)


def _widen(b: Bytes, stamps: Stamps) -> None:
    """Takes in brackets around a stamp."""
    for opening, closing in _OPEN.items():
        around = (b[stamps.starts - 1] == opening) & (b[stamps.ends] == closing)
        stamps.starts -= around
        stamps.ends += around


def _without_colons(page: Page, rows: Positions) -> list[Stamps]:
    """Rows that begin with seconds since 1970, HDFS's ``081109 203615`` or the kernel's ``[   12.345678]``."""
    b = page.bytes
    starts = page.starts[rows]
    rows, starts = rows[ok := is_digit(b, starts) | np.isin(b[starts], np.frombuffer(b"[-", np.uint8))], starts[ok]
    return [_epoch(page, rows, starts), _compact(page, rows, starts), _uptime(page, rows, starts)]


def _epoch(page: Page, rows: Positions, starts: Positions) -> Stamps:
    b = page.bytes
    starts = starts + 2 * ((b[starts] == ord("-")) & (b[starts + 1] == 32)) + (b[starts] == ord("["))
    ok = np.ones(len(rows), np.bool_)
    for i in range(10):
        ok &= is_digit(b, starts + i)
    millis = ok & is_digit(b, starts + 10) & is_digit(b, starts + 11) & is_digit(b, starts + 12)
    ends = starts + 10 + 3 * millis
    ok &= (page.classes[ends] & (WORD | DIGIT)) == 0
    value = number_at(b, starts, 10)
    ok &= (value >= 946_684_800) & (value < 4_102_444_800)
    times = value * SECOND + millis * number_at(b, starts + 10, 3) * 1000
    going = ok & ~millis & (b[ends] == ord(".")) & is_digit(b, ends + 1)
    ends = ends + going
    scale = SECOND
    for _ in range(9):
        going = going & is_digit(b, ends)
        scale //= 10
        times += going * scale * (b[ends].astype(np.int64) - 48)
        ends = ends + going
    return Stamps(rows, starts, ends, times, np.full(len(rows), DATE, np.int8)).take(ok)


def _compact(page: Page, rows: Positions, starts: Positions) -> Stamps:
    b = page.bytes
    ok = b[starts + 6] == 32
    for i in (*range(6), *range(7, 13)):
        ok &= is_digit(b, starts + i)
    ok &= b[starts + 13] == 32
    rows, starts = rows[ok], starts[ok]
    year, month, day, hour, minute, second = (number_at(b, starts + at, 2) for at in (0, 2, 4, 7, 9, 11))
    ok = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31) & (hour < 24) & (minute < 60) & (second < 61)
    month = np.clip(month, 1, 12)
    times = days_of(year + 2000, month, day) * DAY + ((hour * 60 + minute) * 60 + second) * SECOND
    return Stamps(rows, starts, starts + 13, times, np.full(len(rows), DATE, np.int8)).take(ok)


def _uptime(page: Page, rows: Positions, starts: Positions) -> Stamps:
    b = page.bytes
    rows, starts = rows[ok := b[starts] == ord("[")], starts[ok]
    at = starts + 1
    for _ in range(12):
        at = at + (b[at] == 32)
    digits = at
    for _ in range(9):
        at = at + is_digit(b, at)
    ok = (at > digits) & (b[at] == ord("."))
    for i in range(1, 7):
        ok &= is_digit(b, at + i)
    ok &= b[at + 7] == ord("]")
    return Stamps(rows, starts, at + 8, np.full(len(rows), NONE), np.full(len(rows), UPTIME, np.int8)).take(ok)
