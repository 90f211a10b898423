"""What every request passes before a route sees it: the log, Host and Origin, the key, the body's size.

Plain ASGI, because these layers must hand ``receive`` on untouched: the routes listen on it for the client's leaving.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import uuid
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ignis_desktop.server.errors import CLIENT_GONE, ApiError, fault
from ignis_desktop.server.metrics import ServerMetrics
from ignis_desktop.server.request_log import RequestLog
from ignis_desktop.server.settings import Settings

logger = logging.getLogger(__name__)

OPEN_PATHS = ("/health", "/docs", "/openapi.json")
"""Reachable without a key: they say nothing about what is asked or answered."""
MAX_HEADERS = 100
REQUEST_ID_HEADERS = (b"x-request-id", b"request-id")
"""Where OpenAI's and Anthropic's clients look for it."""


def header(scope: Scope, name: bytes) -> str | None:
    """A header's first value."""
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), None)


def client_name(scope: Scope) -> str:
    """Who asks, as the panels show it: address and program."""
    address = scope["client"][0] if scope.get("client") else "local"
    program = (header(scope, b"user-agent") or "").split(" ")[0]
    return f"{address} {''.join(c for c in program[:40] if c.isprintable())}".strip()


def _note(scope: Scope, error: ApiError) -> ApiError:
    scope["ignis.record"].note(error=error.code)
    return error


class Recorder:
    """Writes each request into the log and the metrics; turns faults into answers. The outermost layer."""

    def __init__(self, app: ASGIApp, log: RequestLog, metrics: ServerMetrics) -> None:
        self.app, self.log, self.metrics = app, log, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        record = scope["ignis.record"] = self.log.begin(scope["method"], scope["path"], client_name(scope))
        request_id = scope["ignis.request_id"] = f"req_{uuid.uuid4().hex[:24]}"
        status = 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                for name in REQUEST_ID_HEADERS:
                    message["headers"].append((name, request_id.encode()))
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except asyncio.CancelledError:
            status = CLIENT_GONE
            raise
        except ApiError as error:  # of a layer around the routes
            await _note(scope, error).response(scope)(scope, receive, watched)
        except Exception as error:
            logger.exception("%s %s failed", scope["method"], scope["path"])
            if status:  # the response began: a connection that breaks off is the only sign left
                raise
            await _note(scope, fault(error)).response(scope)(scope, receive, watched)
        finally:
            done = record.finish(CLIENT_GONE if scope.get("ignis.gone") else status)
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.observe_http(done.method, route, done.status or 0, (done.milliseconds or 0.0) / 1000)


class HostGuard:
    """Refuses requests that a web page sent through a name or from an origin that is not this server's.

    The Host check stops DNS rebinding. The Origin check stops pages that post without asking: a browser sends such
    "simple" requests before any CORS answer, and a generation would run although the page never sees it.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app, self.settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (error := self.refusal(scope)) is not None:
            await _note(scope, error).response(scope)(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def refusal(self, scope: Scope) -> ApiError | None:
        headers = scope["headers"]
        size = sum(len(key) + len(value) + 4 for key, value in headers)
        if size > self.settings.max_header_bytes or len(headers) > MAX_HEADERS:
            limits = f"{MAX_HEADERS} headers of {self.settings.max_header_bytes} bytes together"
            return ApiError(
                431, f"The request's headers are too large; at most {limits} fit.", code="headers_too_large"
            )
        hosts = [value.decode("latin-1") for key, value in headers if key == b"host"]
        if len(hosts) != 1 or not self.settings.accepts_host(hosts[0]):
            shown = ", ".join(hosts) or "none"
            return ApiError(
                403,
                f"The Host header ({shown[:80]}) does not name this server; use http://127.0.0.1:{_port(scope)}, "
                "or allow the name in the server's settings.",
                code="host_not_allowed",
            )
        origin = header(scope, b"origin")
        allowed = self.settings.cors_origins
        if origin is None or "*" in allowed or origin in allowed or urlsplit(origin).netloc == hosts[0]:
            return None
        return ApiError(
            403,
            f"Pages from {origin[:80]} may not use this server; allow the origin in the server's CORS settings.",
            code="origin_not_allowed",
        )


def _port(scope: Scope) -> int:
    return scope["server"][1] if scope.get("server") else 8000


class KeyGuard:
    """Asks for the API key (or the runtime file's token) when one is set."""

    def __init__(self, app: ASGIApp, keys: Iterable[str]) -> None:
        self.app = app
        self.keys = [key.encode() for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS and self.keys and not self.accepts(scope):
            error = ApiError(
                401,
                "This server needs its API key: send it as 'Authorization: Bearer KEY' or 'X-Api-Key: KEY'.",
                code="invalid_api_key",
            )
            await _note(scope, error).response(scope)(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def accepts(self, scope: Scope) -> bool:
        scheme, _, token = (header(scope, b"authorization") or "").partition(" ")
        given = [token.strip() if scheme.lower() == "bearer" else "", header(scope, b"x-api-key") or ""]
        # Every key is compared, each in constant time, so that timing tells nothing about any of them.
        pairs = ((one.encode("latin-1", "replace"), key) for one in given for key in self.keys)
        return sum(hmac.compare_digest(one, key) for one, key in pairs) > 0


class BodyLimit:
    """Answers 413 to bodies over the limit, whether their size is declared or shows only while they arrive, and 408 to
    bodies that dribble."""

    DRAIN_FACTOR = 4
    """A refused body is read to its end up to this many times the limit: a client that is cut off while it still
    sends reports a broken connection instead of the answer."""
    PACE = 16 * 2**10
    """Bytes a second that lengthen a body's time: who sends at least so many is never cut off."""

    def __init__(self, app: ASGIApp, limit: int, seconds: float) -> None:
        self.app, self.limit, self.seconds = app, limit, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        declared = header(scope, b"content-length") or "0"
        if declared.isdigit() and int(declared[:20]) > self.limit:
            await self.drain(receive, 0)
            await self.refuse(scope).response(scope)(scope, receive, send)
            return
        began = asyncio.get_running_loop().time()
        received, ended = 0, False

        async def counted() -> Message:
            nonlocal received, ended
            if ended:  # what is waited for now is the client's leaving
                return await receive()
            try:
                async with asyncio.timeout_at(began + self.seconds + received / self.PACE):
                    message = await receive()
            except TimeoutError:
                raise self.too_slow(scope) from None
            received += len(message.get("body", b""))
            ended = not message.get("more_body", False)
            if received > self.limit:
                if not ended:
                    await self.drain(receive, received)
                raise self.refuse(scope)
            return message

        await self.app(scope, counted, send)

    def refuse(self, scope: Scope) -> ApiError:
        return _note(scope, ApiError(413, f"The body is larger than {self.limit:,} bytes.", code="body_too_large"))

    def too_slow(self, scope: Scope) -> ApiError:
        message = f"The body did not arrive within {self.seconds:g} seconds; send it without pauses."
        return _note(scope, ApiError(408, message, code="body_too_slow"))

    async def drain(self, receive: Receive, received: int) -> None:
        more = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.seconds):
                while more and received <= self.DRAIN_FACTOR * self.limit:
                    message: dict[str, Any] = dict(await receive())
                    received += len(message.get("body", b""))
                    more = message["type"] == "http.request" and message.get("more_body", False)
