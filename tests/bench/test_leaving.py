"""Clients that leave do so when they are told to, and in the way they are told to."""

from __future__ import annotations

import asyncio
import time

import pytest

from ignis_desktop.bench.leaving import Leave, Left, ask_and_leave
from tests.bench.stub import DONE, STREAM, Stub, said, serving, whole


def leave(how: Leave, *parts: bytes | float) -> tuple[Left, Stub, float]:
    async def run() -> tuple[Left, Stub, float]:
        async with serving(*parts) as stub:
            began = time.monotonic()
            left = await ask_and_leave(stub.url, "secret", "/v1/chat/completions", {"stream": True}, how)
            seconds = time.monotonic() - began
            async with asyncio.timeout(5):
                while not stub.closes + stub.resets:
                    await asyncio.sleep(0.01)
            return left, stub, seconds

    return asyncio.run(run())


@pytest.mark.parametrize("reset", [False, True])
def test_after_so_many_pieces(reset: bool) -> None:
    parts = (STREAM, said("a"), 0.05, said("b"), 0.05, said("c"), 1.0)
    left, stub, seconds = leave(Leave(30, pieces=2, reset=reset), *parts)
    assert left == Left(200, done=False)
    assert seconds < 5
    assert (stub.closes, stub.resets) == ((0, 1) if reset else (1, 0))
    assert b"Authorization: Bearer secret" in stub.requests[0]
    assert stub.requests[0].endswith(b'{"stream": true}')


@pytest.mark.parametrize("reset", [False, True])
def test_before_anything_came(reset: bool) -> None:
    left, stub, seconds = leave(Leave(0.1, reset=reset), 1.0)
    assert left == Left(None, done=False)
    assert 0.1 <= seconds < 1.0
    assert (stub.closes, stub.resets) == ((0, 1) if reset else (1, 0))


@pytest.mark.parametrize(
    ("answer", "status"),
    [(STREAM + said("a") + DONE, 200), (whole(200, b'{"choices": []}'), 200), (whole(503, b'{"error": {}}'), 503)],
)
def test_an_answer_that_was_quicker(answer: bytes, status: int) -> None:
    left, _, _ = leave(Leave(30), answer)
    assert left == Left(status, done=True)
