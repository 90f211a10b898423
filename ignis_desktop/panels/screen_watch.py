"""Watching what a picture was captured from: it is looked at once a second and read again when it has changed."""

from __future__ import annotations

import math

from PIL import Image
from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

from engine.messages import EngineError
from ignis_desktop.capture.coordinates import Rect
from ignis_desktop.capture.grabbing import Shot
from ignis_desktop.engine_thread import EngineThread
from ignis_desktop.jobs import Job
from ignis_desktop.panels.screen_session import ScreenSession
from ignis_desktop.screen_picture import Picture, capture, screen_layout, window_area

WATCH_MS = 1000
_REST = 2.0
"""It rests this many times the seconds that the last reading took, so that the engine has time for others."""


class ScreenWatch(QObject):
    changed = Signal()
    failed = Signal(str)

    def __init__(self, engine: EngineThread, session: ScreenSession, owner: QWidget) -> None:
        """``owner``: a widget of the program's window. Where that covers the watched screen, the picture stays as it
        was: else the program would read itself, and showing what it read would be the next change."""
        super().__init__(owner)
        self._engine = engine
        self._session = session
        self._owner = owner
        self._job: Job | None = None
        self.on = False
        self._timer = QTimer(self, interval=WATCH_MS)
        self._timer.timeout.connect(self._look)
        session.opened.connect(lambda: self.set_on(False))

    def set_on(self, on: bool) -> None:
        picture = self._session.picture
        on = on and picture is not None and picture.target is not None
        if on == self.on:
            return
        self.on = on
        if on:
            self._timer.start()
        else:
            self._timer.stop()
            self._forget()
        self.changed.emit()

    def _forget(self) -> None:
        if self._job is not None:
            self._job.cancel()
            self._job = None

    def _look(self) -> None:
        picture = self._session.picture
        if picture is None or picture.target is None or self._job is not None or self._session.busy:
            return
        if self._session.seconds_since_read < _REST * self._session.encode_ms / 1000:
            return
        layout, target, own = screen_layout(), picture.target, window_area(self._owner.window())

        def work(job: Job) -> Picture:
            shot = capture(layout, target, job)
            image = shot.image if own is None else uncovered(shot, own, picture.image)
            return Picture.of(picture.name, image, shot.coordinates, target=target)

        job = self._job = self._engine.jobs.start(work)
        job.done.connect(lambda seen: self._seen(job, picture, seen))
        job.failed.connect(lambda error: self._cannot_look(job, error))

    def _seen(self, job: Job, before: Picture, now: Picture) -> None:
        if job is not self._job:
            return
        self._job = None
        if self._session.busy or self._session.picture is not before:
            return
        if now.thumbnail.differs(before.thumbnail):
            self._session.renew(now)
        elif now.coordinates != before.coordinates:
            self._session.move(now)

    def _cannot_look(self, job: Job, error: EngineError) -> None:
        if job is self._job:
            self._job = None
            self.set_on(False)
            self.failed.emit(error.message)


def uncovered(shot: Shot, own: Rect, before: Image.Image) -> Image.Image:
    """The captured picture with ``before`` where the program's own window lies (``own``, in desktop pixels)."""
    coordinates = shot.coordinates
    if before.size != shot.image.size or all(tile.desktop.intersected(own) is None for tile in coordinates.tiles):
        return shot.image
    left, top = coordinates.from_desktop(own.x, own.y)
    right, bottom = coordinates.from_desktop(own.x + own.width, own.y + own.height)
    box = math.floor(left), math.floor(top), math.ceil(right), math.ceil(bottom)
    image = shot.image.copy()
    image.paste(before.crop(box), box)
    return image
