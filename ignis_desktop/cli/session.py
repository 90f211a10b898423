"""Where a command's answers come from: an HTTP client, of a running instance or of a server that this process starts.

Both are the same server behind the same API, so a command has one code path.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from ignis_desktop import __version__
from ignis_desktop.cli.errors import CommandError
from ignis_desktop.cli.options import ConnectionOptions, EngineOptions
from ignis_desktop.cli.progress import ProgressLine

if TYPE_CHECKING:
    import httpx

    from engine import Engine

KEY_VARIABLE = "IGNIS_API_KEY"
PROBE_SECONDS = 2.0
READY_POLL_SECONDS = 0.05
# Longer than the server's own limit for a request: the server's sentence is better than a time-out's.
ANSWER_SECONDS = 3600.0


class Session:
    """Requests to one server, every fault a ``CommandError`` with the server's own sentence."""

    def __init__(self, client: httpx.Client, name: str) -> None:
        self._client = client
        self.name = name
        """How this process appears among the server's clients."""

    def engine_state(self) -> dict[str, Any]:
        """``GET /v1/engine``."""
        return self.get("/v1/engine")

    def get(self, path: str) -> dict[str, Any]:
        return self._answer(lambda: self._client.get(path))

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._answer(lambda: self._client.post(path, json=body))

    def post_text(self, path: str, text: str) -> dict[str, Any]:
        """A body of JSON as it was written."""
        headers = {"content-type": "application/json"}
        return self._answer(lambda: self._client.post(path, content=text.encode(), headers=headers))

    def delete(self, path: str) -> dict[str, Any]:
        return self._answer(lambda: self._client.delete(path))

    def stream(self, path: str, body: dict[str, Any]) -> Generator[dict[str, Any]]:
        """Events of a server-sent stream, until ``[DONE]``. Closing it earlier cancels the request."""
        with _faults(), self._client.stream("POST", path, json=body) as response:
            if response.status_code >= 400:
                response.read()
                raise _refusal(response)
            for line in response.iter_lines():
                data = line.removeprefix("data:").strip() if line.startswith("data:") else ""
                if data == "[DONE]":
                    return
                if data:
                    event = json.loads(data)
                    if "error" in event:
                        raise CommandError(str(event["error"].get("message", event["error"])))
                    yield event

    def _answer(self, send: Callable[[], httpx.Response]) -> dict[str, Any]:
        with _faults():
            response = send()
        if response.status_code >= 400:
            raise _refusal(response)
        try:
            return response.json() if response.content else {}
        except ValueError:
            raise CommandError(f"{self._client.base_url} does not answer like an Ignis server.") from None


@contextmanager
def connected(connection: ConnectionOptions, command: str) -> Iterator[Session]:
    """A session with a server that is ready: the one at ``--connect``, the one that is running, or one of our own.

    ``command`` names the caller among the server's clients. Raises ``CommandError``.
    """
    name = f"ignis-{command}/{__version__}-{os.getpid()}"
    with _server(connection) as (url, key), _client(url, key, name) as client:
        session = Session(client, name)
        _wait_ready(session.engine_state)
        yield session


@contextmanager
def own_engine(connection: ConnectionOptions) -> Iterator[Engine | None]:
    """A loaded engine of this process; ``None`` when a server is to answer: the one at ``--connect`` or the one that is
    running. Raises ``CommandError`` when it cannot be loaded."""
    if connection.connect or (not connection.engine.any_given and _running() is not None):
        yield None
        return
    from ignis_desktop.cli.engine_process import engine_running
    from ignis_desktop.server.snapshot_json import engine_json

    with engine_running(connection.engine) as engine:
        _wait_ready(lambda: engine_json(engine.snapshot()))
        yield engine


def _server(connection: ConnectionOptions) -> AbstractContextManager[tuple[str, str | None]]:
    """(address, key) of the server to use."""
    if connection.connect:
        return _given(connection.connect)
    if not connection.engine.any_given:
        running = _running()
        if running is not None:
            return _given(*running)
    return _embedded(connection.engine)


@contextmanager
def _given(url: str, token: str | None = None) -> Iterator[tuple[str, str | None]]:
    url = url if "://" in url else f"http://{url}"
    yield url.rstrip("/").removesuffix("/v1"), token or os.environ.get(KEY_VARIABLE) or None


def _running() -> tuple[str, str] | None:
    """(address, token) of this user's running instance, if it answers."""
    from ignis_desktop.server import runtime_file

    instance = runtime_file.read()
    if instance is None:
        return None
    import httpx

    try:
        with httpx.Client(trust_env=False, timeout=PROBE_SECONDS) as client:
            client.get(f"{instance.url}/health")
    except httpx.HTTPError:
        return None
    return instance.url, instance.token


@contextmanager
def _embedded(options: EngineOptions) -> Iterator[tuple[str, str | None]]:
    """An engine and a server in this process, on a port of the system's choice, behind a key that nobody else knows."""
    from ignis_desktop.cli.engine_process import engine_running, server_running
    from ignis_desktop.server.settings import Settings

    key = secrets.token_urlsafe(32)
    with engine_running(options) as engine:
        settings = Settings(port=0, api_key=key, advertise=False, max_body_bytes=1 << 30)
        with server_running(engine, settings) as server:
            yield server.url, key


def _client(url: str, key: str | None, name: str) -> httpx.Client:
    import httpx

    headers = {"user-agent": name}
    if key:
        headers["authorization"] = f"Bearer {key}"
    try:
        return httpx.Client(
            base_url=url,
            headers=headers,
            timeout=httpx.Timeout(ANSWER_SECONDS, connect=10.0),
            verify=url.startswith("https:"),  # reading the certificates takes longer than the first request
            trust_env=False,  # a proxy for the web has no business on the way to this machine's own server
        )
    except httpx.InvalidURL as fault:
        raise CommandError(f"{url} is no address: {fault}.") from fault


def _wait_ready(engine_state: Callable[[], dict[str, Any]]) -> None:
    """Returns when the engine serves. Raises ``CommandError`` when it failed or is closing."""
    line = ProgressLine()
    try:
        while True:
            state = engine_state()
            if state.get("state") == "ready":
                return
            if state.get("state") in ("failed", "draining", "closed"):
                raise CommandError(str(state.get("reason") or f"The engine is {state['state']}."))
            progress = state.get("progress")
            what = f"Loading {state.get('model') or 'the model'}"
            line.show(what, 100 * (progress or 0.0), None if progress is None else 100)
            time.sleep(READY_POLL_SECONDS)
    finally:
        line.clear()


def _refusal(response: httpx.Response) -> CommandError:
    """The server's own sentence."""
    try:
        error = response.json()["error"]
        message = str(error["message"])
    except (ValueError, KeyError, TypeError):
        return CommandError(f"{response.url} answered {response.status_code}; is it an Ignis server?")
    if response.status_code == 401:
        message = f"The server wants its key: set {KEY_VARIABLE}."
    return CommandError(message)


@contextmanager
def _faults() -> Iterator[None]:
    """What can go wrong between here and a server, as one sentence."""
    import httpx

    try:
        yield
    except httpx.ConnectError as fault:
        raise CommandError(f"Nothing answers at {_address(fault)}; start it with: ignis serve") from fault
    except httpx.TimeoutException as fault:
        raise CommandError(f"The server at {_address(fault)} did not answer in time.") from fault
    except (httpx.UnsupportedProtocol, httpx.InvalidURL) as fault:
        raise CommandError(f"{_address(fault)} is no address; write it like http://127.0.0.1:8000") from fault
    except httpx.TransportError as fault:
        raise CommandError(f"The connection to {_address(fault)} broke: {fault}.") from fault


def _address(fault: Exception) -> str:
    request = getattr(fault, "_request", None)
    return f"{request.url.scheme}://{request.url.netloc.decode()}" if request is not None else "that address"
