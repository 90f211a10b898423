"""Traces: written and read again, refused when broken; the one that ships; a recording and its replay."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from ignis_desktop.bench.leaving import Leave, ask_and_leave
from ignis_desktop.bench.process import Target
from ignis_desktop.bench.record import Recorder, recording
from ignis_desktop.bench.scenarios import trace as replay
from ignis_desktop.bench.scenarios.base import Bench
from ignis_desktop.bench.trace import Trace, TraceRequest, read_trace, write_trace
from ignis_desktop.bench.watch import view, wait_idle
from ignis_desktop.cli.errors import CommandError
from tests.bench.serve import TRACE

MESSAGES = {0: ("system", 100), 1: ("user", 20), 2: ("assistant", 10), 3: ("user", 30)}
TWO_TURNS = Trace(
    "a test",
    "Tiny",
    MESSAGES,
    (
        TraceRequest(0.0, "interactive", 0, (0, 1), 130, 10),
        TraceRequest(1.5, "interactive", 0, (0, 1, 2, 3), 180, 12),
    ),
)


def test_written_and_read_again(tmp_path: Path) -> None:
    write_trace(tmp_path / "t.jsonl", TWO_TURNS)
    assert read_trace(tmp_path / "t.jsonl") == TWO_TURNS
    assert TWO_TURNS.longest == 192
    assert TWO_TURNS.reusable_share == pytest.approx(120 / 280)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"at": 2, "class": "agent", "client": 0, "messages": [7], "prompt": 9, "output": 1}', "message 7"),
        ('{"at": 2, "class": "agent", "client": 0, "messages": [], "prompt": 9, "output": 1}', "no messages"),
        (
            '{"at": 1, "class": "agent", "client": 0, "messages": [0], "prompt": 9, "output": 1}',
            "before the line above",
        ),
        ('{"at": 2, "class": "agent", "client": 0, "new": {"9": ["cook", 3]}, "messages": [9]}', "'cook'"),
        ("[]", "no request"),
        ("nonsense", "no request"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, says: str) -> None:
    path = tmp_path / "t.jsonl"
    write_trace(path, TWO_TURNS)
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(CommandError, match=r"line 4: .*") as caught:
        read_trace(path)
    assert says in caught.value.message


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        read_trace(tmp_path / "none.jsonl")
    (tmp_path / "t.jsonl").write_text('{"format": 2}\n')
    with pytest.raises(CommandError, match="format 2"):
        read_trace(tmp_path / "t.jsonl")
    (tmp_path / "t.jsonl").write_text('{"format": 1}\n')
    with pytest.raises(CommandError, match="holds no requests"):
        read_trace(tmp_path / "t.jsonl")


def test_the_trace_that_ships() -> None:
    trace = read_trace(TRACE)
    assert TRACE.stat().st_size < 100_000
    assert len(trace.requests) >= 60
    assert len({request.client for request in trace.requests}) == 4
    assert {request.request_class for request in trace.requests} == {"interactive", "agent"}
    first = {request.messages[0] for request in trace.requests if request.request_class == "agent"}
    assert len(first) == 1, "sub-agents share a system block"
    assert trace.messages[first.pop()][0] == "system"
    assert trace.reusable_share > 0.5
    for line in TRACE.read_text().splitlines()[1:]:
        value = json.loads(line)
        assert set(value) <= {"at", "class", "client", "new", "messages", "prompt", "output"}
        assert all(isinstance(tokens, int) for _, tokens in value.get("new", {}).values())


def chat(messages: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"messages": messages, "max_tokens": 5, "ignore_eos": True, **more}


def recorded(target: Target, use: Callable[[httpx.AsyncClient, Recorder], Any]) -> tuple[Trace, Recorder]:
    """What ``use`` does to the tiny server through a recorder."""

    async def run() -> tuple[Trace, Recorder]:
        headers = {"authorization": f"Bearer {target.key}"}
        async with recording(target.url, target.key, 0) as (recorder, address):
            async with httpx.AsyncClient(base_url=address, headers=headers, timeout=60, trust_env=False) as client:
                await use(client, recorder)
            return recorder.trace("a test", "Tiny"), recorder

    return asyncio.run(run())


def test_what_passes_is_recorded_without_its_words(
    target: Target, tmp_path: Path, with_bench: Callable[..., Any]
) -> None:
    system = {"role": "system", "content": "You are a secretive clerk and answer in one word."}
    question = {"role": "user", "content": "Where is the treasure?"}

    async def use(client: httpx.AsyncClient, recorder: Recorder) -> None:
        path = "/v1/chat/completions"
        first = (await client.post(path, json=chat([system, question]))).json()
        said = {"role": "assistant", "content": first["choices"][0]["message"]["content"]}
        body = chat([system, question, said, {"role": "user", "content": ""}], stream=True)
        second = await client.post(path, json=body | {"class": "agent"}, headers={"user-agent": "another"})
        assert second.text.endswith("data: [DONE]\n\n")
        assert "usage" not in second.text  # nothing is added to what the client asked for
        usage.append(first["usage"]["prompt_tokens"])
        picture = {"role": "user", "content": [{"type": "text", "text": "look"}]}
        assert (await client.post(path, json=chat([picture]))).status_code == 200
        assert (await client.post(path, content=b"{")).status_code == 400
        assert (await client.get("/v1/models")).json()["data"]
        assert (await client.get("/health", headers={"host": "evil.example"})).status_code == 403

    usage: list[int] = []
    trace, recorder = recorded(target, use)
    assert recorder.unrecorded == 2
    one, two = trace.requests
    assert (one.request_class, one.client, one.messages) == ("interactive", 0, (0, 1))
    assert (two.request_class, two.client, two.messages) == ("agent", 1, (0, 1, 2, 3))
    assert (one.at, one.prompt_tokens, one.output_tokens) == (0.0, usage[0], 5)
    assert two.prompt_tokens > one.prompt_tokens
    assert [trace.messages[number][0] for number in two.messages] == ["system", "user", "assistant", "user"]
    assert trace.messages[3] == ("user", 0)
    path = tmp_path / "t.jsonl"
    write_trace(path, trace)
    for word in ("clerk", "treasure", "word"):
        assert word not in path.read_text()

    async def play(bench: Bench) -> None:
        report = await replay.run(bench)
        assert report.facts["replayed"] == 2
        assert report.facts["classes"]["interactive"]["ok"] == report.facts["classes"]["agent"]["ok"] == 1
        assert report.facts["classes"]["interactive"]["prompt_tokens"] == one.prompt_tokens
        assert report.facts["classes"]["interactive"]["output_tokens"] == 5
        assert abs(report.facts["prompt_tokens_replayed"] - report.facts["prompt_tokens_recorded"]) <= 4

    with_bench(play, trace=path)
    with_bench(play, trace=path, speed=2.0)


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_the_recorder_leaves_the_server(
    target: Target, with_bench: Callable[..., Any], stream: bool
) -> None:
    async def run(bench: Bench) -> None:
        before = await wait_idle(bench.client)
        async with recording(target.url, target.key, 0) as (recorder, address):
            body = {**chat([{"role": "user", "content": "Tell me everything."}]), "max_tokens": 3000, "stream": stream}
            leave = Leave(10.0, pieces=3) if stream else Leave(0.5)
            left = await ask_and_leave(address, target.key, "/v1/chat/completions", body, leave)
            assert not left.done
            async with asyncio.timeout(3):
                while (await view(bench.client)).since(before)["requests_cancelled"] < 1:
                    await asyncio.sleep(0.02)
            assert (await wait_idle(bench.client, 2)).idle
            async with asyncio.timeout(3):
                while recorder.unrecorded < 1:
                    await asyncio.sleep(0.02)
            assert not recorder.seen

    with_bench(run)


def test_a_server_that_is_not_there(closed_port: int) -> None:
    async def use(client: httpx.AsyncClient, recorder: Recorder) -> None:
        answer = await client.post("/v1/chat/completions", json=chat([{"role": "user", "content": "hello"}]))
        assert answer.status_code == 502
        assert "does not answer" in answer.json()["error"]["message"]

    trace, _ = recorded(Target(f"http://127.0.0.1:{closed_port}", None, None), use)
    assert not trace.requests
