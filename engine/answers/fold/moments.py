"""Times as people write them in a question: 14:02, 2 pm, Mar 1, 2026-03-01 14:02:33.

A moment knows what was said and no more: yesterday and Monday are not guessed, nor is a missing year.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = r"(?:3[01]|[12]\d|0?[1-9])"
_NTH = rf"{_DAY}(?:st|nd|rd|th)?"
_HALF = r"(?:[ap]\.?m\b\.?)"

_CLOCK = rf"""(?:
    (?<![\d.:]) (?P<hour>[01]?\d|2[0-3]) : (?P<minute>[0-5]\d)
        (?: : (?P<second>[0-5]\d) (?:[.,] (?P<part>\d{{1,9}}))? )? (?![\d:])
        (?:\s?(?P<half>{_HALF}))? (?:\s?(?:z|utc|gmt)\b)?
  | (?<![\d.:]) (?P<hour12>1[0-2]|0?[1-9]) \s? (?: (?P<half12>{_HALF}) | o['’]?clock\b )
  | \b (?P<word>noon|midday|midnight) \b
)"""
_DATE = rf"""(?:
    (?<![\w.:/-]) (?P<y1>(?:19|20)\d\d) (?P<sep>[-/.]) (?P<m1>1[0-2]|0?[1-9]) (?P=sep) (?P<d1>{_DAY}) (?![\w/-]|\.\d)
        (?:(?=.)|$)
  | (?<![\w.:/-]) (?P<d2>{_NTH}) (?:\s(?:of\s)?|[/-]) (?P<m2>{_MONTH}) (?:,?[\s/-](?P<y2>(?:19|20)\d\d)\b)?
  | \b (?P<m3>{_MONTH}) \s{{1,2}} (?:the\s)? (?P<d3>{_NTH}) (?![\w:]|[.,]\d) (?:,?\s(?P<y3>(?:19|20)\d\d)\b)?
  | (?<![\w.:/-]) (?P<d4>{_DAY}) \. (?P<m4>1[0-2]|0?[1-9]) \. (?P<y4>(?:19|20)\d\d) (?![\w.])
  | (?<![\w.:/-]) (?P<a5>{_DAY}) / (?P<b5>{_DAY}) / (?P<y5>(?:19|20)\d\d) (?![\w/])
)"""


def _plain(pattern: str) -> str:
    """Without the names of its groups, to stand in another pattern."""
    return re.sub(r"\(\?P<\w+>", "(?:", pattern).replace("(?P=sep)", "[-/.]")


_FLAGS = re.IGNORECASE | re.VERBOSE
_ISO_T = re.compile(r"(?<=\d)T(?=\d\d:\d\d)")
_CLF = re.compile(r"(?<=/(?:19|20)\d\d):(?=\d\d:\d\d)")
_WEEKDAY = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?,?\s)?"
_CLOCK_RE, _DATE_RE = re.compile(_CLOCK, _FLAGS), re.compile(_DATE, _FLAGS)
MOMENT = (
    rf"(?:{_WEEKDAY}{_plain(_DATE)}(?:(?:,|\sat|,\sat)?\s{_plain(_CLOCK)})?"
    rf"|{_plain(_CLOCK)}(?:(?:,|\son|,\son|\sof)?\s(?:the\s)?{_WEEKDAY}{_plain(_DATE)})?)"
)
"""A pattern (verbose, any case) for a moment in a text that ``straightened`` has been through."""


@dataclass(frozen=True)
class Moment:
    """``clock``: microseconds of the day. ``unit``: microseconds of what is named, a day down to a fraction of a
    second: 14:02 is a minute long. What was not said is ``None``."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    clock: int | None = None
    unit: int = DAY

    @property
    def dated(self) -> bool:
        return self.day is not None

    def on(self, other: Moment) -> Moment:
        """With the other's date if it has none of its own."""
        return self if self.dated else replace(self, year=other.year, month=other.month, day=other.day)


def straightened(text: str) -> str:
    """Log formats that glue date and time together, taken apart; of the same length."""
    return _CLF.sub(" ", _ISO_T.sub(" ", text))


def read_moment(text: str) -> Moment | None:
    """The moment that a match of ``MOMENT`` says; ``None`` for a date or month that there is not."""
    date, clock = _DATE_RE.search(text), None
    rest = text if date is None else text[: date.start()] + " " * len(date.group()) + text[date.end() :]
    clock = _CLOCK_RE.search(rest)
    moment = Moment()
    if date is not None:
        found = _date(date)
        if found is None:
            return None
        moment = found
    if clock is not None:
        at = _clock(clock)
        if at is None:
            return None
        moment = replace(moment, clock=at[0], unit=at[1])
    return moment if moment.dated or moment.clock is not None else None


def _date(match: re.Match[str]) -> Moment | None:
    def number(name: str) -> int | None:
        value = match[name]
        return int(re.sub(r"\D", "", value)) if value else None

    for y, m, d in (("y1", "m1", "d1"), ("y2", "m2", "d2"), ("y3", "m3", "d3"), ("y4", "m4", "d4")):
        if match[d]:
            name = match[m]
            if name[0].isalpha():
                if name == "may":  # the verb
                    return None
                month = _MONTHS.index(name[:3].lower()) + 1
            else:
                month = int(name)
            return _checked(number(y), month, number(d))
    first, second = number("a5"), number("b5")
    assert first is not None
    assert second is not None
    # Month first, as in most logs written so, unless that cannot be.
    return _checked(number("y5"), second, first) if first > 12 else _checked(number("y5"), first, second)


def _checked(year: int | None, month: int, day: int | None) -> Moment | None:
    if day is None or month > 12:
        return None
    leap = year is None or (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0))
    longest = 30 if month in (4, 6, 9, 11) else 28 + leap if month == 2 else 31
    return Moment(year, month, day) if day <= longest else None


def _clock(match: re.Match[str]) -> tuple[int, int] | None:
    """Microseconds of the day and of the unit."""
    if match["word"]:
        return (0 if match["word"].lower() == "midnight" else 12 * HOUR), MINUTE
    if match["hour12"]:
        half = match["half12"]
        return _hour(int(match["hour12"]), half) * HOUR, HOUR
    hour, half = int(match["hour"]), match["half"]
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = _hour(hour, half)
    value, unit = hour * HOUR + int(match["minute"]) * MINUTE, MINUTE
    if match["second"]:
        value, unit = value + int(match["second"]) * SECOND, SECOND
    if match["part"]:
        digits = match["part"][:6]
        unit = 10 ** (6 - len(digits))
        value += int(digits) * unit
    return value, unit


def _hour(hour: int, half: str | None) -> int:
    if half is None:
        return hour
    return hour % 12 + (12 if half[0] in "pP" else 0)
