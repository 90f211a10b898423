"""What the Screen panel is about: one picture, its encoding, and the questions asked of it.

Everything long runs beside the window. A picture may be replaced at any time; what still runs for the one before ends
unseen.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QImage

from engine.messages import EngineError, EngineSnapshot
from ignis_desktop.engine_thread import EngineThread
from ignis_desktop.jobs import Job
from ignis_desktop.screen_picture import Picture, PointAnswer, Screen, open_file, open_pasted

_HISTORY = 200
"""Questions that are remembered."""

Stage = Literal["empty", "opening", "waiting", "encoding", "ready", "failed"]
"""empty: no picture; opening: a picture is captured or read; waiting: for the model to be loaded; encoding; ready to be
asked; failed: the picture could not be encoded (``fault`` says why)."""


@dataclass(eq=False)
class Asked:
    """One question. ``answer`` and ``fault`` are empty while it is being asked."""

    number: int
    question: str
    answer: PointAnswer | None = None
    fault: str = ""
    stale: bool = False
    """Whether it was asked of an earlier picture."""
    desktop: tuple[int, int] = (0, 0)
    """The answer's pixel on the desktop."""

    @property
    def waiting(self) -> bool:
        return self.answer is None and not self.fault


class ScreenSession(QObject):
    changed = Signal()
    """Anything but the picture."""
    picture_changed = Signal()
    opened = Signal()
    """Another picture was opened: nothing of the one before goes on."""
    said = Signal(str)
    """Something went wrong that changes nothing of what is shown."""

    def __init__(self, engine: EngineThread, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._numbers = itertools.count(1)
        self._screen: Screen | None = None
        self._opening: Job | None = None
        self._encoding: Job | None = None
        self._asking: dict[int, Job] = {}
        self._encoded_at = 0.0
        self.picture: Picture | None = None
        self.stage: Stage = "empty"
        self.fault = ""
        self.progress = (0, 0)
        self.encode_ms = 0.0
        self.asked: list[Asked] = []
        """The newest last."""
        self.shown: Asked | None = None
        engine.engine_replaced.connect(self._on_engine_replaced)

    # Pictures

    def open_file(self, path: Path) -> None:
        self._open(self._engine.jobs.start(lambda _job: open_file(path)))

    def open_pasted(self, name: str, image: QImage) -> None:
        self._open(self._engine.jobs.start(lambda _job: open_pasted(name, image)))

    def show(self, picture: Picture) -> None:
        """A new picture: encoded at once, nothing asked of it yet."""
        self._cancel_opening()
        self.asked, self.shown = [], None
        self._replace(picture)
        self.opened.emit()

    def renew(self, picture: Picture) -> None:
        """The same thing as it looks now: what was asked stays, and the answer that is shown is asked for again."""
        for asked in self.asked:
            asked.stale = True
        self._replace(picture)

    def move(self, picture: Picture) -> None:
        """The same picture at another place of the desktop."""
        self.picture = picture
        for asked in self.asked:
            if asked.answer is not None and not asked.stale:
                asked.desktop = picture.coordinates.desktop_pixel(*asked.answer.pixels)
        self.changed.emit()

    def _open(self, job: Job) -> None:
        self._cancel_opening()
        self._opening = job
        job.done.connect(lambda picture: self._opened(job, picture, ""))
        job.failed.connect(lambda error: self._opened(job, None, error.message))
        if self.picture is None:
            self.stage = "opening"
        self.changed.emit()

    def _opened(self, job: Job, picture: Picture | None, fault: str) -> None:
        if job is not self._opening:
            return
        self._opening = None
        if picture is not None:
            self.show(picture)
            return
        if self.picture is None:
            self.stage = "empty"
        self.said.emit(fault)
        self.changed.emit()

    def _cancel_opening(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None

    def _replace(self, picture: Picture) -> None:
        self._drop()
        self.picture = picture
        self.picture_changed.emit()
        self.encode()

    def close(self) -> None:
        """Ends what runs and frees the encoded picture; nothing begins any more."""
        self._cancel_opening()
        self._drop()
        self.picture, self.stage = None, "empty"

    def _drop(self) -> None:
        for job in (self._encoding, *self._asking.values()):
            if job is not None:
                job.cancel()
        self._encoding = None
        self._asking.clear()
        if self._screen is not None:
            self._screen.close()
            self._screen = None

    # Encoding

    @property
    def busy(self) -> bool:
        return self._encoding is not None or self._opening is not None or bool(self._asking)

    @property
    def seconds_since_read(self) -> float:
        return time.monotonic() - self._encoded_at

    def encode(self) -> None:
        """Has the model read the picture; waits for the model first where it is not loaded."""
        if self.picture is None:
            return
        if self._engine.snapshot.state != "ready":
            self._enter("waiting")
            return
        self.progress = (0, 0)
        job = self._encoding = self._engine.open_screen(self.picture.image)
        job.progressed.connect(lambda done, total: self._on_progress(job, done, total))
        job.done.connect(lambda screen: self._on_encoded(job, screen))
        job.failed.connect(lambda error: self._on_encoding_failed(job, error))
        self._enter("encoding")

    def stop(self) -> None:
        """Ends what a person waits for."""
        self._cancel_opening()
        for job in (self._encoding, *self._asking.values()):
            if job is not None:
                job.cancel()
        if self.picture is None:
            self.stage = "empty"
        self.changed.emit()

    def show_snapshot(self, snapshot: EngineSnapshot) -> None:
        if self.stage == "waiting" and snapshot.state == "ready":
            self.encode()

    def _on_progress(self, job: Job, done: int, total: int) -> None:
        if job is self._encoding:
            self.progress = (done, total)
            self.changed.emit()

    def _on_encoded(self, job: Job, screen: Screen) -> None:
        if job is not self._encoding:
            screen.close()
            return
        self._encoding = None
        self._screen = screen
        self.encode_ms = screen.encode_ms
        self._encoded_at = time.monotonic()
        self._enter("ready")
        for asked in self.asked:
            if asked.waiting:
                self._ask(asked)
        if self.shown is not None and self.shown.stale:
            self.ask_again(self.shown)

    def _on_encoding_failed(self, job: Job, error: EngineError) -> None:
        if job is not self._encoding:
            return
        self._encoding = None
        if self._engine.snapshot.state != "ready":  # the engine was closed under it: it is loaded again
            self._enter("waiting")
            return
        self.asked = [asked for asked in self.asked if not asked.waiting]
        self._show_last()
        self._enter("failed", "" if error.code == "cancelled" else error.message)

    def _on_engine_replaced(self, _engine: object) -> None:
        if self.picture is not None:
            self._screen = None  # freed with its engine
            self._drop()
            self._enter("waiting")

    def _enter(self, stage: Stage, fault: str = "") -> None:
        self.stage, self.fault = stage, fault
        self.changed.emit()

    # Asking

    def ask(self, question: str) -> None:
        """Asks now, or as soon as the picture is encoded."""
        asked = Asked(next(self._numbers), question)
        self.asked = [*self.asked[1 - _HISTORY :], asked]
        self.shown = asked
        if self.stage == "failed":
            self.encode()
        self._ask(asked)
        self.changed.emit()

    def ask_again(self, asked: Asked) -> None:
        """The same question of the picture there is now."""
        asked.answer, asked.fault, asked.stale = None, "", False
        self.shown = asked
        self._ask(asked)
        self.changed.emit()

    def select(self, number: int) -> None:
        """Shows an answer again; asks again what was asked of an earlier picture."""
        for asked in self.asked:
            if asked.number == number:
                if asked.stale:
                    self.ask_again(asked)
                elif asked is not self.shown:
                    self.shown = asked
                    self.changed.emit()

    def _ask(self, asked: Asked) -> None:
        if self._screen is None or asked.number in self._asking:
            return
        job = self._asking[asked.number] = self._engine.point(self._screen, asked.question)
        job.done.connect(lambda answer: self._on_answer(job, asked, answer))
        job.failed.connect(lambda error: self._on_refused(job, asked, error))

    def _on_answer(self, job: Job, asked: Asked, answer: PointAnswer) -> None:
        if self._asking.get(asked.number) is not job or self.picture is None:
            return
        del self._asking[asked.number]
        asked.answer = answer
        asked.desktop = self.picture.coordinates.desktop_pixel(*answer.pixels)
        self.changed.emit()

    def _on_refused(self, job: Job, asked: Asked, error: EngineError) -> None:
        if self._asking.get(asked.number) is not job:
            return
        del self._asking[asked.number]
        if error.code == "cancelled":
            self.asked = [other for other in self.asked if other is not asked]
            self._show_last()
        else:
            asked.fault = error.message
        self.changed.emit()

    def _show_last(self) -> None:
        if self.shown not in self.asked:
            self.shown = self.asked[-1] if self.asked else None
