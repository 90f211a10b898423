"""Clients that leave: their lanes are idle again at once, in the queue, in prefill and in decode."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import time
from collections.abc import Callable, Iterator

import pytest

from engine import Engine
from ignis_desktop.server.thread import ServerThread

Wait = Callable[[Callable[[], bool], float], float]
LANES = 8
CHAT = "/v1/chat/completions"


@contextlib.contextmanager
def clients(server: ServerThread, path: str, body: dict, count: int) -> Iterator[list[socket.socket]]:
    """Raw connections with one request on each; closing one is what a client does that is killed."""
    host, port = server.url.removeprefix("http://").split(":")
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: {len(data)}\r\n\r\n".encode()
    with contextlib.ExitStack() as stack:
        connections = [
            stack.enter_context(socket.create_connection((host, int(port)), timeout=30)) for _ in range(count)
        ]
        for connection in connections:
            connection.sendall(head + data)
        yield connections


def drop(connections: list[socket.socket], *, reset: bool = False) -> None:
    for connection in connections:
        if reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()


def endless(*, stream: bool) -> dict:
    messages = [{"role": "user", "content": "Tell me everything."}]
    return {"messages": messages, "stream": stream, "ignore_eos": True, "max_tokens": 4000, "temperature": 1.0}


def lanes(engine: Engine, state: str) -> int:
    return sum(lane.state == state for lane in engine.snapshot().lanes)


def all_idle(engine: Engine) -> bool:
    now = engine.snapshot()
    return lanes(engine, "idle") == len(now.lanes) and now.queued_interactive + now.queued_agent == 0


@pytest.fixture(autouse=True)
def idle_before(engine: Engine, wait_until: Wait) -> None:
    wait_until(lambda: all_idle(engine), 10)


@pytest.mark.parametrize("stream", [True, False], ids=["sse", "plain"])
@pytest.mark.parametrize("reset", [False, True], ids=["fin", "rst"])
def test_eight_that_drop_in_decode(
    server: ServerThread, engine: Engine, wait_until: Wait, stream: bool, reset: bool
) -> None:
    before = engine.snapshot()
    with clients(server, CHAT, endless(stream=stream), LANES) as connections:
        wait_until(lambda: lanes(engine, "decode") == LANES, 30)
        if stream:
            for connection in connections:
                assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        drop(connections, reset=reset)
        wait_until(lambda: all_idle(engine), 2.0)
    after = engine.snapshot()
    assert after.requests_finished == before.requests_finished
    assert after.requests_cancelled == before.requests_cancelled + LANES
    wait_until(lambda: all(record.status is not None for record in server.log.records()), 2.0)
    newest = server.log.records()[-LANES:]
    assert {(record.status, record.error) for record in newest} == {(499, "client_gone")}


@pytest.mark.parametrize("stream", [True, False], ids=["sse", "plain"])
def test_those_that_drop_in_prefill(server: ServerThread, engine: Engine, wait_until: Wait, stream: bool) -> None:
    long = {"prompt": [5] * (engine.info.context_length - 100), "stream": stream, "max_tokens": 16, "ignore_eos": True}
    generated = engine.snapshot().tokens_generated
    with clients(server, "/v1/completions", long, 2) as connections:
        wait_until(lambda: lanes(engine, "prefill") > 0, 30)
        drop(connections)
        wait_until(lambda: all_idle(engine), 2.0)
    assert engine.snapshot().tokens_generated == generated


@pytest.mark.parametrize("stream", [True, False], ids=["sse", "plain"])
def test_those_that_drop_in_the_queue(server: ServerThread, engine: Engine, wait_until: Wait, stream: bool) -> None:
    body = endless(stream=stream)
    with clients(server, CHAT, body, LANES) as holders:
        wait_until(lambda: lanes(engine, "decode") == LANES, 30)
        with clients(server, CHAT, body, 3) as waiting:
            wait_until(lambda: engine.snapshot().queued_interactive == 3, 5)
            drop(waiting)
            wait_until(lambda: engine.snapshot().queued_interactive == 0, 2.0)
        assert lanes(engine, "decode") == LANES
        drop(holders)
        wait_until(lambda: all_idle(engine), 2.0)


def test_several_prompts_of_one_client(server: ServerThread, engine: Engine, wait_until: Wait) -> None:
    body = {"prompt": ["a", "b", "c", "d"], "max_tokens": 4000, "ignore_eos": True, "stream": True}
    with clients(server, "/v1/completions", body, 1) as connections:
        wait_until(lambda: lanes(engine, "decode") == 4, 30)
        drop(connections)
        wait_until(lambda: all_idle(engine), 2.0)


def test_eight_that_drop_from_ember(ember_server: ServerThread, ember: Engine, wait_until: Wait) -> None:
    body = {**endless(stream=True), "max_tokens": 1000}
    with clients(ember_server, CHAT, body, LANES) as connections:
        wait_until(lambda: lanes(ember, "decode") == LANES, 60)
        for connection in connections:
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        drop(connections)
        wait_until(lambda: all_idle(ember), 2.0)


def test_one_that_drops_during_a_zero_token_answer(server: ServerThread, engine: Engine, wait_until: Wait) -> None:
    lines = "\n".join(f"{n} the quick brown fox jumps over the lazy dog {n * 7919}" for n in range(20_000))
    # Each question is a small request of its own: what counts is that no further one follows.
    questions = {f"q{n}": {"type": "locate", "instructions": f"Which line is number {n}?"} for n in range(200)}
    before = engine.snapshot()
    with clients(server, "/v1/decide", {"state": lines, "questions": questions}, 1) as connections:
        wait_until(lambda: engine.snapshot().tokens_prefilled > before.tokens_prefilled, 30)
        drop(connections)
        wait_until(lambda: server.log.records()[-1].status is not None, 10)
    assert (server.log.records()[-1].status, server.log.records()[-1].error) == (499, "client_gone")
    ended = time.monotonic()
    wait_until(lambda: engine.snapshot().time > ended and all_idle(engine), 10)
    after = engine.snapshot()
    assert after.requests_finished - before.requests_finished < len(questions)
    time.sleep(0.3)
    assert engine.snapshot().tokens_prefilled == after.tokens_prefilled
