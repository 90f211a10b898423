"""Requests that wait: silence is kept alive, deadlines pass, queues fill up, others cancel."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import openai
import pytest

from engine import Engine
from ignis_desktop.server import generation
from ignis_desktop.server.settings import Settings
from ignis_desktop.server.thread import ServerThread

Wait = Callable[[Callable[[], bool], float], float]
ENDLESS = {"prompt": "Once", "max_tokens": 400, "ignore_eos": True, "stream": True}

EXTRA = {"extra_body": {"ignore_eos": True}}


@pytest.fixture
def one_lane(load_tiny: Callable[..., Engine], tmp_path: Path) -> Iterator[httpx.Client]:
    """A server whose engine has one lane and room for one waiting request."""
    engine = load_tiny(lanes=1, queue_limit=1)
    settings = Settings(port=0, runtime_directory=tmp_path)
    with ServerThread(engine, settings) as server, httpx.Client(base_url=server.url, trust_env=False) as client:
        yield client


def test_a_stream_that_waits_is_kept_alive(one_lane: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "KEEP_ALIVE_SECONDS", 0.02)
    with one_lane.stream("POST", "/v1/completions", json=ENDLESS) as first:
        lines = first.iter_lines()  # kept: an iterator that is dropped closes the connection
        next(lines)
        with one_lane.stream("POST", "/v1/completions", json={**ENDLESS, "max_tokens": 2}) as second:
            waited = [line for line in second.iter_lines() if line]
    assert waited[0] == ": keep-alive"
    assert waited[-1] == "data: [DONE]"
    assert all(line.startswith("data: ") for line in waited if line != ": keep-alive")


def test_a_full_queue_says_when_to_come_back(one_lane: httpx.Client, wait_until: Wait) -> None:
    def state() -> tuple[list[str], int]:
        body = one_lane.get("/v1/engine").json()
        return [lane["state"] for lane in body["lanes"]], body["queue"]["total"]

    with one_lane.stream("POST", "/v1/completions", json=ENDLESS):
        wait_until(lambda: state() == (["decode"], 0), 10)
        with one_lane.stream("POST", "/v1/completions", json=ENDLESS):
            wait_until(lambda: state() == (["decode"], 1), 5)
            answer = one_lane.post("/v1/completions", json={"prompt": "x"})
            several = one_lane.post("/v1/completions", json={"prompt": ["x", "y", "z"]})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "busy")
    assert int(answer.headers["retry-after"]) >= 1
    assert several.status_code == 503
    wait_until(lambda: state() == (["idle"], 0), 5)


def test_a_whole_answer_has_a_deadline_and_a_stream_that_goes_on_has_none(engine: Engine, tmp_path: Path) -> None:
    settings = Settings(port=0, deadline=0.3, runtime_directory=tmp_path)
    body = {**ENDLESS, "max_tokens": 4000}
    with ServerThread(engine, settings) as server, httpx.Client(base_url=server.url, trust_env=False) as client:
        began = time.monotonic()
        plain = client.post("/v1/completions", json={**body, "stream": False})
        assert time.monotonic() - began < 5
        assert (plain.status_code, plain.json()["error"]["code"]) == (504, "deadline_exceeded")
        with client.stream("POST", "/v1/completions", json=body) as stream:
            began = time.monotonic()
            late = next(line for line in stream.iter_lines() if line and time.monotonic() - began > 0.6)
        assert late.startswith("data: {")
        assert "error" not in late


def test_a_stream_that_stays_silent_has_a_deadline(
    load_tiny: Callable[..., Engine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generation, "KEEP_ALIVE_SECONDS", 0.02)
    settings = Settings(port=0, deadline=0.1, runtime_directory=tmp_path)
    engine = load_tiny(lanes=1)
    with (
        ServerThread(engine, settings) as server,
        httpx.Client(base_url=server.url, trust_env=False) as client,
        client.stream("POST", "/v1/completions", json=ENDLESS) as holder,
    ):
        held = holder.iter_lines()
        next(held)
        with client.stream("POST", "/v1/completions", json=ENDLESS) as waiting:
            lines = [line for line in waiting.iter_lines() if line and line != ": keep-alive"]
    assert lines[0] == "event: error"
    assert json.loads(lines[1].removeprefix("data: "))["error"]["code"] == "deadline_exceeded"
    assert len(lines) == 2


def test_zero_token_answers_have_a_deadline(engine: Engine, tmp_path: Path) -> None:
    settings = Settings(port=0, deadline=0.0001, runtime_directory=tmp_path)
    question = {"type": "locate", "instructions": "Which line?"}
    with ServerThread(engine, settings) as server:
        answer = httpx.post(
            f"{server.url}/v1/decide", json={"state": "a\nb", "questions": {"q": question}}, trust_env=False
        )
    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "deadline_exceeded")


@pytest.mark.parametrize("stream", [True, False], ids=["sse", "plain"])
def test_a_request_that_others_cancel_ends_with_an_error(client: openai.OpenAI, engine: Engine, stream: bool) -> None:
    done = threading.Event()

    def cancel() -> None:
        while not done.wait(0.01):  # again and again: a snapshot may still show the request before
            for lane in engine.snapshot().lanes:
                engine.cancel(lane.request_id)

    canceller = threading.Thread(target=cancel)
    canceller.start()
    with pytest.raises(openai.APIError) as ended:
        list(client.completions.create(model=engine.info.id, prompt="Once", max_tokens=4000, stream=stream, **EXTRA))
    done.set()
    canceller.join()
    assert ended.value.code == "cancelled"
