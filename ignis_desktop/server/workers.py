"""Work that is too long for the event loop: templating, tokenising, decoding pictures, zero-token answers."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from ignis_desktop.server.bridge import client_watch
from ignis_desktop.server.errors import ApiError, ClientGone

P = ParamSpec("P")
T = TypeVar("T")

PREPARING_THREADS = 2
"""Templating and tokenising share the interpreter with the engine's rounds: more threads would only slow those."""
ANSWER_THREADS = 16
"""A zero-token answer blocks its thread while the engine works: as many as there can be lanes."""


class Workers:
    """Two thread pools, so that answers that wait for the engine never keep a prompt from being prepared."""

    def __init__(self) -> None:
        self._preparing = ThreadPoolExecutor(PREPARING_THREADS, "ignis-prepare")
        self._answering = ThreadPoolExecutor(ANSWER_THREADS, "ignis-answer")
        self._closing = False

    async def prepare(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run short processor-bound work in a thread."""
        call = partial(work, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._preparing, call)

    async def json(self, build: Callable[P, dict[str, Any]], *args: P.args, **kwargs: P.kwargs) -> Response:
        """A response whose body is built and encoded in a thread: with log probabilities it may take a second."""

        def encoded() -> bytes:
            return json.dumps(build(*args, **kwargs), ensure_ascii=False, separators=(",", ":")).encode()

        return Response(await self.prepare(encoded), media_type="application/json")

    async def answer(self, http: Request, work: Callable[[Callable[[], bool]], T], deadline: float) -> T:
        """Run work that waits for the engine. ``work`` is given a callable that says whether to stop.

        It is told to stop when the client leaves (raises ``ClientGone``), when ``deadline`` seconds have passed
        (raises ``ApiError`` 504) and when the server closes.
        """
        over = time.monotonic() + deadline
        gone = False

        def leave() -> None:
            nonlocal gone
            gone = True

        def stop() -> bool:
            return gone or self._closing or time.monotonic() > over

        async with client_watch(http, leave):
            try:
                return await asyncio.get_running_loop().run_in_executor(self._answering, work, stop)
            except Exception as error:
                if gone:
                    raise ClientGone from error
                if time.monotonic() > over:
                    raise deadline_passed(deadline) from error
                raise
            except asyncio.CancelledError:
                leave()
                raise

    def close(self) -> None:
        """Tell running answers to stop; does not wait for them."""
        self._closing = True
        self._preparing.shutdown(wait=False, cancel_futures=True)
        self._answering.shutdown(wait=False, cancel_futures=True)


def deadline_passed(seconds: float) -> ApiError:
    return ApiError(
        504,
        f"No answer within {seconds:g} seconds; ask for less, or try again when the engine is less busy.",
        code="deadline_exceeded",
    )
