"""What the client notes of good, bad and slow answers."""

from __future__ import annotations

import asyncio
import time

import pytest

from ignis_desktop.bench.client import Ask, LoadClient, Outcome
from ignis_desktop.bench.load import Arrival, lateness, open_loop
from ignis_desktop.cli.errors import CommandError
from tests.bench.stub import DONE, STREAM, USAGE, Stub, said, serving, whole

HELLO = Ask([{"role": "user", "content": "hello"}], 3, "agent", seed=5)


def ask(*parts: bytes | float, scheduled: float | None = None) -> tuple[Outcome, Stub]:
    async def run() -> tuple[Outcome, Stub]:
        async with serving(*parts) as stub, LoadClient(stub.url, "secret") as client:
            return await client.ask(HELLO, scheduled), stub

    return asyncio.run(run())


def test_a_stream_is_timed_piece_by_piece() -> None:
    outcome, stub = ask(STREAM, said(""), 0.2, said("a"), 0.1, said("b") + said("c"), USAGE, DONE)
    assert outcome.status == "ok", outcome.error
    assert outcome.text == "abc"
    assert outcome.first_seconds is not None
    assert outcome.first_seconds >= 0.2  # the empty first chunk is no token
    assert outcome.gaps[0] >= 0.1
    assert outcome.gaps[1] == 0
    assert (outcome.prompt_tokens, outcome.cached_tokens, outcome.output_tokens) == (20, 16, 3)
    (request,) = stub.requests
    assert b"authorization: bearer secret" in request.lower()
    for part in (b'"class":"agent"', b'"max_tokens":3', b'"ignore_eos":true', b'"include_usage":true', b'"seed":5'):
        assert part in request.replace(b": ", b":"), part


def test_events_may_be_cut_anywhere() -> None:
    data = STREAM + said("one") + said("two") + USAGE + DONE
    parts: list[bytes | float] = []
    for start in range(0, len(data), 7):
        parts += [data[start : start + 7], 0.0]
    outcome, _ = ask(*parts)
    assert (outcome.status, outcome.text, len(outcome.pieces)) == ("ok", "onetwo", 2)


def test_latency_counts_from_when_a_request_was_due() -> None:
    due = time.monotonic() - 5
    outcome, _ = ask(STREAM, said("a"), USAGE, DONE, scheduled=due)
    assert outcome.first_seconds is not None
    assert 5 <= outcome.first_seconds < 10
    assert lateness([outcome])[0] >= 5


@pytest.mark.parametrize(
    ("parts", "status", "error"),
    [
        ((whole(503, b'{"error":{"message":"the queue is full"}}'),), "refused", "the queue is full"),
        ((whole(429, b"{}"),), "refused", "{}"),
        ((whole(400, b'{"error":{"message":"too long"}}'),), "failed", "too long"),
        ((STREAM, said("a")), "failed", "the stream ended without [DONE]"),
        (
            (STREAM, said("a"), b'event: error\ndata: {"error":{"message":"the pass failed"}}\n\n'),
            "failed",
            "the pass failed",
        ),
        ((b"nonsense\r\n\r\n",), "failed", "RemoteProtocolError"),
    ],
)
def test_faults_are_told_apart(parts: tuple[bytes, ...], status: str, error: str) -> None:
    outcome, _ = ask(*parts)
    assert outcome.status == status
    assert error in outcome.error


def test_nobody_listens(closed_port: int) -> None:
    async def run() -> Outcome:
        async with LoadClient(f"http://127.0.0.1:{closed_port}") as client:
            with pytest.raises(CommandError, match="does not answer"):
                await client.get("/v1/engine")
            return await client.ask(HELLO)

    outcome = asyncio.run(run())
    assert outcome.status == "failed"
    assert "ConnectError" in outcome.error


def test_a_client_that_is_cancelled_leaves() -> None:
    async def run() -> tuple[Outcome, Stub]:
        async with serving(STREAM, said("a"), 5.0) as stub, LoadClient(stub.url) as client:
            outcome = Outcome("agent", 0.0, 0.0)
            task = asyncio.create_task(client.read(HELLO, outcome))
            while not outcome.pieces:
                await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            async with asyncio.timeout(5):
                while not stub.closes + stub.resets:
                    await asyncio.sleep(0.01)
            return outcome, stub

    outcome, stub = asyncio.run(run())
    assert outcome.status == "left"
    assert outcome.ended > outcome.pieces[0]
    assert stub.closes == 1


def test_arrivals_wait_for_nobody() -> None:
    """Ten requests in half a second to a server that takes a second for each: all are sent on time."""

    async def run() -> list[Outcome]:
        async with serving(STREAM, 1.0, said("a"), USAGE, DONE) as stub, LoadClient(stub.url) as client:
            return await open_loop(client, [Arrival(0.05 * number, HELLO) for number in range(10)])

    began = time.monotonic()
    outcomes = asyncio.run(run())
    assert [outcome.status for outcome in outcomes] == ["ok"] * 10
    assert time.monotonic() - began < 5
    offsets = [outcome.scheduled - outcomes[0].scheduled for outcome in outcomes]
    assert offsets == pytest.approx([0.05 * number for number in range(10)])
    assert outcomes[-1].sent < outcomes[0].ended
    assert all(outcome.first_seconds and outcome.first_seconds >= 1.0 for outcome in outcomes)
