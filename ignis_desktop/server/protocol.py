"""HTTP/1.1 connections that do not wait for ever: a client that dribbles its headers (slow-loris) is cut off."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class PatientProtocol(H11Protocol):
    """uvicorn's protocol with a limit on how long a request's headers may take.

    uvicorn itself limits only the pause between two requests. The limit counts from the connection's beginning, or
    from the first byte after such a pause, to the headers' end. It also holds for the rest of a body that was answered
    before its end (a refusal); other bodies are ``BodyLimit``'s.
    """

    head_seconds: float
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        super().connection_lost(exc)

    def _watch(self) -> None:
        answered = self.cycle is not None and self.cycle.response_complete
        if self.conn.their_state is not h11.IDLE and not (answered and self.conn.their_state is h11.SEND_BODY):
            self._unwatch()
        elif self._head_timer is None and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(self.head_seconds, self.timeout_keep_alive_handler)

    def _unwatch(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def patient(head_seconds: float) -> type[H11Protocol]:
    """The protocol class with this limit, as uvicorn takes it."""
    return type("LimitedProtocol", (PatientProtocol,), {"head_seconds": head_seconds})
