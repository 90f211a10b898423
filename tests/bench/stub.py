"""A server that answers with prepared bytes: what clients make of slow, broken and rude servers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


def said(text: str) -> bytes:
    return b'data: {"choices":[{"delta":{"content":"' + text.encode() + b'"}}]}\n\n'


def whole(status: int, body: bytes) -> bytes:
    return b"HTTP/1.1 %d X\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (status, len(body)) + body


USAGE = (
    b'data: {"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":3,"total_tokens":23,'
    b'"prompt_tokens_details":{"cached_tokens":16}}}\n\n'
)
DONE = b"data: [DONE]\n\n"


@dataclass
class Stub:
    """``parts`` are sent in turn: bytes, or seconds to wait."""

    parts: Sequence[bytes | float]
    url: str = ""
    requests: list[bytes] = field(default_factory=list)
    """Heads and bodies as they came."""
    resets: int = 0
    closes: int = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        self.requests.append(head + await reader.readexactly(int(length.split(b":")[1])))
        watching = asyncio.create_task(self._watch(reader))
        try:
            with contextlib.suppress(OSError):
                for part in self.parts:
                    if isinstance(part, bytes):
                        writer.write(part)
                        await writer.drain()
                    else:
                        await asyncio.sleep(part)
                writer.write_eof()
            await watching
        finally:
            watching.cancel()
            writer.transport.abort()

    async def _watch(self, reader: asyncio.StreamReader) -> None:
        """How the client ended the connection."""
        try:
            while await reader.read(1024):
                pass
            self.closes += 1
        except ConnectionResetError:
            self.resets += 1


@contextlib.asynccontextmanager
async def serving(*parts: bytes | float) -> AsyncIterator[Stub]:
    stub = Stub(parts)
    handlers: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.add(asyncio.create_task(stub.handle(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        stub.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield stub
        for handler in handlers:
            handler.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)
        await asyncio.sleep(0)  # transports close in the loop's next turn
