"""Dates before a time of day, read for many places of a block at once, and numbers in digits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.answers.fold.page import Bytes, Mask, Positions

Numbers = npt.NDArray[np.int64]

NONE = np.iinfo(np.int64).min
"""The time of a row that has none."""
SECOND = 1_000_000
DAY = 86_400 * SECOND
BASE_YEAR = 2000
"""Year of a date written without one: a leap year, so that it holds every date."""

TIME, MONTH_DAY, DATE, UPTIME = 0, 1, 2, 3
"""What a stamp says: a time of day; with day and month; with the year too; seconds since a start, taken for no time."""

_DATES = (
    ("YYYY-MM-DD?", DATE),
    ("YYYY/MM/DD?", DATE),
    ("YYYY.MM.DD?", DATE),
    ("DD/bbb/YYYY?", DATE),
    ("DD-bbb-YYYY?", DATE),
    ("DD bbb YYYY?", DATE),
    ("D bbb YYYY?", DATE),
    ("bbb DD YYYY?", DATE),
    ("bbb DD, YYYY?", DATE),
    ("bbb dD?", MONTH_DAY),
    ("bbb D?", MONTH_DAY),
    ("DD.MM.YYYY?", DATE),
    ("MM/DD/YYYY?", DATE),
    ("M/DD/YYYY?", DATE),
    ("MM/D/YYYY?", DATE),
    ("M/D/YYYY?", DATE),
    ("DD/MM/YYYY?", DATE),
    ("yy/MM/DD?", DATE),
    ("YYYYMMDD?", DATE),
    ("lMMDD?", MONTH_DAY),
    ("MM-DD?", MONTH_DAY),
)
"""Dates that stand before a time: digits of year (yy: of this century), month and day (d: or a space), b: letters of
a month, l: a letter of klog, ?: one of ``_BETWEEN``."""
_BETWEEN = np.frombuffer(b" T:-_.,", np.uint8)


def _letters(words: tuple[str, ...]) -> Numbers:
    return np.array([int.from_bytes(word.encode(), "big") for word in words])


_MONTHS = _letters(("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"))
_WEEKDAYS = _letters(("mon", "tue", "wed", "thu", "fri", "sat", "sun"))
_MONTH_ORDER = np.argsort(_MONTHS)


def is_digit(b: Bytes, at: Positions) -> Mask:
    return (b[at] - 48) < 10  # smaller bytes wrap around


def number_at(b: Bytes, at: Positions, digits: int) -> Numbers:
    value = np.zeros(len(at), np.int64)
    for i in range(digits):
        value = value * 10 + (b[at + i].astype(np.int64) - 48)
    return value


def _word(b: Bytes, at: Positions) -> Numbers:
    """Three letters in lower case as one number."""
    one, two, three = (b[at + i].astype(np.int64) | 32 for i in range(3))
    return (one << 16) | (two << 8) | three


def _month(b: Bytes, at: Positions) -> Numbers:
    """Month whose abbreviation stands there, or 0."""
    words = _word(b, at)
    place = np.minimum(np.searchsorted(_MONTHS, words, sorter=_MONTH_ORDER), 11)
    found = _MONTH_ORDER[place]
    return np.where(_MONTHS[found] == words, found + 1, 0)


def dates_before(b: Bytes, times: Positions) -> tuple[Positions, Numbers, npt.NDArray[np.int8], Numbers]:
    """Where the date before each time begins, its days since 1970, its kind and the format's number (-1: no date)."""
    begins, days = times.copy(), np.zeros(len(times), np.int64)
    kinds, formats = np.full(len(times), TIME, np.int8), np.full(len(times), -1, np.int64)
    open_ = np.arange(len(times))
    for number, (pattern, kind) in enumerate(_DATES):
        if not len(open_):
            break
        start = times[open_] - len(pattern)
        alive = _matches(b, start, pattern)
        if not len(alive):
            continue
        at = start[alive]
        year, month, day = _fields(b, at, pattern)
        good = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31) & (year >= 1970) & (year <= 2199)
        alive, at = alive[good], at[good]
        which = open_[alive]
        # klog's letter is the level, which belongs to the message.
        begins[which], kinds[which], formats[which] = at + pattern.startswith("l"), kind, number
        days[which] = days_of(year[good], month[good], day[good])
        rest = np.ones(len(open_), np.bool_)
        rest[alive] = False
        open_ = open_[rest]
    dated = formats >= 0
    begins[dated] = _before_weekday(b, begins[dated])
    return begins, days, kinds, formats


def _matches(b: Bytes, start: Positions, pattern: str) -> Positions:
    """Which starts the pattern fits, by its separators first: they rule out most."""
    alive = np.arange(len(start))
    order = sorted(range(len(pattern)), key=lambda i: pattern[i] in "YyMDdb?")
    for i in order:
        byte = b[start[alive] + i]
        match pattern[i]:
            case "Y" | "y" | "M" | "D":
                fits = (byte - 48) < 10
            case "d":
                fits = ((byte - 48) < 10) | (byte == 32)
            case "b":
                fits = ((byte | 32) - 97) < 26
            case "l":
                fits = np.isin(byte, np.frombuffer(b"IWEF", np.uint8))
            case "?":
                fits = np.isin(byte, _BETWEEN)
            case separator:
                fits = byte == ord(separator)
        alive = alive[fits]
        if not len(alive):
            return alive
    before = b[start[alive] - 1]
    apart = ((before - 48) >= 10) & (((before | 32) - 97) >= 26)
    if pattern == "MM-DD?":
        apart &= before != ord("-")
    return alive[apart]


def _fields(b: Bytes, start: Positions, pattern: str) -> tuple[Numbers, Numbers, Numbers]:
    def digits(letter: str) -> Numbers:
        value = np.zeros(len(start), np.int64)
        for i, symbol in enumerate(pattern):
            if symbol in letter:
                byte = b[start + i].astype(np.int64)
                value = value * 10 + np.where(byte == 32, 0, byte - 48)
        return value

    if "Y" in pattern:
        year = digits("Y")
    else:
        year = digits("y") + 2000 if "y" in pattern else np.full(len(start), BASE_YEAR)
    month = _month(b, start + pattern.index("b")) if "b" in pattern else digits("M")
    return year, month, digits("Dd")


def days_of(year: Numbers, month: Numbers, day: Numbers) -> Numbers:
    """Days since 1970 of dates; the 31st of a shorter month is the first of the next."""
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    return months.astype("datetime64[D]").astype(np.int64) + day - 1


def _before_weekday(b: Bytes, begins: Positions) -> Positions:
    comma = b[begins - 2] == ord(",")
    at = begins - 4 - comma
    named = (b[begins - 1] == 32) & np.isin(_word(b, at), _WEEKDAYS) & (((b[at - 1] | 32) - 97) >= 26)
    return np.where(named, at, begins)
