"""Server-sent events: framing, keep-alive, errors after the response began."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from engine.messages import EngineError
from ignis_desktop.server.bridge import client_watch
from ignis_desktop.server.errors import ApiError, ClientGone, error_bytes, fault, note_error

logger = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS = 15.0
"""Proxies and clients drop connections that are silent for half a minute; long prompts are silent for longer."""
KEEP_ALIVE = b": keep-alive\n\n"
DONE = b"data: [DONE]\n\n"


def frame(data: bytes, event: str | None = None) -> bytes:
    """One event. JSON holds no raw line breaks, so its data is always a single line."""
    head = b"" if event is None else b"event: " + event.encode() + b"\n"
    return head + b"data: " + data + b"\n\n"


def json_frame(body: Mapping[str, Any], event: str | None = None) -> bytes:
    """An object as one event."""
    return frame(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(), event)


class Work(Protocol):
    """What stands behind a stream."""

    def leave(self) -> None:
        """The client is gone."""

    def close(self) -> None:
        """Nobody reads on; may be called more than once."""


class EventStreamResponse(Response):
    """Sends the frames that ``frames`` yields, all frames of one step in one write.

    ``work`` is told as soon as the client closes the connection, and closed at the end in any case, also when the
    frames were never begun. A fault while frames are made is sent as one error event; the stream then ends without
    ``[DONE]``.
    """

    media_type = "text/event-stream"

    def __init__(self, frames: AsyncGenerator[bytes, None], work: Work) -> None:
        # "no" keeps nginx from holding tokens back.
        super().__init__(headers={"cache-control": "no-cache", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._frames = frames
        self._work = work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async with client_watch(request, self._work.leave):
                try:
                    async for data in self._frames:
                        await send({"type": "http.response.body", "body": data, "more_body": True})
                except ClientGone:
                    note_error(request, "client_gone")
                    return
                except (ApiError, EngineError) as error:
                    known = error if isinstance(error, ApiError) else ApiError.of(error)
                    await self._send_error(request, send, known)
                except Exception as error:
                    logger.exception("A stream broke")
                    await self._send_error(request, send, fault(error))
            # Outside the watch: a response that is complete looks to it like a client that left.
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            await self._frames.aclose()
            self._work.close()

    async def _send_error(self, request: Request, send: Send, error: ApiError) -> None:
        note_error(request, error.code)
        data = frame(error_bytes(error, request.scope), "error")
        await send({"type": "http.response.body", "body": data, "more_body": True})
