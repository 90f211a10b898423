"""Host and Origin, keys, CORS, headers: over a real socket."""

from __future__ import annotations

import socket
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


def test_headers_are_bounded(http: httpx.Client) -> None:
    many = http.get("/v1/models", headers={f"x-{n}": "1" for n in range(150)})
    assert many.status_code == 431
    large = http.get("/v1/models", headers={"x-large": "x" * 40_000})
    assert large.status_code in (400, 431)


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
