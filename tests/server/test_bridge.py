"""Engine streams on an event loop: nothing lost, many rings one wake-up, silence ends in time."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from engine.messages import EngineError, Failed, Finished, Started, Tokens, Usage
from engine.stream import Stream
from ignis_desktop.server.bridge import Doorbell, EventReader
from ignis_desktop.server.errors import ClientGone

END = Finished("stop", Usage(1, 0, 1))


def stream_of(cancelled: list[str] | None = None, name: str = "r") -> Stream:
    return Stream(name, (cancelled if cancelled is not None else []).append)


def test_events_of_many_threads_arrive_complete_and_in_order() -> None:
    async def read() -> dict[int, list[int]]:
        streams = [stream_of(name=str(n)) for n in range(8)]
        reader = EventReader(streams, Doorbell(asyncio.get_running_loop()))

        def produce() -> None:
            for token in range(200):
                for stream in streams:
                    stream.put(Tokens((token,), ""))
                if token % 20 == 0:
                    time.sleep(0.001)
            for stream in streams:
                stream.put(END)

        thread = threading.Thread(target=produce)
        thread.start()
        seen: dict[int, list[int]] = {n: [] for n in range(8)}
        while not reader.ended:
            for index, event in await reader.batch(5.0):
                if isinstance(event, Tokens):
                    seen[index] += event.ids
        thread.join()
        return seen

    assert asyncio.run(read()) == {n: list(range(200)) for n in range(8)}


def test_a_round_of_eight_streams_wakes_the_loop_once() -> None:
    async def count() -> int:
        loop = asyncio.get_running_loop()
        calls = 0
        original = loop.call_soon_threadsafe

        def counted(*args, **kwargs):
            nonlocal calls
            calls += 1
            return original(*args, **kwargs)

        loop.call_soon_threadsafe = counted  # type: ignore[method-assign]
        doorbell = Doorbell(loop)
        streams = [stream_of(name=str(n)) for n in range(8)]
        readers = [EventReader([stream], doorbell) for stream in streams]
        waiting = [asyncio.create_task(reader.batch(5.0)) for reader in readers]
        await asyncio.sleep(0)
        for stream in streams:  # the engine's round, while the loop is busy elsewhere
            stream.put(Started(0.0))
        found = await asyncio.gather(*waiting)
        assert [len(batch) for batch in found] == [1] * 8
        return calls

    assert asyncio.run(count()) == 1


def test_silence_gives_an_empty_batch_in_time() -> None:
    async def wait() -> float:
        reader = EventReader([stream_of()], Doorbell(asyncio.get_running_loop()))
        began = time.monotonic()
        assert await reader.batch(0.05) == []
        return time.monotonic() - began

    assert 0.04 < asyncio.run(wait()) < 1.0


def test_waking_up_to_nothing_is_not_silence() -> None:
    async def wait() -> int:
        stream = stream_of()
        reader = EventReader([stream], Doorbell(asyncio.get_running_loop()))
        waiting = asyncio.create_task(reader.batch(5.0))
        await asyncio.sleep(0)
        reader.wake()
        await asyncio.sleep(0.01)
        assert not waiting.done()
        stream.put(Started(0.0))
        return len(await waiting)

    assert asyncio.run(wait()) == 1


def test_events_that_came_before_the_reader_are_read() -> None:
    async def read() -> int:
        stream = stream_of()
        stream.put(Started(0.0))
        stream.put(END)
        reader = EventReader([stream], Doorbell(asyncio.get_running_loop()))
        found = await reader.batch(1.0)
        assert reader.ended
        return len(found)

    assert asyncio.run(read()) == 2


def test_a_client_that_leaves_cancels_what_still_runs_and_wakes_the_reader() -> None:
    async def leave() -> list[str]:
        cancelled: list[str] = []
        streams = [stream_of(cancelled, "done"), stream_of(cancelled, "running")]
        reader = EventReader(streams, Doorbell(asyncio.get_running_loop()))
        streams[0].put(END)
        assert len(await reader.batch(1.0)) == 1
        waiting = asyncio.create_task(reader.batch(60.0))
        await asyncio.sleep(0)
        reader.leave()
        with pytest.raises(ClientGone):
            await asyncio.wait_for(waiting, 1.0)
        return cancelled

    assert asyncio.run(leave()) == ["running"]


def test_a_failure_ends_its_stream_only() -> None:
    async def read() -> tuple[bool, bool]:
        streams = [stream_of(name="a"), stream_of(name="b")]
        reader = EventReader(streams, Doorbell(asyncio.get_running_loop()))
        streams[0].put(Failed(EngineError("broken")))
        await reader.batch(1.0)
        before = reader.ended
        streams[1].put(END)
        await reader.batch(1.0)
        return before, reader.ended

    assert asyncio.run(read()) == (False, True)


def test_ringing_a_loop_that_has_ended_does_nothing() -> None:
    loop = asyncio.new_event_loop()
    doorbell = Doorbell(loop)
    loop.close()
    doorbell.ring(lambda: pytest.fail("called"))
