"""How long a frame of the Lanes panel takes with eight busy lanes: python -m tests.window.lane_frames [PAGES]

Set QT_SCALE_FACTOR for other scales. A frame is a new snapshot, everything that follows from it, and the painting.
Processor time says what the panel costs, the clock also what else the machine was doing.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import torch  # noqa: F401 - before PySide6, as in ignis_desktop.app
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication, QWidget

from engine.messages import EngineSnapshot
from ignis_desktop.panels.lanes import LanesPanel
from ignis_desktop.widgets.theme import Theme
from ignis_desktop.widgets.toast import Toast
from tests.busy import LENGTH, busy

RATE = 30
_SIZE = (1112, 752)
"""Of the panel in a window of 1280 × 800, in logical pixels."""


class StillEngine(QObject):
    """Stands for the engine's thread: notes what the panel asks of it."""

    def __init__(self) -> None:
        super().__init__()
        self.live = False
        self.asked: list[tuple[str, str]] = []

    def set_live(self, on: bool) -> None:
        self.live = on

    def cancel(self, request: str) -> None:
        self.asked.append(("cancel", request))

    def park(self, request: str) -> None:
        self.asked.append(("park", request))


@dataclass(frozen=True)
class Times:
    """Milliseconds."""

    median: float
    late: float
    """99 of 100 take less."""
    worst: float

    @classmethod
    def of(cls, seconds: list[float]) -> Times:
        found = sorted(1000 * one for one in seconds)
        return cls(statistics.median(found), found[int(0.99 * len(found))], found[-1])

    def __str__(self) -> str:
        return f"median {self.median:.2f} ms, 99 % {self.late:.2f} ms, worst {self.worst:.2f} ms"


def all_busy(start: float, seconds: float, pages: int) -> Iterator[EngineSnapshot]:
    """The end of the script, with no lane free and a round's worth of news in every snapshot."""
    for step in range(round(seconds * RATE)):
        at = LENGTH - seconds + step / RATE
        now = busy(at, start=start, pages=pages)
        first = now.lanes[1]
        lanes = tuple(
            lane if lane.state != "idle" else replace(first, lane=lane.lane, request_id=f"more-{lane.lane}")
            for lane in now.lanes
        )
        yield replace(now, lanes=lanes)


def measure(app: QApplication, seconds: float, pages: int) -> tuple[Times, Times]:
    """(by processor time, by the clock) of frames of a panel that is shown: 30 a second of the script's time, made as
    fast as they can be."""
    holder = QWidget()
    panel = LanesPanel(StillEngine(), Toast(holder))  # type: ignore[arg-type]
    panel.resize(*_SIZE)
    panel.show()
    panel._timer.stop()  # the frames come from here
    start = 1000.0
    snapshots = list(all_busy(start, seconds, pages))
    used: list[float] = []
    taken: list[float] = []
    for number, snapshot in enumerate(snapshots):
        began, worked = time.perf_counter(), time.thread_time()
        panel.show_snapshot(snapshot)
        panel.frame(snapshot.time)
        app.processEvents()
        if number >= RATE:  # the first second draws everything for the first time
            taken.append(time.perf_counter() - began)
            used.append(time.thread_time() - worked)
    panel.close()
    panel.deleteLater()
    holder.deleteLater()
    return Times.of(used), Times.of(taken)


def main() -> None:
    app = QApplication(["frames"])
    Theme.of(app).apply("dark")
    pages = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
    scale = os.environ.get("QT_SCALE_FACTOR", "1")
    used, taken = measure(app, 30.0, pages)
    print(f"1280 × 800 at scale {scale}, 8 busy lanes, {pages:,} pages: {used}; by the clock {taken}")


if __name__ == "__main__":
    main()
