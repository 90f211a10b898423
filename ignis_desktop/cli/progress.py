"""Progress of long work: one line on standard error with rate and time left, on terminals only."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ignis_desktop.cli.session import Session

POLL_SECONDS = 0.2


class ProgressLine:
    """A line that is redrawn, and gone once left. On anything but a terminal it draws nothing."""

    def __init__(self) -> None:
        self._progress: Any = None
        self._task: Any = None
        self._what = ""
        self.visible = sys.stderr.isatty()

    def show(self, what: str, done: float, total: float | None, unit: str = "") -> None:
        """``what`` is being done, ``done`` of ``total`` so far (None: how much is not known)."""
        if not self.visible:
            return
        if self._progress is None:
            self._progress = _rich_progress()
            self._progress.start()
        if what != self._what:
            if self._task is not None:
                self._progress.remove_task(self._task)
            self._task = self._progress.add_task(what, total=total, unit=unit)
            self._what = what
        self._progress.update(self._task, completed=done, total=total)

    def clear(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
            self._task = None
            self._what = ""


def _rich_progress() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Amount(ProgressColumn):
        """Done / total and rate, for work that has a unit; a share for work that has none."""

        def render(self, task: Task) -> Text:
            if task.total is None:
                return Text("")
            unit = task.fields["unit"]
            if not unit:
                return Text(f"{task.percentage:.0f} %")
            rate = f"  {task.speed:,.0f} {unit}/s" if task.speed else ""
            return Text(f"{task.completed:,.0f}/{task.total:,.0f} {unit}{rate}")

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        Amount(),
        TimeRemainingColumn(compact=True),
        console=Console(stderr=True),
        transient=True,
    )


class PrefillWatch:
    """Shows how much of this process's prompt the engine has read, from what ``/v1/engine`` says of the lanes."""

    def __init__(self, session: Session, line: ProgressLine) -> None:
        self._session = session
        self._line = line
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="prefill-watch", daemon=True)

    def start(self) -> None:
        if self._line.visible:
            self._thread.start()

    def stop(self) -> None:
        """Idempotent; the line is gone afterwards."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._line.clear()

    def _run(self) -> None:
        while not self._stop.wait(POLL_SECONDS):
            try:
                state = self._session.engine_state()
            except Exception:
                return
            for lane in state.get("lanes", ()):
                if self._session.name in str(lane.get("client", "")) and lane.get("state") == "prefill":
                    total = lane.get("prompt_tokens") or None
                    if not self._stop.is_set():
                        self._line.show("Reading", lane.get("prefilled", 0), total, "tokens")


@contextmanager
def prefill_shown(session: Session) -> Iterator[PrefillWatch]:
    """Prefill progress while the block runs, or until ``stop()``."""
    watch = PrefillWatch(session, ProgressLine())
    watch.start()
    try:
        yield watch
    finally:
        watch.stop()
