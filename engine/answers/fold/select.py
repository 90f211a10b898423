"""Rows that a restriction leaves, by the times and the order of the fold's index."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from engine.answers.fold.dates import NONE
from engine.answers.fold.fold import Fold, Rows
from engine.answers.fold.index import Restriction, Span, Window
from engine.answers.fold.moments import DAY, MINUTE, SECOND, Moment

Times = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_AROUND = {DAY: DAY, 60 * MINUTE: 30 * MINUTE, MINUTE: 5 * MINUTE}
"""How far around a moment of a unit reaches; five seconds around one of seconds."""


@dataclass(frozen=True)
class Selection:
    """``rows``: what is left, in order. ``count``: lines that fit before the order was applied."""

    rows: Rows
    count: int


def select(fold: Fold, rows: Rows, restriction: Restriction) -> Selection | None:
    """Which of ``rows`` (sorted) a question's words leave.

    ``None``: the log does not say what they ask for, as it has no times, or no dates. Nothing left is an answer too;
    but a date may also have been part of what the question looks for.
    """
    if restriction.window is not None:
        inside = within(fold, rows, restriction.window)
        if inside is None:
            return None
        rows = rows[inside]
    count = len(np.unique(fold.lines_of(rows)))
    order, take = restriction.order, restriction.take
    if order is not None and order > 0:
        rows = rows[order - 1 : order - 1 + take]
    elif order is not None:
        stop = len(rows) + order + 1
        rows = rows[max(0, stop - take) : max(0, stop)]
    return Selection(rows, count)


def within(fold: Fold, rows: Rows, window: Window | Span) -> Mask | None:
    """Which rows lie in a window of time; ``None`` if the log does not say."""
    if not fold.kinds.any:
        return None
    times = fold.times_of(rows)
    low, high = fold.time_range
    inside: Mask = times != NONE
    if isinstance(window, Span):
        inside &= times >= high - window.length if window.from_end else times <= low + window.length
        return inside
    start, end = _as_said(fold, window.start), None if window.end is None else _as_said(fold, window.end)
    if start is None or (window.end is not None and end is None):
        return None
    inside &= (_dated if start.dated else _clock)(times, window, start, end, low, high)
    return inside


def _as_said(fold: Fold, moment: Moment) -> Moment | None:
    """Without what the log's lines do not say either; ``None`` if that is all."""
    if not fold.kinds.dated:
        return None if moment.clock is None else Moment(clock=moment.clock, unit=moment.unit)
    return moment if fold.kinds.with_year else replace(moment, year=None)


def _dated(times: Times, window: Window, start: Moment, end: Moment | None, low: int, high: int) -> Mask:
    """A date without a year is that of every year of the log."""
    out = np.zeros(len(times), np.bool_)
    first, last = (int(np.datetime64(t, "us").astype("datetime64[Y]").astype(np.int64)) + 1970 for t in (low, high))
    open_ended = window.relation in ("after", "since", "before", "until")
    years = [start.year] if start.year is not None else list(range(first, last + 1))
    if open_ended and len(years) > 1:
        # After Dec 30 in a log of a new year's night: the one within the log.
        years = [year for year in years if low <= _instant(start, year) <= high][:1] or years[:1]
    for year in years:
        begin = _instant(start, year)
        finish = None if end is None else _instant(end, end.year if end.year is not None else year)
        if finish is not None and end is not None and finish < begin:
            finish += DAY if (end.month, end.day) == (start.month, start.day) else 0
        out |= _inside(times, window, begin, start.unit, finish, DAY if end is None else end.unit)
    return out


def _clock(times: Times, window: Window, start: Moment, end: Moment | None, low: int, high: int) -> Mask:
    """A time of day: in a log of less than a day the one time that it can be, else that of every day."""
    assert start.clock is not None
    if high - low < DAY:
        begin = low // DAY * DAY + start.clock
        if begin + start.unit <= low and begin + DAY <= high:
            begin += DAY
        finish = None
        if end is not None and end.clock is not None:
            finish = begin + (end.clock - start.clock) % DAY
        return _inside(times, window, begin, start.unit, finish, DAY if end is None else end.unit)
    of_day = times % DAY
    if window.relation == "around" or (end is not None and end.clock is not None and end.clock < start.clock):
        # Over midnight: as distances from where it begins.
        reach = _AROUND.get(start.unit, 5 * SECOND)
        if end is None or end.clock is None:
            return (of_day - (start.clock - reach)) % DAY <= 2 * reach + start.unit
        return (of_day - start.clock) % DAY < (end.clock - start.clock) % DAY + SECOND
    finish = None if end is None else end.clock
    return _inside(of_day, window, start.clock, start.unit, finish, DAY if end is None else end.unit)


def _inside(times: Times, window: Window, begin: int, unit: int, finish: int | None, finish_unit: int) -> Mask:
    """14:02 as an end is its first second, a day as an end is all of it."""
    whole = unit == DAY
    match window.relation:
        case "at":
            return (times >= begin) & (times < begin + unit)
        case "after":
            return times >= begin + (DAY if whole else min(unit, SECOND))
        case "since":
            return times >= begin
        case "before":
            return times < begin
        case "until":
            return times < begin + (DAY if whole else min(unit, SECOND))
        case "around":
            reach = _AROUND.get(unit, 5 * SECOND)
            return (times >= begin - reach) & (times < begin + unit + reach)
        case "between":
            assert finish is not None
            return (times >= begin) & (times < finish + (DAY if finish_unit == DAY else min(finish_unit, SECOND)))


def _instant(moment: Moment, year: int | None) -> int:
    """Microseconds since 1970."""
    assert year is not None
    assert moment.month is not None
    assert moment.day is not None
    month = np.datetime64(year - 1970, "Y").astype("datetime64[M]") + np.timedelta64(moment.month - 1, "M")
    days = int(month.astype("datetime64[D]").astype(np.int64)) + moment.day - 1
    return days * DAY + (moment.clock or 0)
