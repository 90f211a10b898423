"""A file on its way to a log that can be asked: its lines are found, then its templates, and its tokens are counted."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Signal

from engine.messages import EngineError
from ignis_desktop.engine_thread import EngineThread
from ignis_desktop.jobs import Job
from ignis_desktop.log_file import LogFile
from ignis_desktop.panels.log_words import size_text
from ignis_desktop.widgets.texts import tr


class LogOpening(QObject):
    """One file at a time; whatever still comes of one that was left is dropped."""

    told = Signal(object, object, str)
    """Units done, units in all, and what is being done."""
    opened = Signal(object)
    """``LogFile``: its lines are known."""
    folded = Signal()
    """Its templates are."""
    counted = Signal()
    """Its tokens are."""
    failed = Signal(object)
    """``EngineError``"""

    def __init__(self, engine: EngineThread, parent: QObject) -> None:
        super().__init__(parent)
        self._engine = engine
        self._opening: Job | None = None
        self._folding: Job | None = None
        self._counting: Job | None = None

    @property
    def opening(self) -> bool:
        """Whether the lines of a file are being found."""
        return self._opening is not None

    @property
    def busy(self) -> bool:
        """Whether there is something to wait for and to cancel."""
        return self._opening is not None or self._folding is not None

    def open(self, path: Path) -> None:
        job = self._opening = self._engine.open_log(path)
        job.progressed.connect(lambda done, total: self._tell_opening(job, done, total))
        job.done.connect(lambda log: self._opened(job, log))
        job.failed.connect(lambda error: self._failed(job, error))

    def fold(self, log: LogFile) -> None:
        """Does nothing while a log is being folded."""
        if self._folding is not None:
            return
        job = self._folding = self._engine.fold_log(log)
        job.progressed.connect(lambda done, total: self._tell_folding(job, done, total))
        job.done.connect(lambda _: self._folded(job))
        job.failed.connect(lambda error: self._failed(job, error))

    def count(self, log: LogFile) -> None:
        """Once a log is open and the model there; does nothing if that was done or is being done."""
        if log.tokens is not None or self._counting is not None or self._engine.info is None:
            return
        job = self._counting = self._engine.count_log(log)
        job.done.connect(lambda _: self._counted(job))
        job.failed.connect(lambda error: self._failed(job, error))

    def cancel(self) -> None:
        """Ends everything."""
        for job in (self._opening, self._folding, self._counting):
            if job is not None:
                job.cancel()
        self._opening = self._folding = self._counting = None

    def _tell_opening(self, job: Job, done: int, total: int) -> None:
        if job is self._opening:
            self.told.emit(done, total, tr("log.opening_of", done=size_text(done), total=size_text(total)))

    def _tell_folding(self, job: Job, done: int, total: int) -> None:
        if job is self._folding:
            self.told.emit(done, total, tr("log.folding_of", share=f"{done / max(total, 1):.0%}"))

    def _opened(self, job: Job, log: LogFile) -> None:
        if job is not self._opening:
            log.close()
            return
        self._opening = None
        self.opened.emit(log)

    def _folded(self, job: Job) -> None:
        if job is self._folding:
            self._folding = None
            self.folded.emit()

    def _counted(self, job: Job) -> None:
        if job is self._counting:
            self._counting = None
            self.counted.emit()

    def _failed(self, job: Job, error: EngineError) -> None:
        if job is self._opening:
            self._opening = None
        elif job is self._folding:
            self._folding = None
        elif job is self._counting:
            self._counting = None
        else:
            return
        self.failed.emit(error)
