"""Host and Origin, keys, CORS, headers: over a real socket."""

from __future__ import annotations

import contextlib
import logging
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from engine import Engine
from ignis_desktop.server.settings import Settings
from ignis_desktop.server.thread import ServerThread

KEY = "sk-local-key"
PAGE = "https://page.example"


@pytest.fixture(scope="module")
def guarded(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    directory = tmp_path_factory.mktemp("run")
    settings = Settings(port=0, api_key=KEY, cors_origins=(PAGE,), runtime_directory=directory)
    with ServerThread(engine, settings) as server:
        yield server


def raw(server: ServerThread, head: str) -> bytes:
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode("latin-1"))
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while data := connection.recv(65536):
            answer += data
    return answer


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "", "localhost.evil.example", "10.0.0.1"])
def test_foreign_hosts_are_refused(http: httpx.Client, host: str) -> None:
    answer = http.get("/v1/models", headers={"host": host})
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "host_not_allowed"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1234", "127.0.0.1", "[::1]:8000"])
def test_loopback_names_are_served(http: httpx.Client, host: str) -> None:
    assert http.get("/v1/models", headers={"host": host}).status_code == 200


def test_a_request_without_host_is_refused(server: ServerThread) -> None:
    assert raw(server, "GET /v1/models HTTP/1.0\n\n").split(b" ")[1] == b"403"
    assert raw(server, "GET /v1/models HTTP/1.1\nHost: localhost\nHost: evil.example\n\n").split(b" ")[1] in (
        b"400",
        b"403",
    )


@pytest.mark.parametrize("origin", [PAGE, "null", "http://localhost.evil.example", "http://127.0.0.1:1"])
def test_pages_from_elsewhere_may_not_post(http: httpx.Client, origin: str) -> None:
    answer = http.post("/v1/tokenize", json={"prompt": "x"}, headers={"origin": origin})
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "origin_not_allowed"


def test_cors_is_off(http: httpx.Client, server: ServerThread) -> None:
    own = http.get("/v1/models", headers={"origin": server.url})
    assert own.status_code == 200
    assert "access-control-allow-origin" not in own.headers
    preflight = http.options("/v1/models", headers={"origin": PAGE, "access-control-request-method": "GET"})
    assert preflight.status_code == 403


def test_cors_can_be_switched_on_for_an_origin(guarded: ServerThread) -> None:
    with httpx.Client(base_url=guarded.url, trust_env=False) as client:
        preflight = client.options(
            "/v1/chat/completions",
            headers={
                "origin": PAGE,
                "access-control-request-method": "POST",
                "access-control-request-headers": "authorization",
            },
        )
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-origin"] == PAGE
        answer = client.get("/v1/models", headers={"origin": PAGE, "authorization": f"Bearer {KEY}"})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, PAGE)
        assert client.get("/v1/models", headers={"origin": "https://other.example"}).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer"},
        {"authorization": f"Bearer {KEY}x"},
        {"authorization": f"Bearer {KEY[:-1]}"},
        {"authorization": f"Basic {KEY}"},
        {"authorization": KEY},
        {"x-api-key": "wrong"},
        {"authorization": "Bearer \xff\xfe"},
    ],
)
def test_without_the_key_nothing_is_served(guarded: ServerThread, headers: dict[str, str]) -> None:
    encoded = {name: value.encode("latin-1") for name, value in headers.items()}
    with httpx.Client(base_url=guarded.url, headers=encoded, trust_env=False) as client:
        for path in ("/v1/models", "/v1/engine", "/metrics", "/v1/nothing"):
            answer = client.get(path)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert answer.json()["error"]["code"] == "invalid_api_key"
        assert client.get("/health").status_code == 200


def test_key_and_token_open_it(guarded: ServerThread) -> None:
    with httpx.Client(base_url=guarded.url, trust_env=False) as client:
        for headers in (
            {"authorization": f"Bearer {KEY}"},
            {"authorization": f"bearer {KEY}"},
            {"x-api-key": KEY},
            {"authorization": f"Bearer {guarded.token}"},
        ):
            assert client.get("/v1/models", headers=headers).status_code == 200


def test_keys_are_never_logged(guarded: ServerThread) -> None:
    with httpx.Client(base_url=guarded.url, trust_env=False) as client:
        client.get("/v1/models", headers={"authorization": f"Bearer {KEY}"})
        client.get("/v1/models", headers={"authorization": "Bearer guess"})
    shown = repr(guarded.log.records())
    assert KEY not in shown
    assert "guess" not in shown
    assert guarded.token not in shown
    assert guarded.log.records()[-1].error == "invalid_api_key"


def dribble(server: ServerThread, begin: str, more: str, *, every: float = 0.1, limit: float = 10.0) -> bytes:
    """What comes back when ``more`` is sent again and again; fails when the server listens to it for ever."""
    host, port = server.url.removeprefix("http://").split(":")
    until = time.monotonic() + limit
    with socket.create_connection((host, int(port))) as connection:
        connection.settimeout(every)
        connection.sendall(begin.encode())
        answer = b""
        while time.monotonic() < until:
            try:
                if not (data := connection.recv(65536)):
                    return answer
                answer += data
            except TimeoutError:
                with contextlib.suppress(OSError):
                    connection.sendall(more.encode())
            except ConnectionError:
                return answer
    pytest.fail(f"still connected after {limit} s")


SECRET = "open sesame"
ASKED = [
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": SECRET}], "max_tokens": 2}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": SECRET}], "max_tokens": 2, "stream": True}),
    ("/v1/chat/completions", {"messages": [{"role": SECRET, "content": SECRET}]}),
    ("/v1/chat/completions", {"messages": SECRET, "unknown": SECRET}),
    ("/v1/completions", {"prompt": SECRET, "max_tokens": 2}),
    ("/v1/responses", {"input": SECRET, "max_output_tokens": 2}),
    ("/v1/messages", {"model": "x", "max_tokens": 2, "messages": [{"role": "user", "content": SECRET}]}),
    ("/v1/messages", {"model": "x", "max_tokens": SECRET, "messages": [{"role": "user", "content": SECRET}]}),
    ("/v1/decide", {"state": SECRET, "questions": {"q": {"type": "locate", "instructions": SECRET}}}),
    ("/v1/decide", {"state": SECRET, "questions": {"q": {"type": SECRET}}}),
    ("/v1/tokenize", {"prompt": SECRET}),
]


def test_what_was_asked_is_never_logged(
    http: httpx.Client, server: ServerThread, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        statuses = [http.post(path, json=body).status_code for path, body in ASKED]
        http.get("/v1/models", params={"q": SECRET})
    assert statuses.count(200) == 7
    assert max(statuses) < 500
    ours = [record.getMessage() for record in caplog.records if record.name.startswith(("ignis_desktop", "engine"))]
    assert SECRET not in repr(server.log.records()) + repr(ours)


@pytest.mark.parametrize("kind", ["files", "responses", "screens"])
@pytest.mark.parametrize(
    "name", ["..%2f..%2fetc%2fpasswd", "../../etc/passwd", "%00", "%ff%fe", "'%20OR%201=1--", "a" * 8000, "%2e%2e"]
)
def test_ids_are_names_and_nothing_else(server: ServerThread, kind: str, name: str) -> None:
    for method in ("GET", "DELETE"):
        # Raw: an HTTP client would tidy the path up.
        head = f"{method} /v1/{kind}/{name} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        answer = dribble(server, head, "")
        assert answer.split(b" ")[1] == b"404"
        assert b"Traceback" not in answer


def test_headers_are_bounded(http: httpx.Client) -> None:
    many = http.get("/v1/models", headers={f"x-{n}": "1" for n in range(150)})
    assert many.status_code == 431
    large = http.get("/v1/models", headers={"x-large": "x" * 40_000})
    assert large.status_code in (400, 431)


@pytest.fixture(scope="module")
def impatient(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    directory = tmp_path_factory.mktemp("impatient")
    settings = Settings(
        port=0, head_seconds=0.5, body_seconds=0.5, runtime_directory=directory, data_directory=directory
    )
    with ServerThread(engine, settings) as server:
        yield server


@pytest.mark.parametrize("begin", ["", "GET /health HTTP/1.1\r\n"])
def test_headers_that_never_end_are_cut_off(impatient: ServerThread, begin: str) -> None:
    assert dribble(impatient, begin, "X-More: 1\r\n" if begin else "") == b""


def test_headers_that_never_end_after_a_request_are_cut_off(impatient: ServerThread) -> None:
    whole = "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert dribble(impatient, whole + "GET /v1/models HTTP/1.1\r\n", "X-More: 1\r\n").count(b" 200 ") == 1


@pytest.mark.parametrize("size", ["Content-Length: 5000", "Transfer-Encoding: chunked"])
def test_bodies_that_dribble_are_refused(impatient: ServerThread, size: str) -> None:
    head = f"POST /v1/tokenize HTTP/1.1\r\nHost: localhost\r\n{size}\r\n\r\n"
    answer = dribble(impatient, head, "x" if "Length" in size else "1\r\nx\r\n")
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"body_too_slow" in answer


def test_a_refused_body_is_not_waited_for(impatient: ServerThread) -> None:
    head = "POST /v1/tokenize HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 5000\r\n\r\n"
    assert dribble(impatient, head, "x").startswith(b"HTTP/1.1 403")


def test_patience_ends_with_the_body(impatient: ServerThread) -> None:
    body = {"prompt": "x", "max_tokens": 64, "ignore_eos": True, "stream": True}
    with httpx.Client(base_url=impatient.url, trust_env=False) as client:
        with client.stream("POST", "/v1/completions", json=body) as answer:
            time.sleep(0.8)
            assert "data: [DONE]" in "".join(answer.iter_text())
        time.sleep(0.8)
        assert client.get("/v1/models").status_code == 200, "a connection between requests is kept"


def test_an_instance_is_found_through_the_runtime_file(guarded: ServerThread) -> None:
    from ignis_desktop.server import runtime_file

    directory = guarded.settings.runtime_directory
    assert isinstance(directory, Path)
    found = runtime_file.read(directory)
    assert found is not None
    assert (found.url, found.token) == (guarded.url, guarded.token)


def test_a_fault_of_the_server_is_an_answer_without_details(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise ZeroDivisionError("secret detail")

    with ServerThread(engine, Settings(port=0, runtime_directory=tmp_path)) as server:
        monkeypatch.setattr(engine, "snapshot", broken)
        with httpx.Client(base_url=server.url, trust_env=False) as client:
            for _ in range(2):  # the connection stays usable
                answer = client.get("/v1/models")
                assert answer.status_code == 500
                assert answer.json()["error"]["code"] == "internal_error"
                assert "secret" not in answer.text
        monkeypatch.undo()
    assert {(record.status, record.error) for record in server.log.records()} == {(500, "internal_error")}
    assert "secret detail" in caplog.text
