"""Starting and stopping: ports that are taken, engines that are not ready."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import openai
import pytest

from engine import Engine
from ignis_desktop.server import runtime_file
from ignis_desktop.server.settings import ServerError, Settings
from ignis_desktop.server.thread import ServerThread, _worth_telling


@pytest.fixture
def unloaded() -> Iterator[Engine]:
    """A real engine that nobody started."""
    engine = Engine()
    yield engine
    engine.close()


def test_start_listens_and_stop_frees_the_port(unloaded: Engine, tmp_path: Path) -> None:
    before = set(threading.enumerate())
    server = ServerThread(unloaded, Settings(port=0, runtime_directory=tmp_path))
    server.start()
    first = server.url
    assert httpx.get(f"{first}/health", trust_env=False).status_code == 503
    assert runtime_file.read(tmp_path) is not None
    server.stop()
    assert not server.running
    assert runtime_file.read(tmp_path) is None
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{first}/health", trust_env=False)
    server.start()
    assert httpx.get(f"{server.url}/health", trust_env=False).status_code == 503
    server.stop()
    assert set(threading.enumerate()) <= before


def test_a_taken_port_is_said_with_its_holder(unloaded: Engine, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = ServerThread(unloaded, Settings(port=port, runtime_directory=tmp_path))
        with pytest.raises(ServerError, match=rf"Port {port} is taken by .+ \(process {os.getpid()}\)"):
            server.start()
        assert not server.running
        assert runtime_file.read(tmp_path) is None


@pytest.mark.parametrize("host", ["203.0.113.7", "no-such-host.invalid"])
def test_an_address_of_another_machine_is_refused(unloaded: Engine, tmp_path: Path, host: str) -> None:
    server = ServerThread(unloaded, Settings(host=host, api_key="k", port=0, runtime_directory=tmp_path))
    with pytest.raises(ServerError, match="not an address of this machine"):
        server.start()


def test_while_nothing_is_loaded_requests_are_told_to_come_back(unloaded: Engine, tmp_path: Path) -> None:
    with ServerThread(unloaded, Settings(port=0, runtime_directory=tmp_path)) as server:
        with httpx.Client(base_url=server.url, trust_env=False) as http:
            health = http.get("/health")
            assert (health.status_code, health.json()["state"]) == (503, "empty")
            assert int(health.headers["retry-after"]) >= 1
            for path in ("/v1/engine", "/metrics", "/docs", "/openapi.json"):
                assert http.get(path).status_code == 200
            answer = http.post(
                "/v1/decide", json={"state": "x", "questions": {"q": {"type": "locate", "question": "x"}}}
            )
            assert answer.status_code == 503
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0) as client:
            with pytest.raises(openai.InternalServerError) as refused:
                client.chat.completions.create(model="ember", messages=[{"role": "user", "content": "hi"}])
            assert refused.value.status_code == 503
            assert refused.value.code == "loading"
            assert int(refused.value.response.headers["retry-after"]) >= 1


def test_an_engine_that_failed_says_why(tmp_path: Path) -> None:
    from engine.config import EngineConfig

    engine = Engine(EngineConfig(model=tmp_path / "nothing"))
    engine.run()
    reason = engine.snapshot().reason
    assert reason
    settings = Settings(port=0, runtime_directory=tmp_path / "run")
    with ServerThread(engine, settings) as server, httpx.Client(base_url=server.url, trust_env=False) as http:
        assert http.get("/health").json()["state"] == "failed"
        answer = http.post("/v1/completions", json={"prompt": "x"})
        assert answer.status_code == 503
        assert reason in answer.json()["error"]["message"]


def test_stopping_ends_running_streams(engine: Engine, tmp_path: Path) -> None:
    with ServerThread(engine, Settings(port=0, runtime_directory=tmp_path)) as server:
        body = {"prompt": "Once", "max_tokens": engine.info.context_length // 2, "ignore_eos": True, "stream": True}
        with httpx.stream("POST", f"{server.url}/v1/completions", json=body, trust_env=False, timeout=30) as answer:
            lines = answer.iter_lines()
            next(lines)
            began = time.monotonic()
            server.stop()
            assert time.monotonic() - began < 2.0
            assert not server.running
            data = [line for line in lines if line.startswith("data:")]
    assert '"code": "cancelled"' in data[-1]
    assert "[DONE]" not in "".join(data)


def test_broken_connections_are_not_worth_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    asyncio_log = logging.getLogger("asyncio")
    asyncio_log.addFilter(_worth_telling)
    asyncio_log.warning("socket.send() raised exception.")
    asyncio_log.warning("something else")
    assert [record.message for record in caplog.records] == ["something else"]
