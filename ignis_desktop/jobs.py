"""Long work beside the window: it tells how far it is, can be cancelled, and ends with the program."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal

from engine.answers.asking import CancelledError
from engine.messages import EngineError

log = logging.getLogger(__name__)

WORKERS = 4
TELL_SECONDS = 0.05
"""How often a job's progress may reach the window: 20 a second."""


class Job(QObject):
    """One piece of work: ``progressed``*, then exactly one ``done`` or ``failed`` in the window's thread.

    A cancelled job ends with ``failed`` and an error whose code is "cancelled".
    """

    progressed = Signal(object, object)
    """Units done, units in all; Python's whole numbers, since bytes may be more than Qt's hold."""
    done = Signal(object)
    failed = Signal(object)
    """``EngineError``"""
    _ended = Signal(object, object)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.cancelled = False
        self._told = 0.0
        self._ended.connect(self._deliver, Qt.ConnectionType.QueuedConnection)

    def cancel(self) -> None:
        """From any thread. The work ends where it next looks."""
        self.cancelled = True

    def tell(self, done: int, total: int) -> None:
        """For the work, in its thread: how far it is. Raises ``CancelledError`` when nobody wants it any more."""
        if self.cancelled:
            raise CancelledError("Cancelled.", code="cancelled")
        now = time.monotonic()
        if now - self._told >= TELL_SECONDS or done >= total:
            self._told = now
            self.progressed.emit(done, total)

    def run(self, work: Callable[[Job], Any]) -> None:
        """In the pool."""
        try:
            self.tell(0, 1)
            result = work(self)
        except EngineError as error:
            self._ended.emit(None, error)
        except Exception as error:
            log.exception("work beside the window")
            self._ended.emit(None, EngineError(f"{type(error).__name__}: {error}"))
        else:
            self._ended.emit(result, None)

    def _deliver(self, result: object, error: EngineError | None) -> None:
        if error is None:
            self.done.emit(result)
        else:
            self.failed.emit(error)
        self.deleteLater()


class Jobs:
    """Starts jobs, some at a time."""

    def __init__(self, owner: QObject) -> None:
        self._owner = owner
        self._pool = ThreadPoolExecutor(max_workers=WORKERS, thread_name_prefix="work")
        self._open: set[Job] = set()

    def start(self, work: Callable[[Job], Any]) -> Job:
        job = Job(self._owner)
        self._open.add(job)
        for ended in (job.done, job.failed):
            ended.connect(lambda _value, job=job: self._open.discard(job))
        self._pool.submit(job.run, work)
        return job

    def warm(self) -> None:
        """Starts every thread now; otherwise each starts when it is first needed."""
        barrier = threading.Barrier(WORKERS + 1)
        for _ in range(WORKERS):
            self._pool.submit(barrier.wait)
        barrier.wait()

    def close(self) -> None:
        """Cancels what runs and waits for it."""
        for job in self._open:
            job.cancel()
        self._pool.shutdown(wait=True, cancel_futures=True)
