"""What connections cost: streams, hundreds that are idle, and one whose client does not read."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ignis_desktop.bench.client import Ask, Outcome
from ignis_desktop.bench.leaving import request_bytes
from ignis_desktop.bench.report import ScenarioReport, Verdict
from ignis_desktop.bench.scenarios.base import Bench, Stopwatch
from ignis_desktop.bench.stats import median
from ignis_desktop.bench.watch import wait_idle
from ignis_desktop.cli.errors import CommandError

TITLE = "streams beside idle connections and beside a client that does not read"
REPEATS = 3
PROMPT, ANSWER = 64, 64
UNREAD_TOKENS = 512
"""With twenty alternatives each: more than the buffers of a connection hold."""
RECEIVE_BYTES = 4096
IDLE = 500
QUIET_SECONDS = 5.0
"""Processor time comes in ticks of 10 ms: one is 0.2 % of this."""
TOKEN_MS, IDLE_SHARE, RATE_SHARE = 0.5, 0.005, 0.9
"""Milliseconds of the server's threads a token; processors that idle connections keep busy; share of their rate that
streams keep."""


@dataclass
class Samples:
    """Of each turn: tokens a second of the streams, prompts included; the server's milliseconds a token; its share of a
    processor while nothing is asked."""

    rates: list[float] = field(default_factory=list)
    token_ms: list[float] = field(default_factory=list)
    idle: list[float] = field(default_factory=list)

    def json(self) -> dict[str, Any]:
        return {
            "tokens_per_second": [round(rate, 2) for rate in self.rates],
            "server_ms_per_token": [round(cost, 4) for cost in self.token_ms],
            "idle_processors": [round(share, 5) for share in self.idle],
        }


async def run(bench: Bench) -> ScenarioReport:
    """Each turn measures all cases, so that a machine that slows down slows them alike. One lane is left to the client
    that reads or does not."""
    watch = Stopwatch()
    cases = {"streams": Samples(), "idle": Samples(), "read": Samples(), "unread": Samples()}
    for turn in range(REPEATS + 1):  # the first one warms up
        for name, samples in cases.items():
            bench.say(f"{name}, {turn} of {REPEATS}")
            one = Samples() if turn == 0 else samples
            if name == "streams":
                await _measure(bench, bench.lanes, one)
                await _quiet(bench, one)
            elif name == "idle":
                async with _idle_connections(bench):
                    await _measure(bench, bench.lanes, one)
                    await _quiet(bench, one)
            else:
                async with _bulky_stream(bench, read=name == "read"):
                    await _measure(bench, max(bench.lanes - 1, 1), one)
            await wait_idle(bench.client)
    return _report(cases, watch.seconds)


def _report(cases: dict[str, Samples], seconds: float) -> ScenarioReport:
    report = ScenarioReport("connections", TITLE, seconds)
    rows: list[Sequence[str]] = []
    for name, samples in cases.items():
        cost = f"{median(samples.token_ms):.3f}" if samples.token_ms else "-"
        idle = f"{median(samples.idle):.2%}" if samples.idle else "-"
        rows.append((name, f"{median(samples.rates):.1f}", cost, idle))
    report.tables.append((("beside", "tokens/s", "server ms/token", "idle processor"), rows))
    report.facts |= {name: samples.json() for name, samples in cases.items()}
    elsewhere = "the server was not started here"
    token = median(cases["streams"].token_ms) if cases["streams"].token_ms else None
    report.verdicts.append(
        Verdict(
            "server's processor time per streamed token",
            "-" if token is None else f"{token:.3f} ms",
            f"≤ {TOKEN_MS:g} ms",
            None if token is None else token <= TOKEN_MS,
            elsewhere if token is None else "",
        )
    )
    added = median(cases["idle"].idle) - median(cases["streams"].idle) if cases["idle"].idle else None
    report.verdicts.append(
        Verdict(
            f"processor that {IDLE} idle connections keep busy",
            "-" if added is None else f"{max(added, 0.0):.2%}",
            f"≤ {IDLE_SHARE:.1%} of one",
            None if added is None else added <= IDLE_SHARE,
            elsewhere if added is None else "",
        )
    )
    for name, case, base in (
        (f"rate beside {IDLE} idle connections", "idle", "streams"),
        ("rate beside a client that does not read, against one that does", "unread", "read"),
    ):
        # Pairs of the same turn: what slowed the machine in one turn is not the connection's doing.
        share = median([a / b for a, b in zip(cases[case].rates, cases[base].rates, strict=True)])
        report.verdicts.append(Verdict(name, f"{share:.2f} ×", f"≥ {RATE_SHARE:g} ×", share >= RATE_SHARE))
    return report


async def _measure(bench: Bench, streams: int, samples: Samples) -> None:
    rng = bench.rng("connections", streams)
    asks = [Ask(await bench.maker.chat(rng, bench.scaled(PROMPT)), ANSWER, seed=seed) for seed in range(streams)]
    before = bench.target.server_seconds()
    outcomes: list[Outcome] = await asyncio.gather(*map(bench.client.ask, asks))
    after = bench.target.server_seconds()
    for outcome in outcomes:
        if outcome.status != "ok" or len(outcome.pieces) < 2:
            raise CommandError(f"A stream was not answered: {outcome.error or 'it had no text'}")
    written = sum(outcome.output_tokens for outcome in outcomes)
    taken = max(outcome.ended for outcome in outcomes) - min(outcome.sent for outcome in outcomes)
    samples.rates.append(written / taken)
    if before is not None and after is not None:
        samples.token_ms.append(1e3 * (after - before) / written)


async def _quiet(bench: Bench, samples: Samples) -> None:
    """What the server's threads do while nothing is asked."""
    await wait_idle(bench.client)
    before = bench.target.server_seconds()
    await asyncio.sleep(QUIET_SECONDS)
    after = bench.target.server_seconds()
    if before is not None and after is not None:
        samples.idle.append((after - before) / QUIET_SECONDS)


@contextlib.asynccontextmanager
async def _idle_connections(bench: Bench) -> AsyncIterator[None]:
    """Connections on which one request was answered, and which are then kept."""
    parts = urlsplit(bench.target.url)
    head = f"GET /health HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode()
    writers: list[asyncio.StreamWriter] = []
    try:
        for _ in range(IDLE):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            writers.append(writer)
            writer.write(head)
            await reader.readuntil(b"\r\n\r\n")
        yield
    finally:
        for writer in writers:
            writer.transport.abort()


@contextlib.asynccontextmanager
async def _bulky_stream(bench: Bench, *, read: bool) -> AsyncIterator[None]:
    """A stream with many bytes a token, longer than those beside it, which is read or left unread; it has begun."""
    parts = urlsplit(bench.target.url)
    messages = await bench.maker.chat(bench.rng("bulky"), bench.scaled(PROMPT))
    body = {**Ask(messages, UNREAD_TOKENS).body(), "logprobs": True, "top_logprobs": 20}
    host = parts.hostname or ""
    link = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)  # before connecting: it bounds the window
    link.connect((host, parts.port or 80))
    reader, writer = await asyncio.open_connection(sock=link, limit=RECEIVE_BYTES)
    reading: asyncio.Task[None] | None = None
    try:
        writer.write(request_bytes(parts.netloc, bench.target.key, "/v1/chat/completions", body))
        status = (await reader.readline()).split(b" ")[1:2]
        if status != [b"200"]:
            raise CommandError(f"A stream was not answered: status {b''.join(status).decode() or 'missing'}")
        if read:
            reading = asyncio.create_task(_swallow(reader))
        yield
    finally:
        if reading is not None:
            reading.cancel()
        writer.transport.abort()


async def _swallow(reader: asyncio.StreamReader) -> None:
    while await reader.read(65536):
        pass
