"""The live request log's ring."""

from __future__ import annotations

import threading

from ignis_desktop.server.request_log import RequestLog


def test_a_request_is_shown_while_it_runs_and_after_it_finished() -> None:
    log = RequestLog()
    opened = log.begin("POST", "/v1/chat/completions", "127.0.0.1 curl")
    (running,) = log.records()
    assert (running.status, running.milliseconds) == (None, None)
    opened.note(request_class="agent", output_tokens=3)
    done = opened.finish(200)
    assert log.records() == (done,)
    assert (done.number, done.status, done.request_class, done.output_tokens) == (running.number, 200, "agent", 3)
    assert done.milliseconds is not None


def test_the_ring_keeps_the_newest_in_order() -> None:
    log = RequestLog(size=3)
    opened = [log.begin("GET", f"/{n}", "") for n in range(5)]
    for entry in reversed(opened):
        entry.finish(200)
    assert [record.path for record in log.records()] == ["/0", "/1", "/2"]
    log.clear()
    assert log.records() == ()


def test_the_version_tells_that_something_changed() -> None:
    log = RequestLog()
    seen = {log.version}
    opened = log.begin("GET", "/", "")
    seen.add(log.version)
    opened.note(error="busy")
    seen.add(log.version)
    opened.finish(503)
    seen.add(log.version)
    assert len(seen) == 4


def test_a_reader_in_another_thread_sees_whole_records() -> None:
    log = RequestLog(size=50)
    stop = threading.Event()
    broken: list[object] = []

    def read() -> None:
        while not stop.is_set():
            numbers = [record.number for record in log.records()]
            if numbers != sorted(set(numbers)):
                broken.append(numbers)

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(2000):
        log.begin("GET", "/", "").finish(200)
    stop.set()
    reader.join()
    assert broken == []
    assert len(log.records()) == 50
