"""The live request log: what was asked of the server, without prompts, answers or keys."""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class RequestRecord:
    """One HTTP request. Read it from any thread."""

    number: int
    """Counts up from 1; stays the same while the record changes from running to finished."""
    time: float
    """When it came in, seconds since 1970."""
    method: str
    path: str
    client: str
    status: int | None = None
    """None while it is running."""
    milliseconds: float | None = None
    request_class: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    tokens_per_second: float = 0.0
    """Generated, all answers of the request together, from their first token to their last; 0 where nothing was."""
    error: str = ""
    """The error's code; never its message, which may quote what was sent."""


class RequestLog:
    """Bounded ring of finished requests, and those that are running."""

    def __init__(self, size: int = 1000) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._running: dict[int, RequestRecord] = {}
        self._finished: deque[RequestRecord] = deque(maxlen=size)
        self._version = 0

    @property
    def version(self) -> int:
        """Changes whenever ``records`` does: a reader that polls compares it first."""
        return self._version

    def records(self) -> tuple[RequestRecord, ...]:
        """All records, oldest first; the running ones carry no status yet."""
        with self._lock:
            return tuple(sorted((*self._finished, *self._running.values()), key=lambda record: record.number))

    def clear(self) -> None:
        """Forget the finished ones."""
        with self._lock:
            self._finished.clear()
            self._version += 1

    def begin(self, method: str, path: str, client: str) -> OpenRecord:
        record = RequestRecord(next(self._numbers), time.time(), method, path, client)
        with self._lock:
            self._running[record.number] = record
            self._version += 1
        return OpenRecord(self, record)

    def _update(self, record: RequestRecord) -> None:
        with self._lock:
            if record.status is None:
                self._running[record.number] = record
            else:
                self._running.pop(record.number, None)
                self._finished.append(record)
            self._version += 1


class OpenRecord:
    """A running request's record, filled in by whoever handles the request."""

    def __init__(self, log: RequestLog, record: RequestRecord) -> None:
        self._log = log
        self._record = record
        self._began = time.perf_counter()

    def note(self, **fields: Any) -> None:
        """Set fields of the record, for instance ``request_class`` or token counts."""
        self._record = replace(self._record, **fields)
        self._log._update(self._record)

    def finish(self, status: int) -> RequestRecord:
        milliseconds = (time.perf_counter() - self._began) * 1000
        self._record = replace(self._record, status=status, milliseconds=milliseconds)
        self._log._update(self._record)
        return self._record
