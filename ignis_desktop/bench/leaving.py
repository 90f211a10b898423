"""Clients that leave: requests whose connection is dropped before the answer is whole, as killed programs do."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

READ_BYTES = 65_536


@dataclass(frozen=True)
class Leave:
    """When and how a client leaves: after ``pieces`` events of a stream, else after ``seconds``."""

    seconds: float
    pieces: int = 0
    reset: bool = False
    """The connection is reset instead of closed in order."""


@dataclass(frozen=True)
class Left:
    """What a client that left had seen."""

    status: int | None
    """HTTP status, None when no answer had begun."""
    done: bool
    """The answer was whole before the client could leave."""


async def ask_and_leave(url: str, key: str | None, path: str, body: dict[str, Any], leave: Leave) -> Left:
    """Send a request on a connection of its own and drop it. Raises ``OSError`` when the server does not listen."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    seen = b""
    try:
        writer.write(request_bytes(parts.netloc, key, path, body))

        async def watch() -> None:
            nonlocal seen
            while data := await reader.read(READ_BYTES):
                seen += data
                if leave.pieces and seen.count(b"data: {") >= leave.pieces:
                    return

        with contextlib.suppress(TimeoutError):
            # A stream that is waited for by its pieces is left after a while too, should they never come.
            await asyncio.wait_for(watch(), leave.seconds)
    finally:
        if leave.reset:
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
    head = seen.split(b" ", 2)
    status = int(head[1]) if len(head) > 1 and head[1].isdigit() else None
    return Left(status, _whole(seen))


def request_bytes(host: str, key: str | None, path: str, body: dict[str, Any]) -> bytes:
    """A whole POST of JSON."""
    data = json.dumps(body).encode()
    key_line = f"Authorization: Bearer {key}\r\n" if key else ""
    # "close": the server ends the connection after the answer, so that a whole one is seen as such.
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{key_line}Content-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


def _whole(seen: bytes) -> bool:
    head, blank, answer = seen.partition(b"\r\n\r\n")
    if not blank:
        return False
    if b"text/event-stream" in head.lower():
        return b"data: [DONE]" in answer
    length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b"")
    return bool(length) and len(answer) >= int(length.partition(b":")[2])
