"""One HTTP client for many requests at once, which notes when each piece of each answer came."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx

from ignis_desktop import __version__
from ignis_desktop.cli.errors import CommandError

AGENT = f"ignis-bench/{__version__}"
"""How the generator appears among the server's clients."""
CONNECT_SECONDS = 10.0
SILENT_SECONDS = 300.0
"""A stream that is silent for so long has failed."""

Status = Literal["ok", "refused", "failed", "left"]


@dataclass(frozen=True)
class Ask:
    """A chat request to come."""

    messages: list[dict[str, str]]
    max_tokens: int
    request_class: str = "interactive"
    seed: int = 0
    stop_early: bool = False
    """Whether the model may end its answer itself; otherwise it has exactly ``max_tokens`` tokens."""

    def body(self, *, stream: bool = True) -> dict[str, Any]:
        body: dict[str, Any] = {
            "messages": self.messages,
            "max_tokens": self.max_tokens,
            "class": self.request_class,
            "seed": self.seed,
            "ignore_eos": not self.stop_early,
            "stream": stream,
        }
        return {**body, "stream_options": {"include_usage": True}} if stream else body


@dataclass
class Outcome:
    """What became of a request. Times are on ``time.monotonic``'s clock."""

    request_class: str
    scheduled: float
    """When it was due: latencies count from here, whenever the generator got round to it."""
    sent: float
    status: Status = "failed"
    error: str = ""
    pieces: list[float] = field(default_factory=list)
    """When each piece of text came."""
    ended: float = 0.0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    text: str = ""
    timings: dict[str, float] = field(default_factory=dict)

    @property
    def first_seconds(self) -> float | None:
        """Time to first token, from when the request was due."""
        return self.pieces[0] - self.scheduled if self.pieces else None

    @property
    def gaps(self) -> list[float]:
        """Seconds between pieces of text."""
        return [after - before for before, after in zip(self.pieces, self.pieces[1:], strict=False)]


class LoadClient:
    """Requests to one server. No limit on connections: open loop means that nothing waits on this side."""

    def __init__(self, url: str, key: str | None = None) -> None:
        self.url = url
        self._key = key
        self._http = self._new()

    def _new(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=self.url,
            headers={"user-agent": AGENT} | ({"authorization": f"Bearer {self._key}"} if self._key else {}),
            timeout=httpx.Timeout(SILENT_SECONDS, connect=CONNECT_SECONDS, pool=None),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
            verify=self.url.startswith("https:"),
            trust_env=False,
        )

    async def __aenter__(self) -> LoadClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def hang_up(self) -> None:
        """Close the connections that are kept for later requests; the next request opens one anew."""
        await self.close()
        self._http = self._new()

    async def get(self, path: str) -> dict[str, Any]:
        return _whole(await self._send("GET", path, None))

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return _whole(await self._send("POST", path, body))

    async def _send(self, method: str, path: str, body: dict[str, Any] | None) -> httpx.Response:
        try:
            return await self._http.request(method, path, json=body)
        except httpx.HTTPError as fault:
            raise CommandError(f"The server at {self.url} does not answer: {_said(fault)}") from fault

    async def ask(self, ask: Ask, scheduled: float | None = None) -> Outcome:
        """Send a request and read its answer to the end; never raises for what the server or the network does.

        Cancelling the task that awaits this closes the connection, as a client that leaves does.
        """
        sent = time.monotonic()
        outcome = Outcome(ask.request_class, sent if scheduled is None else scheduled, sent)
        return await self.read(ask, outcome)

    async def read(self, ask: Ask, outcome: Outcome) -> Outcome:
        """``ask`` into an outcome that the caller holds: what came before a cancellation is in it."""
        outcome.status = "left"
        try:
            async with self._http.stream("POST", "/v1/chat/completions", json=ask.body()) as response:
                if response.status_code >= 400:
                    outcome.error = _reason(await response.aread())
                    outcome.status = "refused" if response.status_code in (429, 503) else "failed"
                    return outcome
                outcome.status = "ok" if await _read_stream(response.aiter_raw(), outcome) else "failed"
                if outcome.status == "failed" and not outcome.error:
                    outcome.error = "the stream ended without [DONE]"
        except httpx.HTTPError as fault:
            outcome.status, outcome.error = "failed", _said(fault)
        finally:
            outcome.ended = time.monotonic()
        return outcome


async def _read_stream(chunks: AsyncIterator[bytes], outcome: Outcome) -> bool:
    """Whether the stream came to its proper end."""
    rest = b""
    texts = []
    done = False
    async for chunk in chunks:
        now = time.monotonic()
        *events, rest = (rest + chunk).split(b"\n\n")
        for event in events:
            data = event[6:] if event.startswith(b"data: ") else b""
            if data == b"[DONE]":
                done = True
            elif data:
                text = _take(json.loads(data), outcome)
                if text:
                    texts.append(text)
                    outcome.pieces.append(now)
            elif event.startswith(b"event: error"):
                outcome.error = _reason(event.partition(b"data: ")[2])
    outcome.text = "".join(texts)
    return done


def _take(event: dict[str, Any], outcome: Outcome) -> str:
    """Note what an event says; returns its text."""
    usage = event.get("usage")
    if usage:
        outcome.prompt_tokens = usage["prompt_tokens"]
        outcome.output_tokens = usage["completion_tokens"]
        outcome.cached_tokens = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    if "timings" in event:
        outcome.timings = event["timings"]
    text = ""
    for choice in event.get("choices") or ():
        delta = choice.get("delta") or {}
        text += (delta.get("reasoning_content") or "") + (delta.get("content") or "")
    return text


def _whole(response: httpx.Response) -> dict[str, Any]:
    if response.status_code >= 400:
        raise CommandError(f"{response.url.path}: {_reason(response.content)}")
    try:
        value = response.json()
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise CommandError(f"{response.url} does not answer like an Ignis server.")
    return value


def _reason(body: bytes) -> str:
    """The server's own sentence."""
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return body[:200].decode("utf-8", "replace") or "no reason given"


def _said(fault: Exception) -> str:
    return f"{type(fault).__name__}: {fault}".rstrip(": ")
