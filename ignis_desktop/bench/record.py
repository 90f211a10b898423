"""``ignis bench record``: a proxy in front of a server that writes down what passes, without its words.

Chat requests are recorded as ``ignis_desktop.bench.trace`` describes; everything else passes unrecorded. Texts are held
in memory only until their tokens are counted, and to see which of them come again.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from ignis_desktop.bench.trace import ROLES, Trace, TraceRequest, write_trace
from ignis_desktop.cli.errors import CommandError
from ignis_desktop.server.bridge import client_watch
from ignis_desktop.server.errors import CLIENT_GONE
from ignis_desktop.server.guard import HostGuard
from ignis_desktop.server.settings import ServerError, Settings
from ignis_desktop.server.thread import bind

logger = logging.getLogger(__name__)

CHAT = "/v1/chat/completions"
METHODS = ["GET", "POST", "PUT", "DELETE"]
HOP = {"host", "connection", "keep-alive", "transfer-encoding", "content-length", "accept-encoding"}
"""Headers that belong to one connection, not to the request."""


@dataclass
class _Seen:
    """A chat request on its way."""

    at: float
    request_class: str
    client: int
    messages: tuple[int, ...]
    prompt_tokens: int = 0
    output_tokens: int = 0


@dataclass
class Recorder:
    """What has passed so far. Used on one event loop."""

    upstream: httpx.AsyncClient
    headers: dict[str, str]
    """With which tokens are counted."""
    seen: list[_Seen] = field(default_factory=list)
    unrecorded: int = 0
    """Chat requests that a trace cannot hold (pictures, tools), and those that were not answered whole."""
    _numbers: dict[bytes, int] = field(default_factory=dict)
    _tokens: dict[int, tuple[str, int]] = field(default_factory=dict)
    _clients: dict[str, int] = field(default_factory=dict)
    _first: float | None = None

    def begin(self, request: Request, body: dict[str, Any]) -> _Seen | None:
        """Note an arrival; None when the request is not one that a trace holds."""
        texts = _texts(body)
        if texts is None:
            return None
        now = time.monotonic()
        self._first = now if self._first is None else self._first
        numbers = tuple(self._numbers.setdefault(_digest(*text), len(self._numbers)) for text in texts)
        who = request.headers.get("user-agent", "") or (request.client.host if request.client else "")
        client = self._clients.setdefault(who, len(self._clients))
        return _Seen(now - self._first, _class(request, body), client, numbers)

    async def end(self, seen: _Seen, body: dict[str, Any], answer: str, usage: dict[str, Any] | None) -> None:
        """Note a whole answer. Tokens that it does not tell are counted by the server, now that nobody waits."""
        for number, (role, text) in zip(seen.messages, _texts(body) or (), strict=True):
            if number not in self._tokens:
                self._tokens[number] = role, await self._count({"prompt": text}) if text else 0
        if usage:
            seen.prompt_tokens, seen.output_tokens = int(usage["prompt_tokens"]), int(usage["completion_tokens"])
        else:
            seen.prompt_tokens = await self._count({"messages": body["messages"]})
            seen.output_tokens = await self._count({"prompt": answer}) if answer else 0
        if seen.output_tokens:
            self.seen.append(seen)
        else:
            self.unrecorded += 1

    async def _count(self, body: dict[str, Any]) -> int:
        response = await self.upstream.post("/v1/tokenize", json=body, headers=self.headers)
        response.raise_for_status()
        return int(response.json()["count"])

    def trace(self, origin: str, model: str) -> Trace:
        ordered = sorted(self.seen, key=lambda seen: seen.at)
        requests = tuple(
            TraceRequest(s.at, s.request_class, s.client, s.messages, s.prompt_tokens, s.output_tokens) for s in ordered
        )
        return Trace(origin, model, dict(self._tokens), requests)


def create_proxy(recorder: Recorder) -> Starlette:
    """The application that passes everything on to ``recorder.upstream``."""

    guard = HostGuard(Starlette(), Settings())

    async def handle(request: Request) -> Response:
        # A page that rebinds its name must not reach through here a server that would refuse it.
        if (refusal := guard.refusal(request.scope)) is not None:
            return refusal.response()
        data = await request.body()
        seen, body = None, {}
        if request.method == "POST" and request.url.path == CHAT:
            body = _object(data)
            seen = recorder.begin(request, body)
            recorder.unrecorded += seen is None
        headers = [(name, value) for name, value in request.headers.raw if name.decode().lower() not in HOP]
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        outgoing = recorder.upstream.build_request(request.method, path, content=data, headers=headers)
        sending = asyncio.create_task(recorder.upstream.send(outgoing, stream=True))

        def leave() -> None:
            sending.cancel()

        try:
            async with client_watch(request, leave):
                response = await sending
        except asyncio.CancelledError:
            recorder.unrecorded += seen is not None
            if not request.scope.get("ignis.gone"):
                raise
            return Response(status_code=CLIENT_GONE)
        except httpx.HTTPError as fault:
            message = f"The server behind the recorder does not answer: {fault}"
            return JSONResponse({"error": {"message": message, "code": "no_upstream"}}, 502)
        kept = {name: value for name, value in response.headers.items() if name not in HOP | {"content-encoding"}}
        frames = _pass(recorder, response, seen, body)
        return StreamingResponse(frames, response.status_code, kept)

    return Starlette(routes=[Route("/{path:path}", handle, methods=METHODS)])


async def _pass(
    recorder: Recorder, response: httpx.Response, seen: _Seen | None, body: dict[str, Any]
) -> AsyncIterator[bytes]:
    """The answer as it comes. A client that leaves closes this, and with it the connection to the server."""
    parts: list[bytes] = []
    whole = False
    try:
        async for chunk in response.aiter_bytes():
            if seen is not None:
                parts.append(chunk)
            yield chunk
        whole = True
    finally:
        recorder.unrecorded += seen is not None and not whole
        await response.aclose()
    if seen is None:
        return
    told = _answer(b"".join(parts)) if response.status_code == 200 else None
    if told is None:
        recorder.unrecorded += 1
        return
    try:
        await recorder.end(seen, body, *told)
    except (httpx.HTTPError, ValueError, KeyError) as fault:
        recorder.unrecorded += 1
        logger.warning("An answer is not recorded: %s", fault)


def _answer(data: bytes) -> tuple[str, dict[str, Any] | None] | None:
    """(text, usage if it was told) of a whole answer, streamed or not; None when it broke off."""
    if not data.lstrip().startswith(b"{"):
        events = [part[6:] for part in data.split(b"\n\n") if part.startswith(b"data: ")]
        if not events or events[-1] != b"[DONE]":
            return None
        pieces = [json.loads(event) for event in events[:-1]]
    else:
        pieces = [_object(data)]
    text, usage = "", None
    for piece in pieces:
        usage = piece.get("usage") or usage
        for choice in piece.get("choices") or ():
            said = choice.get("delta") or choice.get("message") or {}
            text += (said.get("reasoning_content") or "") + (said.get("content") or "")
    return text, usage


def _texts(body: dict[str, Any]) -> list[tuple[str, str]] | None:
    """(role, content) of a chat's messages; None when there is more to them, such as a picture or a tool call."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or body.get("tools"):
        return None
    for message in messages:
        if not isinstance(message, dict) or message.get("role") not in ROLES or message.get("tool_calls"):
            return None
        if not isinstance(message.get("content"), str):
            return None
    return [(message["role"], message["content"]) for message in messages]


def _class(request: Request, body: dict[str, Any]) -> str:
    wanted = body.get("class") or str(body.get("model") or "").partition("@")[2] or request.headers.get("x-ignis-class")
    return "agent" if str(wanted or "").strip().casefold() == "agent" else "interactive"


def _digest(role: str, text: str) -> bytes:
    return hashlib.sha256(f"{role}\0{text}".encode("utf-8", "replace")).digest()


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


@contextlib.asynccontextmanager
async def recording(url: str, key: str | None, port: int) -> AsyncIterator[tuple[Recorder, str]]:
    """(recorder, address to send requests to) while the block runs. Raises ``CommandError`` when it cannot listen."""
    headers = {"authorization": f"Bearer {key}"} if key else {}
    limits = httpx.Limits(max_connections=None)
    timeout = httpx.Timeout(None, connect=10.0)
    async with httpx.AsyncClient(base_url=url, timeout=timeout, limits=limits, trust_env=False) as upstream:
        recorder = Recorder(upstream, headers)
        config = uvicorn.Config(create_proxy(recorder), log_config=None, access_log=False, lifespan="off", ws="none")
        try:
            listener = bind("127.0.0.1", port)
        except ServerError as fault:
            raise CommandError(str(fault)) from fault
        server = _Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            while not server.started and not serving.done():
                await asyncio.sleep(0.01)
            yield recorder, f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving


class _Server(uvicorn.Server):
    """uvicorn that leaves signals to the command: Ctrl-C ends the recording, which is then written."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield


async def record(
    url: str, key: str | None, port: int, out: Path, origin: str, say: Callable[[str], None]
) -> tuple[int, int]:
    """Record until cancelled; returns (requests written, chat requests left out). Raises ``CommandError``."""
    async with recording(url, key, port) as (recorder, address):
        model = await _model(recorder)
        say(address)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
    if recorder.seen:
        try:
            write_trace(out, recorder.trace(origin, model))
        except OSError as fault:
            raise CommandError(f"{out} cannot be written: {fault.strerror or fault}.") from fault
    return len(recorder.seen), recorder.unrecorded


async def _model(recorder: Recorder) -> str:
    try:
        response = await recorder.upstream.get("/v1/engine", headers=recorder.headers)
        return str(response.json().get("model", ""))
    except (httpx.HTTPError, ValueError) as fault:
        raise CommandError(f"The server to record does not answer: {fault}") from fault
