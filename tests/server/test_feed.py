"""The engine's event stream: the newest state for everybody, made once, without a backlog, and with an end."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from starlette.requests import Request

from engine import Engine
from engine.messages import EngineSnapshot
from ignis_desktop.server import feed as feed_module
from ignis_desktop.server import sse
from ignis_desktop.server.feed import PERIOD, EngineFeed
from ignis_desktop.server.settings import Settings
from ignis_desktop.server.thread import ServerThread
from tests.busy import busy

EVENTS = "/v1/engine/events"


class Source:
    """Stands for the engine: gives the snapshot that was put there last."""

    def __init__(self) -> None:
        self.now = busy(0.0)

    def __call__(self) -> EngineSnapshot:
        return self.now


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[EngineSnapshot]:
    """The snapshots that were turned into JSON."""
    found: list[EngineSnapshot] = []
    real = feed_module.snapshot_bytes

    def counted(snapshot: EngineSnapshot) -> bytes:
        found.append(snapshot)
        return real(snapshot)

    monkeypatch.setattr(feed_module, "snapshot_bytes", counted)
    return found


def request() -> Request:
    return Request({"type": "http", "headers": []})


def body(frame: bytes) -> dict:
    head, data = frame.decode().rstrip("\n").split("\n")
    assert head == "event: snapshot"
    return json.loads(data.removeprefix("data: "))


async def soon(frames: AsyncGenerator[bytes, None]) -> bytes:
    return await asyncio.wait_for(anext(frames), 5)


async def silent(frames: AsyncGenerator[bytes, None], seconds: float) -> asyncio.Task[bytes]:
    """A wait for the next frame, which goes on for so long."""
    waiting = asyncio.ensure_future(anext(frames))
    await asyncio.sleep(seconds)
    assert not waiting.done()
    return waiting


def test_the_first_event_is_the_state_now_and_the_next_comes_when_it_has_changed(source: Source) -> None:
    async def listen() -> None:
        feed = EngineFeed(source)
        async with aclosing(feed.listen(request()).frames()) as frames:
            assert body(await soon(frames))["counters"]["rounds"] == source.now.rounds
            waiting = await silent(frames, 3 * PERIOD)
            source.now = replace(source.now, time=source.now.time + 1)
            await asyncio.sleep(3 * PERIOD)
            assert not waiting.done(), "the clock alone is no news"
            source.now = busy(10.0)
            assert body(await asyncio.wait_for(waiting, 5))["counters"]["rounds"] == busy(10.0).rounds
            feed.close()

    asyncio.run(listen())


def test_never_more_than_thirty_a_second_and_each_is_made_once(source: Source, made: list[EngineSnapshot]) -> None:
    seconds, listeners = 0.5, 24

    async def listen() -> list[int]:
        feed = EngineFeed(source)

        async def count() -> int:
            seen = 0
            async for _ in feed.listen(request()).frames():
                seen += 1
            return seen

        counting = [asyncio.create_task(count()) for _ in range(listeners)]
        end = time.monotonic() + seconds
        step = 0
        while time.monotonic() < end:  # the engine publishes far more often than anybody wants to know
            step += 1
            source.now = busy(step / 100)
            await asyncio.sleep(0.002)
        feed.close()
        return await asyncio.gather(*counting)

    counts = asyncio.run(listen())
    assert max(counts) <= seconds / PERIOD + 2
    assert min(counts) >= 3
    assert len(made) == max(counts), "one rendering for all of them"


def test_a_slow_reader_gets_the_newest_state_and_no_backlog(source: Source) -> None:
    async def listen() -> None:
        feed = EngineFeed(source)
        async with aclosing(feed.listen(request()).frames()) as frames:
            await soon(frames)
            for step in range(1, 8):
                source.now = busy(float(step))
                await asyncio.sleep(1.5 * PERIOD)
            assert body(await soon(frames))["counters"]["rounds"] == busy(7.0).rounds
            waiting = await silent(frames, 2 * PERIOD)
            feed.close()
            with pytest.raises(StopAsyncIteration):
                await waiting

    asyncio.run(listen())


def test_silence_is_broken_by_comments(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "KEEP_ALIVE_SECONDS", 0.1)

    async def listen() -> None:
        feed = EngineFeed(source)
        async with aclosing(feed.listen(request()).frames()) as frames:
            await soon(frames)
            began = time.monotonic()
            assert [await soon(frames), await soon(frames)] == [sse.KEEP_ALIVE] * 2
            assert 0.15 < time.monotonic() - began < 2.0
            feed.close()

    asyncio.run(listen())


def test_nothing_runs_while_nobody_listens(source: Source, made: list[EngineSnapshot]) -> None:
    async def listen() -> None:
        feed = EngineFeed(source)
        first, second = feed.listen(request()), feed.listen(request())
        streams = [first.frames(), second.frames()]
        for stream in streams:
            await soon(stream)
        waiting = [await silent(stream, 2 * PERIOD) for stream in streams]
        first.leave()
        with pytest.raises(StopAsyncIteration):
            await asyncio.wait_for(waiting[0], 5)
        source.now = busy(3.0)
        assert body(await asyncio.wait_for(waiting[1], 5))
        second.leave()
        second.close()
        before = len(made)
        source.now = busy(4.0)
        await asyncio.sleep(4 * PERIOD)
        assert len(made) == before
        third = feed.listen(request())
        async with aclosing(third.frames()) as frames:
            assert body(await soon(frames))["counters"]["rounds"] == busy(4.0).rounds
        third.close()

    asyncio.run(listen())


# On a real socket


def test_the_stream_starts_with_what_the_engine_route_says(http: httpx.Client) -> None:
    with http.stream("GET", EVENTS) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = stream.iter_lines()
        assert next(lines) == "event: snapshot"
        first = json.loads(next(lines).removeprefix("data: "))
    assert first.keys() == http.get("/v1/engine").json().keys()
    assert first["state"] == "ready"


def test_a_request_shows_up_and_goes(http: httpx.Client, server: ServerThread) -> None:
    states: list[tuple[str, ...]] = []
    generation = {"prompt": "Once", "max_tokens": 200, "ignore_eos": True}
    asking = threading.Thread(
        target=lambda: httpx.post(f"{server.url}/v1/completions", json=generation, trust_env=False)
    )
    with http.stream("GET", EVENTS) as stream:
        for line in stream.iter_lines():
            if not line.startswith("data: "):
                continue
            if not states:
                asking.start()
            states.append(tuple(lane["state"] for lane in json.loads(line.removeprefix("data: "))["lanes"]))
            if any("decode" in seen for seen in states) and set(states[-1]) == {"idle"}:
                break
    asking.join()


def test_a_listener_that_leaves_is_no_fault(
    http: httpx.Client, server: ServerThread, wait_until: Callable[[Callable[[], bool], float], float]
) -> None:
    with http.stream("GET", EVENTS) as stream:
        next(stream.iter_lines())

    def ended() -> list[tuple[int | None, str]]:
        return [(r.status, r.error) for r in server.log.records() if r.path == EVENTS and r.status is not None]

    wait_until(lambda: len(ended()) == sum(r.path == EVENTS for r in server.log.records()), 5)
    assert ended()[-1] == (200, "")


def test_the_streams_end_with_the_server(engine: Engine, tmp_path: Path) -> None:
    ends: list[str] = []
    server = ServerThread(engine, Settings(port=0, runtime_directory=tmp_path))
    server.start()
    begun = threading.Semaphore(0)

    def listen() -> None:
        with httpx.stream("GET", server.url + EVENTS, timeout=30, trust_env=False) as stream:
            for number, _ in enumerate(stream.iter_lines()):
                if number == 0:
                    begun.release()
        ends.append("whole")  # a connection that is cut raises instead

    listeners = [threading.Thread(target=listen) for _ in range(6)]
    for listener in listeners:
        listener.start()
    for _ in listeners:
        assert begun.acquire(timeout=10)
    began = time.monotonic()
    server.stop()
    assert time.monotonic() - began < 2.0
    for listener in listeners:
        listener.join(5)
    assert ends == ["whole"] * 6
