"""The product's own engine, with a door to its thread: what is measured is looked at where it lives."""

from __future__ import annotations

import contextlib
import gc
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

import torch

from engine.engine import Engine
from engine.memory.reserve import lift
from engine.messages import EngineError
from engine.schedule.scheduler import Scheduler
from ignis_desktop.cli.errors import CommandError
from ignis_desktop.cli.options import EngineOptions

T = TypeVar("T")
ERRAND_SECONDS, LOOK_SECONDS = 120.0, 1.0
"""How long an errand may take, and how often it is looked at whether the engine is still there."""


class WatchedEngine(Engine):
    """Does nothing differently; between two steps its thread also runs what is handed in by :meth:`on_thread`."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._errands: deque[Callable[[Scheduler], None]] = deque()

    def on_thread(self, work: Callable[[Scheduler], T], seconds: float = ERRAND_SECONDS) -> T:
        """What ``work`` makes of the scheduler, on the engine's thread, between two steps. Raises what it raises."""
        future: Future[T] = Future()

        def errand(scheduler: Scheduler) -> None:
            try:
                with torch.inference_mode():
                    future.set_result(work(scheduler))
            except BaseException as fault:  # the asker's, not the engine's
                future.set_exception(fault)

        with self._wake:
            self._errands.append(errand)
            self._wake.notify()
        until = time.monotonic() + seconds
        while True:
            try:
                return future.result(LOOK_SECONDS)
            except TimeoutError:
                now = self.snapshot()
                if now.state in ("failed", "closed"):
                    raise EngineError(f"The engine is {now.state}: {now.reason or 'it was closed'}") from None
                if future.done() or time.monotonic() > until:
                    raise

    def _take_commands(self, scheduler: Scheduler) -> bool:
        goes_on = super()._take_commands(scheduler)
        while self._errands:
            self._errands.popleft()(scheduler)
        return goes_on


@contextlib.contextmanager
def loaded(options: EngineOptions) -> Iterator[WatchedEngine]:
    """An engine that is ready, closed in the end with all its memory given back. Raises ``CommandError``."""
    give_back()
    try:
        engine = WatchedEngine(options.config())
        engine.start()
    except EngineError as fault:
        raise CommandError(fault.message) from fault
    try:
        try:
            engine.wait_ready()
        except EngineError as fault:
            raise CommandError(fault.message) from fault
        yield engine
    finally:
        engine.close()
        give_back()


def give_back() -> None:
    """Let the driver have what nobody holds, and the next model all that is free."""
    gc.collect()
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
        lift()
