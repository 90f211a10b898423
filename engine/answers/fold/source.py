"""A text as it is given, by line: any newlines, any length of line, any size.

A *line* is what an editor numbers (from 1), ended by LF, CR LF or CR. A *row* (from 0) is what is folded and read at
once: a line, or at most 4,096 characters of one that is longer. Only where every fourth kilobyte's first line begins
is kept, so that the index takes little beside the text even if its lines are empty.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from types import TracebackType

import numpy as np
import numpy.typing as npt

from engine.answers.fold.encoding import Encoding, Units, sniff, without_escapes
from engine.answers.fold.store import Given, Store, open_store

LONGEST = 4096
"""Characters of a row."""
BLOCK = 1 << 18
"""Bytes that are worked on at once: what numpy makes of them stays in the processor's cache."""
_PAGE = 4096
_NEWLINE = re.compile("\r\n|\n|\r")
_SNIFF = 1 << 16
_REACH = 1 << 16
"""Bytes that are read first to find where a line ends."""

OnBytes = Callable[[int, int], None]
"""Called with (bytes done, bytes in all); what it raises ends the work."""


@dataclass(frozen=True)
class Block:
    """Consecutive rows as UTF-8, each ended by ``\\n``, without ANSI sequences.

    ``further``: which of them go on with the row before, as windows of one line; sorted, counted from ``first``.
    """

    first: int
    count: int
    data: bytes
    further: npt.NDArray[np.int64]
    done: int
    """Bytes of the text up to the block's end."""


class Source:
    """Random access to the lines and rows of a text. Close it when done; it is a context manager.

    Thread-safe: nothing changes after opening but the store's file position.
    """

    def __init__(self, given: Given, on_bytes: OnBytes | None = None) -> None:
        """Opens a text and finds its lines, in one pass.

        Raises:
            RequestError: no such file, broken packed data, too many bytes.
            EngineError: the file cannot be read to its end.
        """
        self._store: Store = open_store(given)
        try:
            text = isinstance(given, str)
            head = b"" if text else self._store.read(0, min(_SNIFF, self._store.size))
            self.encoding = Encoding("utf-8", errors="surrogatepass") if text else sniff(head)
            self._page_starts, self._page_lines = array("Q"), array("Q")
            self._cut_starts, self._cut_rows, self._cut_lines = array("Q"), array("Q"), array("Q")
            self._block_starts, self._block_rows = array("Q"), array("Q")
            self.lines = 0
            self._index(on_bytes)
        except BaseException:
            self._store.close()
            raise

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._store.close()

    @property
    def size(self) -> int:
        """Bytes of the text, unpacked."""
        return self._store.size

    @property
    def rows(self) -> int:
        return self.lines + len(self._cut_rows)

    def line(self, number: int) -> str:
        """A line as it stands in the text, without its newline. ``number`` counts from 1.

        Raises:
            IndexError: no such line.
            EngineError: the file can no longer be read.
        """
        if not 1 <= number <= self.lines:
            raise IndexError(f"line {number} of {self.lines}")
        start, stop = self._line_span(number)
        return self._decode(start, stop)

    def row(self, number: int) -> str:
        """A row's text without ANSI sequences."""
        start, stop = self.row_span(number)
        return without_escapes(self._decode(start, stop))

    def row_bytes(self, number: int) -> bytes:
        """A row as it stands in its block, without the newline."""
        start, stop = self.row_span(number)
        return self.encoding.plain(self._store.read(start, stop)).rstrip(b"\n")

    def line_of(self, row: int) -> int:
        """The number of the line that a row is (part of)."""
        return row + 1 - bisect_right(self._cut_rows, row)

    def rows_of(self, line: int) -> range:
        """The rows of a line: one, or its windows."""
        first = line - 1 + bisect_left(self._cut_lines, line)
        return range(first, first + 1 + bisect_right(self._cut_lines, line) - bisect_left(self._cut_lines, line))

    def lines_of(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """``line_of`` of many rows."""
        cuts = np.asarray(self._cut_rows, np.int64)
        return rows + 1 - np.searchsorted(cuts, rows, "right")

    def blocks(self) -> Iterator[Block]:
        """The whole text in order."""
        spans = zip(pairwise([*self._block_starts, self.size]), pairwise([*self._block_rows, self.rows]), strict=True)
        for (start, stop), (first, last) in spans:
            raw = self._store.read(start, stop)
            a, b = bisect_left(self._cut_rows, first), bisect_left(self._cut_rows, last)
            further = np.asarray(self._cut_rows[a:b], np.int64) - first
            edges = [start, *(cut for cut in self._cut_starts[a:b] if cut > start), stop]
            pieces = [raw[p - start : q - start] for p, q in pairwise(edges)]
            data = b"".join(map(self._ended, pieces))
            yield Block(first, last - first, data, further, stop)

    def text(self) -> str:
        """All of it, its newlines as they are."""
        return self.encoding.decode(self._store.read(self.encoding.mark, self.size))

    def every_line(self) -> Iterator[str]:
        """All lines in order, as ``line`` gives them."""
        begun: list[str] = []
        for start, stop in pairwise([*self._block_starts, self.size]):
            first, *lines = _NEWLINE.split(self.encoding.decode(self._store.read(start, stop)))
            begun.append(first)
            if lines:
                yield "".join(begun)
                yield from lines[:-1]
                begun = [lines[-1]]
        if any(begun):
            yield "".join(begun)

    def row_span(self, number: int) -> tuple[int, int]:
        """Positions in the text of a row's first byte and behind its last one (its newline included)."""
        if not 0 <= number < self.rows:
            raise IndexError(f"row {number} of {self.rows}")
        line = self.line_of(number)
        a, b = bisect_left(self._cut_lines, line), bisect_right(self._cut_lines, line)
        if a == b:
            return self._line_span(line)
        # A window of a line that may be the whole file: only what lies around it is looked at.
        window = number - (line - 1 + a)
        start = self._cut_starts[a + window - 1] if window else self._line_start(line)
        return start, self._cut_starts[a + window] if a + window < b else self._line_end(start)

    def _ended(self, raw: bytes) -> bytes:
        """Rows of a block as they are folded, the last one with a newline too."""
        units = self.encoding.units(raw)
        whole = len(units) * self.encoding.unit == len(raw) and units[-1] in (10, 13)
        return self.encoding.plain(raw) + (b"" if whole else b"\n")

    def _decode(self, start: int, stop: int) -> str:
        text = self.encoding.decode(self._store.read(start, stop))
        return text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text.removesuffix("\r")

    def _line_span(self, line: int) -> tuple[int, int]:
        page = bisect_right(self._page_lines, line) - 1
        begin, skip = self._page_starts[page], line - self._page_lines[page]
        reach = self._page_starts[page + 1] - begin if page + 1 < len(self._page_starts) else _REACH
        reach = min(reach, _REACH)  # the page's last line may be endless, and is seldom the one asked for
        while True:
            stop = min(begin + reach, self.size)
            starts = self._starts(begin, stop)
            if len(starts) > skip or stop == self.size:
                first = begin if skip == 0 else begin + int(starts[skip - 1])
                return first, begin + int(starts[skip]) if len(starts) > skip else self.size
            reach *= 2

    def _line_start(self, line: int) -> int:
        """The first half of ``_line_span``, however long the line is."""
        page = bisect_right(self._page_lines, line) - 1
        begin, skip = self._page_starts[page], line - self._page_lines[page]
        if skip == 0:
            return begin
        return begin + int(self._starts(begin, min(begin + _PAGE, self.size))[skip - 1])

    def _line_end(self, start: int) -> int:
        """Where the line ends that holds ``start``, its newline included."""
        reach = _PAGE
        while True:
            stop = min(start + reach, self.size)
            starts = self._starts(start, stop)
            if len(starts) or stop == self.size:
                return start + int(starts[0]) if len(starts) else self.size
            reach *= 2

    def _starts(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        """Where lines begin behind a newline that begins before ``stop``: bytes from ``start``."""
        unit = self.encoding.unit
        raw = self._store.read(start, min(stop + unit, self.size))
        units = self.encoding.units(raw)
        return _behind_newlines(units, (stop - start) // unit) * unit

    def _index(self, on_bytes: OnBytes | None) -> None:
        """Fills the tables: pages, cuts of long lines, and blocks that end with a line or, inside one, with a cut."""
        start, inside, last_page = self.encoding.mark, False, -1
        while start < self.size:
            stop = min(start + BLOCK, self.size)
            behind = self._starts(start, stop) + start
            if stop == self.size:
                end = stop
            elif len(behind):
                end = int(behind[-1])
            else:
                end = -1  # the whole block lies in one line: it ends with its last window
            begins = behind[behind < (max(end, 0))]
            if not inside:
                begins = np.concatenate([np.array([start], np.int64), begins])
            self._block_starts.append(start)
            self._block_rows.append(self.rows - inside)
            edges = np.concatenate([begins, np.array([end if end >= 0 else stop], np.int64)])
            if inside:
                edges = np.concatenate([np.array([start], np.int64), edges])
            line = self.lines + (not inside)
            long = np.flatnonzero(np.diff(edges) > LONGEST)
            cut = start
            for i in long.tolist():
                cuts = self._cuts(int(edges[i]), int(edges[i + 1]))
                for cut in cuts:
                    self._cut_starts.append(cut)
                    self._cut_lines.append(line + i)
                    self._cut_rows.append(line + i - 1 + len(self._cut_rows) + 1)
            pages = begins // _PAGE
            fresh = np.diff(pages, prepend=last_page) != 0
            self._page_starts.frombytes(begins[fresh].astype(np.uint64).tobytes())
            numbers = np.arange(self.lines + 1, self.lines + 1 + len(begins), dtype=np.uint64)
            self._page_lines.frombytes(numbers[fresh].tobytes())
            last_page = int(pages[-1]) if len(pages) else last_page
            self.lines += len(begins)
            inside = end < 0
            start = end if end >= 0 else cut
            if on_bytes is not None:
                on_bytes(start, self.size)

    def _cuts(self, start: int, stop: int) -> list[int]:
        """Where the windows of a line, or of what a block holds of it, begin behind the first."""
        unit = self.encoding.unit
        tail = self.encoding.units(self._store.read(stop - 2 * unit, stop))
        stop -= unit * (2 if tail[-1] == 10 and tail[-2] == 13 else tail[-1] in (10, 13))
        cuts: list[int] = []
        while True:
            reach = min(start + 4 * LONGEST, stop)
            units = self.encoding.units(self._store.read(start, reach))
            at = _window(units, self.encoding)
            if at == len(units) and reach == stop:
                return cuts
            start += at * unit
            cuts.append(start)


def _behind_newlines(units: Units, count: int) -> npt.NDArray[np.int64]:
    """Positions behind each newline that ends within ``count`` units, or one unit later if it is CR LF."""
    feeds = units == 10
    returns = units == 13
    if returns.any():
        pair = returns[:-1] & feeds[1:]
        returns[:-1] &= ~pair
        feeds |= returns
    return np.flatnonzero(feeds[:count]).astype(np.int64) + 1


def _window(units: Units, encoding: Encoding) -> int:
    """Units of the first window: up to ``LONGEST`` characters, cut behind a space if its last quarter has one."""
    begins = np.flatnonzero(encoding.begins_character(units))
    if len(begins) <= LONGEST:
        return len(units)
    end = int(begins[LONGEST])
    low = int(begins[LONGEST * 3 // 4])
    spaces = np.flatnonzero(units[low:end] == 32)
    return low + int(spaces[-1]) + 1 if len(spaces) else end
