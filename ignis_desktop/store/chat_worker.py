"""Runs ``ChatDatabase`` in a thread of its own, so that a slow disk never stops the window."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from ignis_desktop.store.chats import ChatDatabase

log = logging.getLogger(__name__)


class ChatWorker(QObject):
    """Calls run one after the other in the order given, so that a read sees every write before it."""

    failed = Signal(str)
    """One sentence; the call it belongs to had no effect."""
    _answered = Signal(object, object)

    def __init__(self, path: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._path = path
        self._database: ChatDatabase | None = None
        self._fault = ""
        self._closed = False
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="chats")
        self._answered.connect(self._deliver)
        self._thread.submit(self._guarded, self._open)

    def call(self, method: str, *arguments: Any, then: Callable[[Any], None] | None = None) -> None:
        """``ChatDatabase.method(*arguments)`` in the worker; ``then`` gets its result in the window's thread.

        After ``close`` nothing happens: an answer that ends with the program has been kept by then.
        """
        if self._closed:
            return
        self._thread.submit(self._guarded, self._run, method, arguments, then)

    def close(self) -> None:
        """Finishes what was asked for, then closes the file."""
        self._closed = True
        self._thread.submit(self._close)
        self._thread.shutdown(wait=True)

    def _open(self) -> None:
        try:
            self._database = ChatDatabase(self._path)
        except sqlite3.Error as error:
            self._fault = str(error)
            log.warning("the conversations in %s: %s", self._path, error)

    def _run(self, method: str, arguments: tuple[Any, ...], then: Callable[[Any], None] | None) -> None:
        if self._database is None:
            # Said with every call: when the file was opened, nobody was listening yet.
            self.failed.emit(self._fault)
            return
        result = getattr(self._database, method)(*arguments)
        if then is not None:
            self._answered.emit(then, result)

    def _guarded(self, work: Callable[..., None], *arguments: Any) -> None:
        try:
            work(*arguments)
        except sqlite3.Error as error:
            log.exception("the conversations in %s", self._path)
            self.failed.emit(str(error))

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()

    @staticmethod
    def _deliver(then: Callable[[Any], None], result: Any) -> None:
        then(result)
