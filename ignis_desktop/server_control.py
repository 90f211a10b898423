"""Starts and stops the local server for the window, without ever making the window wait for it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QObject, Qt, Signal

from ignis_desktop.store.settings import WindowSettings

if TYPE_CHECKING:
    from engine import Engine
    from ignis_desktop.server.request_log import RequestRecord
    from ignis_desktop.server.thread import ServerThread

log = logging.getLogger(__name__)

ServerState = Literal["stopped", "starting", "running", "stopping", "failed"]
ALL_INTERFACES = "0.0.0.0"


class ServerControl(QObject):
    """One server at a time. Calls return at once; ``changed`` comes whenever ``state`` does."""

    changed = Signal()
    _settled = Signal(int, str, str, str)

    def __init__(self, engine: Engine, settings: WindowSettings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.state: ServerState = "stopped"
        self.reason = ""
        """Why it does not run, in one sentence, when ``state`` is "failed"."""
        self.url = ""
        """Address without /v1 while it runs."""
        self._engine = engine
        self._settings = settings
        self._server: ServerThread | None = None
        self._turn = 0
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="server-control")
        self._settled.connect(self._on_settled, Qt.ConnectionType.QueuedConnection)

    def use_engine(self, engine: Engine) -> None:
        """Serves another engine from now on."""
        self._engine = engine
        if self.state in ("starting", "running"):
            self.start()

    def start(self, settings: WindowSettings | None = None) -> None:
        """Starts with ``settings``; a server that runs is stopped first."""
        self._settings = settings or self._settings
        self._turn += 1
        self._set("starting")
        self._thread.submit(self._start, self._turn, self._engine, self._settings)

    def stop(self) -> None:
        self._turn += 1
        self._set("stopping")
        self._thread.submit(self._stop, self._turn)

    def close(self) -> None:
        """Stops it and waits until it has."""
        self._turn += 1
        self._thread.submit(self._stop, self._turn)
        self._thread.shutdown(wait=True)

    def records_version(self) -> int:
        """Changes whenever ``records`` does."""
        server = self._server
        return server.log.version if server is not None else -1

    def records(self) -> Sequence[RequestRecord]:
        """What was asked of the server that runs, oldest first."""
        server = self._server
        return server.log.records() if server is not None else ()

    def _start(self, turn: int, engine: Engine, wanted: WindowSettings) -> None:
        # FastAPI takes a while to import: here it holds nobody up.
        from ignis_desktop.server.settings import ServerError, Settings
        from ignis_desktop.server.thread import ServerThread

        try:
            previous, self._server = self._server, None
            if previous is not None:
                previous.stop()
            settings = Settings(
                host=wanted.host,
                port=wanted.port,
                api_key=wanted.api_key or None,
                cors_origins=("*",) if wanted.cors else (),
                capture=wanted.capture,
            )
            server = ServerThread(engine, settings)
            if previous is not None:
                server.log = previous.log
            server.start()
        except ServerError as error:
            self._settled.emit(turn, "failed", str(error), "")
        except Exception as error:
            log.exception("starting the server")
            self._settled.emit(turn, "failed", f"{type(error).__name__}: {error}", "")
        else:
            self._server = server
            self._settled.emit(turn, "running", "", server.url)

    def _stop(self, turn: int) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None
        self._settled.emit(turn, "stopped", "", "")

    def _on_settled(self, turn: int, state: ServerState, reason: str, url: str) -> None:
        if turn == self._turn:
            self._set(state, reason, url)

    def _set(self, state: ServerState, reason: str = "", url: str = "") -> None:
        self.state, self.reason, self.url = state, reason, url
        self.changed.emit()
