"""An engine and a server inside this process: ``ignis serve``, and what other commands use when nothing is running."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from ignis_desktop.cli.errors import CommandError
from ignis_desktop.cli.options import EngineOptions

if TYPE_CHECKING:
    from engine import Engine
    from ignis_desktop.server.settings import Settings
    from ignis_desktop.server.thread import ServerThread

CLOSE_SECONDS = 10.0


@contextmanager
def engine_running(options: EngineOptions) -> Iterator[Engine]:
    """An engine that loads in a thread of its own, closed in the end. Raises ``CommandError`` for bad options."""
    from engine import Engine
    from engine.messages import EngineError

    try:
        engine = Engine(options.config())
    except EngineError as fault:
        raise CommandError(fault.message) from fault
    engine.start()
    try:
        yield engine
    finally:
        engine.close(timeout=CLOSE_SECONDS)


@contextmanager
def server_running(engine: Engine, settings: Settings) -> Iterator[ServerThread]:
    """A server that listens, stopped in the end. Raises ``CommandError`` when it cannot listen."""
    from ignis_desktop.server.settings import ServerError
    from ignis_desktop.server.thread import ServerThread

    server = ServerThread(engine, settings)
    try:
        server.start()
    except ServerError as fault:
        raise CommandError(str(fault)) from fault
    try:
        yield server
    finally:
        server.stop()


class Terminated(Exception):
    """SIGTERM arrived: the orderly end of a server that a service manager stops."""


@contextmanager
def terminate_raises() -> Iterator[None]:
    """SIGTERM raises ``Terminated`` in the main thread while the block runs, so that everything is closed in order."""

    def raise_terminated(_signal: int, _frame: FrameType | None) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, raise_terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
