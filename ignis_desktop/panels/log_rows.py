"""Which rows of a log the view shows: all, or those of a template."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.messages import EngineError
from ignis_desktop.log_file import LogFile, Rows


class ShownRows:
    """What ``LogView`` draws. ``rows``: rows of the log; None for all of them."""

    def __init__(self, log: LogFile, rows: Rows | None, on_fault: Callable[[EngineError], None]) -> None:
        self.log = log
        self.rows = rows
        self._on_fault = on_fault

    def __len__(self) -> int:
        return self.log.rows if self.rows is None else len(self.rows)

    @property
    def last_number(self) -> int:
        return self.log.lines

    def text(self, row: int) -> str:
        """A file that can no longer be read is reported, and its rows are empty."""
        try:
            return self.log.row(self.in_log(row))
        except EngineError as error:
            self._on_fault(error)
            return ""

    def number(self, row: int) -> int | None:
        place = self.in_log(row)
        return self.log.line_of(place) if self.rows is not None or self.log.begins_line(place) else None

    def in_log(self, row: int) -> int:
        """The log's row that stands in a row of the view."""
        return row if self.rows is None else int(self.rows[row])

    def place_of(self, row: int) -> int | None:
        """Where a row of the log is shown; None where it is not."""
        if self.rows is None:
            return row
        place = int(np.searchsorted(self.rows, row))
        return place if place < len(self.rows) and self.rows[place] == row else None

    def places_of(self, rows: Rows) -> Rows:
        """Where those of some sorted rows that are shown are."""
        if self.rows is None:
            return rows
        places = np.searchsorted(self.rows, rows)
        inside = places < len(self.rows)
        inside[inside] = self.rows[places[inside]] == rows[inside]
        return places[inside]
