"""The reader's end of a request, without an engine."""

from __future__ import annotations

import threading
import time

import pytest

from engine.messages import EngineError, Event, Failed, Finished, Prefilled, Started, Tokens, Usage
from engine.stream import LIMIT, Stream

END = Finished("stop", Usage(1, 0, 1))


def stream() -> Stream:
    return Stream("a", lambda _: None)


def fill(stream: Stream, *events: Event) -> None:
    for event in events:
        stream.put(event)


def test_iterating_ends_with_the_last_event_and_again_with_none() -> None:
    one = stream()
    fill(one, Started(0.0), Tokens((1,), "a"), END)
    assert list(one) == [Started(0.0), Tokens((1,), "a"), END]
    assert list(one) == []
    assert one.get() is None
    assert one.poll() == []


def test_nothing_comes_after_the_end() -> None:
    one = stream()
    assert one.put(END)
    assert one.ended
    assert not one.put(Tokens((1,), "late"))
    assert not one.put(END)
    assert list(one) == [END]


def test_waiting_has_a_limit() -> None:
    one = stream()
    before = time.monotonic()
    assert one.get(0.05) is None
    assert 0.04 < time.monotonic() - before < 2
    assert one.get(0) is None


def test_an_event_wakes_the_reader_at_once() -> None:
    one = stream()
    woken: list[tuple[Event | None, float]] = []
    reader = threading.Thread(target=lambda: woken.append((one.get(), time.monotonic())))
    reader.start()
    time.sleep(0.05)
    put = time.monotonic()
    one.put(Started(0.0))
    reader.join(5)
    assert woken[0][0] == Started(0.0)
    assert woken[0][1] - put < 0.4  # far from the half second after which a wait looks again


def test_begun_is_when_the_queue_is_left() -> None:
    one, refused = stream(), stream()
    assert not one.begun
    one.put(Started(0.0))
    assert one.begun
    refused.put(Failed(EngineError("no")))
    assert refused.begun
    assert refused.ended


def test_one_call_until_the_reader_took_all() -> None:
    one = stream()
    calls: list[int] = []
    one.notify(lambda: calls.append(1))
    assert calls == []
    fill(one, Started(0.0), Prefilled(1, 2), Prefilled(2, 2))
    assert calls == [1]
    assert len(one.poll()) == 3
    fill(one, Tokens((1,), "a"), END)
    assert calls == [1, 1]
    assert one.poll() == [Tokens((1,), "a"), END]


def test_events_that_lie_there_are_told_at_once() -> None:
    one = stream()
    one.put(Started(0.0))
    calls: list[int] = []
    one.notify(lambda: calls.append(1))
    assert calls == [1]


def test_no_event_is_missed_between_poll_and_notify() -> None:
    """A reader that only looks when told, against a writer in another thread, reads everything."""
    one = stream()
    told = threading.Event()
    one.notify(told.set)
    count = 3_000

    def write() -> None:
        for number in range(count):
            one.put(Tokens((number,), ""))
            if number % 100 == 0:
                time.sleep(0)
        one.put(END)

    writer = threading.Thread(target=write)
    writer.start()
    events: list[Event] = []
    while not events or events[-1] is not END:
        assert told.wait(10)
        told.clear()
        events += one.poll()
    writer.join()
    assert [event.ids[0] for event in events if isinstance(event, Tokens)] == list(range(count))


def test_a_reader_that_leaves_too_much_lying_is_cut_off() -> None:
    one = stream()
    for number in range(LIMIT):
        assert one.put(Tokens((number,), ""))
    assert not one.put(Tokens((LIMIT,), ""))
    assert one.ended
    *read, last = list(one)
    assert len(read) == LIMIT
    assert isinstance(last, Failed)
    assert last.error.code == "slow_reader"


def test_the_end_is_never_lost_to_the_limit() -> None:
    one = stream()
    for number in range(LIMIT):
        one.put(Tokens((number,), ""))
    assert one.put(END)
    assert list(one)[-1] is END


def test_a_callback_that_fails_does_not_reach_the_engine(caplog: pytest.LogCaptureFixture) -> None:
    one = stream()
    one.notify(lambda: 1 / 0)
    assert one.put(Started(0.0))
    assert "could not be told" in caplog.text
    assert one.poll() == [Started(0.0)]
