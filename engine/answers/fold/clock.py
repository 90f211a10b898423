"""Times of a log in its order: years and days that its lines leave out are counted on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.answers.fold.dates import DATE, DAY, MONTH_DAY, NONE, TIME, UPTIME
from engine.answers.fold.stamps import Stamps

_YEAR = 366 * DAY
_HALF_DAY, _LATE = 12 * 3_600_000_000, 23 * 3_600_000_000


@dataclass
class Kinds:
    """How many rows say what of their time."""

    times: int = 0
    month_days: int = 0
    dates: int = 0

    @property
    def any(self) -> bool:
        return self.times + self.month_days + self.dates > 0

    @property
    def dated(self) -> bool:
        """Whether the log says days, not just times of day."""
        return self.month_days + self.dates > self.times

    @property
    def with_year(self) -> bool:
        return self.dates > self.month_days


class Clock:
    """Makes times of a log's stamps, block by block.

    A time of day more than twelve hours earlier than the one before is of the next day; a date without a year more
    than half a year earlier is of the next year, counted from 2000. Smaller steps back are rows out of order. A row
    without a stamp has the time of the row before.
    """

    def __init__(self) -> None:
        self.kinds = Kinds()
        self._last = NONE
        self._time_of_day, self._days = NONE, 0
        self._date, self._years = NONE, 0

    def times(self, stamps: Stamps, rows: int) -> npt.NDArray[np.int64] | None:
        """Microseconds since 1970 of each of a block's rows, ``NONE`` before the log's first; ``None``: of no row."""
        kinds, times = stamps.kinds, stamps.times.copy()
        of_day, of_year = kinds == TIME, kinds == MONTH_DAY
        self.kinds.times += int(np.count_nonzero(of_day))
        self.kinds.month_days += int(np.count_nonzero(of_year))
        self.kinds.dates += int(np.count_nonzero(kinds == DATE))
        times[of_day] = self._with_days(times[of_day])
        times[of_year] = self._with_years(times[of_year])
        known = kinds != UPTIME
        at, times = stamps.rows[known], times[known]
        if not len(at) and self._last == NONE:
            return None
        out = np.full(rows, self._last)
        place = np.searchsorted(at, np.arange(rows), "right") - 1
        out[place >= 0] = times[place[place >= 0]]
        self._last = int(out[-1])
        return out

    def _with_days(self, times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        if not len(times):
            return times
        steps = np.diff(times, prepend=times[0] if self._time_of_day == NONE else self._time_of_day)
        turns = (steps < -_HALF_DAY).astype(np.int64)
        back = steps > _LATE  # a row of yesterday evening among those of this morning
        days = self._days + np.cumsum(turns - back)
        days = np.maximum(days, 0)
        self._time_of_day, self._days = int(times[-1]), int(days[-1])
        return times + days * DAY

    def _with_years(self, times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        if not len(times):
            return times
        steps = np.diff(times, prepend=times[0] if self._date == NONE else self._date)
        turns = (steps < -_YEAR // 2).astype(np.int64)
        back = steps > _YEAR - 30 * DAY
        years = np.maximum(self._years + np.cumsum(turns - back), 0)
        self._date, self._years = int(times[-1]), int(years[-1])
        if not years.any():
            return times
        dates = times.astype("datetime64[us]")
        months = dates.astype("datetime64[M]")
        rest = dates - months
        out: npt.NDArray[np.int64] = ((months + 12 * years).astype("datetime64[us]") + rest).astype(np.int64)
        return out
