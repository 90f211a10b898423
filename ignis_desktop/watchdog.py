"""Notices when the window's thread does not answer, and writes what it was doing to the log."""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback

from PySide6.QtCore import QObject, QTimer

log = logging.getLogger(__name__)

BEAT_SECONDS = 0.05
STALL_SECONDS = 0.25
QUIET_SECONDS = 10.0
"""At most one stack in this time, so that a slow machine does not fill the disk."""


class StallWatchdog(QObject):
    """Lives in the window's thread. ``longest`` and ``count`` tell about stalls longer than ``STALL_SECONDS``."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.count = 0
        self.longest = 0.0
        self._beat = time.monotonic()
        self._watched = threading.get_ident()
        self._ended = threading.Event()
        self._timer = QTimer(self, interval=round(BEAT_SECONDS * 1000))
        self._timer.timeout.connect(self._on_beat)
        self._thread = threading.Thread(target=self._watch, name="stall-watchdog", daemon=True)

    def start(self) -> None:
        self._on_beat()
        self._timer.start()
        self._thread.start()

    def stop(self) -> None:
        self._timer.stop()
        self._ended.set()
        self._thread.join()

    def _on_beat(self) -> None:
        now = time.monotonic()
        self.longest = max(self.longest, now - self._beat - BEAT_SECONDS)
        self._beat = now

    def _watch(self) -> None:
        logged = -QUIET_SECONDS
        stalled = False
        before = time.monotonic()
        while not self._ended.wait(BEAT_SECONDS):
            now = time.monotonic()
            slept, before = now - before, now
            late = now - self._beat - BEAT_SECONDS
            if late < STALL_SECONDS:
                stalled = False
                continue
            # A machine that was asleep or starved stops this thread as well: nobody's fault.
            if stalled or slept > STALL_SECONDS:
                continue
            stalled = True
            self.count += 1
            if now - logged >= QUIET_SECONDS:
                logged = now
                frame = sys._current_frames().get(self._watched)
                stack = "".join(traceback.format_stack(frame)) if frame else "no Python frame\n"
                log.warning("the window has not answered for %.0f ms; it was here:\n%s", late * 1000, stack)
