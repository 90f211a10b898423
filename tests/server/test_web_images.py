"""Pictures by address: only where allowed, never from this machine's network, and always bounded."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine import Engine
from ignis_desktop.server import web_images
from ignis_desktop.server.settings import Settings
from ignis_desktop.server.thread import ServerThread
from ignis_desktop.server.web_images import FetchError, fetch, is_public
from tests.server.test_files import chat, png

HERE = "pictures.example"
"""A name that the tests let be this machine."""


class Handler(BaseHTTPRequestHandler):
    asked: list[tuple[str, str]] = []  # noqa: RUF012  # of the class: a handler is made for each request

    def do_GET(self) -> None:
        self.asked.append((self.headers["host"], self.path))
        kind, _, rest = self.path[1:].partition("/")
        if kind == "to":
            self.send_response(302)
            self.send_header("location", rest)
            self.end_headers()
        elif kind == "endless":
            self.send_response(200)
            self.end_headers()
            with_room = bytes(2**20)
            try:
                while True:
                    self.wfile.write(with_room)
            except OSError:
                pass
        elif kind == "slow":
            self.send_response(200)
            self.end_headers()
            time.sleep(1.0)
        elif kind == "declared":
            self.send_response(200)
            self.send_header("content-length", str(web_images.MAX_BYTES + 1))
            self.end_headers()
        elif kind == "picture":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(png())
        else:
            self.send_error(404)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, port: int) -> str:
    """The address of a server that the code under test takes for one of the internet's."""
    lookup = asyncio.base_events.BaseEventLoop.getaddrinfo

    async def named(loop: Any, host: str, *args: Any, **options: Any) -> Any:
        return await lookup(loop, "127.0.0.1" if host in (HERE, "1.1.1.1") else host, *args, **options)

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", named)
    checked = is_public
    first = [True]

    def public(address: str) -> bool:
        """Lets the first address pass, so that what a redirect leads to is judged as ever."""
        passed, first[0] = first[0], False
        return passed or checked(address)

    monkeypatch.setattr(web_images, "is_public", public)
    Handler.asked.clear()
    return f"http://{HERE}:{port}"


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.9.9.9", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
        "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
        "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fec0::1", "ff02::1", "2001:db8::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "2002:7f00:1::", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "::7f00:1",
        "no address",
    ],
)  # fmt: skip
def test_addresses_of_the_own_network(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "8.8.8.8", "2606:4700:4700::1111"])
def test_addresses_of_the_internet(address: str) -> None:
    assert is_public(address)


def test_the_bytes_come_under_the_own_name(here: str) -> None:
    assert asyncio.run(fetch(f"{here}/picture")) == png()
    assert Handler.asked == [(here.removeprefix("http://"), "/picture")]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/to/{own}/picture", "in its network"),
        ("/to/http://169.254.169.254/latest", "in its network"),
        ("/to/http://[::1]:{port}/picture", "in its network"),
        ("/to/file:///etc/passwd", "only http and https"),
        ("/missing", "answered 404"),
        ("/declared", "larger than"),
        ("/endless", "larger than"),
    ],
)
def test_what_an_address_may_lead_to(
    here: str, port: int, path: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_images, "MAX_BYTES", 2**21)
    with pytest.raises(FetchError, match=reason):
        asyncio.run(fetch(here + path.format(own=f"http://127.0.0.1:{port}", port=port)))
    assert len(Handler.asked) == 1


def test_redirects_have_an_end(here: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_images, "is_public", lambda address: True)
    with pytest.raises(FetchError, match="more than 3 times"):
        asyncio.run(fetch(f"{here}/to/to/to/to/to/picture"))


def test_slow_servers_are_given_up(here: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_images, "SECONDS", 0.2)
    began = time.monotonic()
    with pytest.raises(FetchError, match="longer than"):
        asyncio.run(fetch(f"{here}/slow"))
    assert time.monotonic() - began < 0.9


@pytest.mark.parametrize(
    "url", ["http://localhost/a", "https://127.0.0.1/a", "http://user:word@1.1.1.1/a", "http:///a", "http://a b/"]
)
def test_addresses_that_are_not_asked(url: str) -> None:
    with pytest.raises(FetchError):
        asyncio.run(fetch(url))


def test_a_name_with_one_private_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def both(loop: Any, host: str, port: int, **_: Any) -> Any:
        return [(2, 1, 6, "", ("1.1.1.1", port)), (2, 1, 6, "", ("10.0.0.1", port))]

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", both)
    with pytest.raises(FetchError, match="in its network"):
        asyncio.run(fetch("http://both.example/"))


def test_nothing_is_fetched_unless_allowed(http: httpx.Client, port: int) -> None:
    Handler.asked.clear()
    answer = chat(http, {"type": "image_url", "image_url": {"url": f"http://127.0.0.1:{port}/picture"}})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["code"], error["param"]) == ("unsupported_image_url", "messages.0.content.1.image_url.url")
    assert not Handler.asked


def test_a_request_with_an_address(engine: Engine, tmp_path: Path, here: str, port: int) -> None:
    settings = Settings(port=0, fetch_images=True, data_directory=tmp_path, runtime_directory=tmp_path)
    with ServerThread(engine, settings) as server, httpx.Client(base_url=server.url, trust_env=False) as http:
        good = chat(http, {"type": "image_url", "image_url": {"url": f"{here}/picture"}})
        assert good.status_code == 200, good.text
        bad = chat(http, {"type": "image_url", "image_url": {"url": f"http://127.0.0.1:{port}/picture"}})
        parts = [{"type": "image_url", "image_url": {"url": f"{here}/{n}"}} for n in range(17)]
        many = http.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": parts}]})
    assert bad.status_code == 400
    assert bad.json()["error"]["code"] == "invalid_image_url"
    assert many.json()["error"]["param"] == "messages.0.content.16.image_url.url"
    assert len(Handler.asked) == 1
