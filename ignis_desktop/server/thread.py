"""The server in a thread of its own, with its own event loop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import secrets
import socket
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import psutil
import uvicorn
from fastapi import FastAPI

from ignis_desktop.server import runtime_file
from ignis_desktop.server.app import create_app
from ignis_desktop.server.protocol import patient
from ignis_desktop.server.request_log import RequestLog
from ignis_desktop.server.settings import ServerError, Settings

if TYPE_CHECKING:
    from engine import Engine

logger = logging.getLogger(__name__)

BACKLOG = 512
SHUTDOWN_SECONDS = 2
"""How long running requests may go on once the server stops."""


def _worth_telling(record: logging.LogRecord) -> bool:
    """asyncio warns when it writes to a connection that its client has reset. Clients leave all the time."""
    return not (record.name == "asyncio" and str(record.msg).startswith("socket.send() raised exception"))


class _Server(uvicorn.Server):
    """uvicorn that tells when it listens."""

    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()


class ServerThread:
    """Serves ``engine`` over HTTP from ``start()`` to ``stop()``; may be started again after that.

    The engine may still be loading: until it is ready, requests get 503 with Retry-After.
    """

    def __init__(self, engine: Engine, settings: Settings | None = None) -> None:
        self.engine = engine
        self.settings = settings or Settings()
        self.log = RequestLog(self.settings.request_log_size)
        self.token = secrets.token_urlsafe(32)
        """Accepted as a key; local commands read it from the runtime file."""
        self._app: FastAPI | None = None
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None
        self._port = 0
        self._instance: runtime_file.Instance | None = None

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    @property
    def url(self) -> str:
        """Where this machine reaches the server, without a trailing slash."""
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.settings.host, self.settings.host)
        if ":" in host and not host.startswith("["):
            host = f"[{host}]"
        return f"http://{host}:{self._port}"

    def start(self, timeout: float = 30.0) -> None:
        """Returns when the server listens. Raises ``ServerError`` when the port is taken or cannot be used."""
        if self.running:
            return
        listener = bind(self.settings.host, self.settings.port)
        self._port = listener.getsockname()[1]
        started = threading.Event()
        self._app = create_app(self.engine, self.settings, log=self.log, token=self.token)
        config = uvicorn.Config(
            self._app,
            log_config=None,
            access_log=False,
            lifespan="on",
            http=patient(self.settings.head_seconds),  # upon h11: always there, and the one with a limit on headers
            ws="none",
            timeout_keep_alive=75,  # longer than clients pause between requests
            proxy_headers=False,  # nobody stands in front: a forwarded address would be a claim
            server_header=False,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            h11_max_incomplete_event_size=self.settings.max_header_bytes + 1024,
        )
        self._server = _Server(config, started.set)
        self._thread = threading.Thread(
            target=self._run, args=(self._server, listener), name="ignis-server", daemon=True
        )
        self._thread.start()
        while not started.wait(0.05):
            timeout -= 0.05
            if not self._thread.is_alive() or timeout <= 0:
                self.stop()
                raise ServerError("The server did not start; its log says why.")
        self._advertise()

    def stop(self, timeout: float = 10.0) -> None:
        """Stops listening, ends running requests, waits for the thread."""
        if self._instance is not None:
            runtime_file.remove(self._instance, self.settings.runtime_directory)
            self._instance = None
        if self._server is not None and self._app is not None:
            self._server.should_exit = True
            if self._server.started:
                state = self._app.state.ignis
                state.doorbell.ring(state.end_work)
        if self._thread is not None:
            self._thread.join(timeout)
        self._server = self._thread = self._app = None

    def __enter__(self) -> ServerThread:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    @staticmethod
    def _run(server: _Server, listener: socket.socket) -> None:
        try:
            logging.getLogger("asyncio").addFilter(_worth_telling)  # a function added twice counts once
            asyncio.run(server.serve(sockets=[listener]))
        except Exception:
            logger.exception("The server ended with a fault")
        finally:
            listener.close()

    def _advertise(self) -> None:
        if not self.settings.advertise:
            return
        self._instance = runtime_file.Instance.of_this_process(self.url, self.token)
        try:
            runtime_file.write(self._instance, self.settings.runtime_directory)
        except OSError as error:
            logger.warning("Local commands will not find this server: %s", error)
            self._instance = None


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; raises ``ServerError`` with what stands in the way."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise ServerError(f"{host} is not an address of this machine ({error.strerror or error}).") from None
    listener = socket.socket(family, kind, protocol)
    try:
        if sys.platform == "win32":
            # Without it Windows lets a second program listen on the same port and take half of the requests.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        holder = _holder(port)
        if error.errno == errno.EADDRINUSE or (error.errno == errno.EACCES and holder):  # Windows says either
            raise ServerError(
                f"Port {port} is taken{holder}; close that program or choose another port (0 takes any)."
            ) from None
        if error.errno == errno.EACCES:
            raise ServerError(f"Port {port} is reserved by the system; choose one above 1023.") from None
        if error.errno == errno.EADDRNOTAVAIL:
            raise ServerError(f"{host} is not an address of this machine; listen on 127.0.0.1.") from None
        raise ServerError(f"Cannot listen on {host}:{port}: {error.strerror or error}.") from None
    return listener


def _holder(port: int) -> str:
    """ " by NAME (process PID)" for a listening port, "" when the system does not tell."""
    with contextlib.suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port and connection.pid:
                return f" by {psutil.Process(connection.pid).name()} (process {connection.pid})"
    return ""
