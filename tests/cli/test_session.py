"""What can go wrong between a command and a server is one sentence."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ignis_desktop.cli.errors import CommandError
from ignis_desktop.cli.options import ConnectionOptions, EngineOptions
from ignis_desktop.cli.session import KEY_VARIABLE, Session, connected

Answer = Callable[[BaseHTTPRequestHandler], None]


def answer(status: int, body: object, kind: str = "application/json") -> Answer:
    def send(handler: BaseHTTPRequestHandler) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(status)
        handler.send_header("content-type", kind)
        handler.send_header("content-length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return send


def break_off(handler: BaseHTTPRequestHandler) -> None:
    """Promises more than it sends."""
    handler.send_response(200)
    handler.send_header("content-length", "1000")
    handler.end_headers()
    handler.wfile.write(b'data: {"choices": []}\n\n')
    handler.close_connection = True


READY = answer(200, {"state": "ready", "model": "Ember 0", "lanes": []})


class Server:
    """A scripted server: path → answer. Keeps the headers of the last request."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {"/v1/engine": READY}
        self.headers: dict[str, str] = {}
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("content-length", 0)))
                server.headers = {name.lower(): value for name, value in self.headers.items()}
                server.answers.get(self.path, answer(404, {}))(self)

            do_POST = do_GET

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


def use(url: str, work: Callable[[Session], object]) -> object:
    with connected(ConnectionOptions(url, EngineOptions()), "test") as session:
        return work(session)


@pytest.mark.parametrize("form", ["{}", "{}/", "{}/v1", "{}/v1/"])
def test_address_in_any_form(server: Server, form: str) -> None:
    assert use(form.format(server.url), Session.engine_state) == {"state": "ready", "model": "Ember 0", "lanes": []}
    assert use(form.format(server.url.removeprefix("http://")), Session.engine_state)


def test_key_comes_from_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "sesame")
    use(server.url, Session.engine_state)
    assert server.headers["authorization"] == "Bearer sesame"
    assert server.headers["user-agent"].startswith("ignis-test/")


def test_waits_while_the_model_loads(server: Server) -> None:
    states = iter(["planning", "loading", "loading", "ready"])

    def loading(handler: BaseHTTPRequestHandler) -> None:
        answer(200, {"state": next(states), "progress": 0.5})(handler)

    server.answers["/v1/engine"] = loading
    use(server.url, lambda session: None)
    assert next(states, None) is None


@pytest.mark.parametrize(
    ("path", "reply", "says"),
    [
        ("/v1/engine", answer(200, {"state": "failed", "reason": "The disk is gone."}), "The disk is gone."),
        ("/v1/engine", answer(401, {"error": {"message": "key"}}), KEY_VARIABLE),
        ("/v1/engine", answer(200, b"<html>", "text/html"), "does not answer like an Ignis server"),
        ("/v1/engine", answer(404, b"<html>", "text/html"), "is it an Ignis server"),
        ("/v1/x", answer(400, {"error": {"message": "12,000 tokens do not fit."}}), "12,000 tokens do not fit."),
        ("/v1/x", break_off, "broke"),
    ],
)
def test_faults_of_a_server(server: Server, path: str, reply: Answer, says: str) -> None:
    server.answers[path] = reply
    with pytest.raises(CommandError, match=says):
        use(server.url, lambda session: session.post("/v1/x", {}))


def test_stream(server: Server) -> None:
    data = b': keep-alive\n\ndata: {"n": 1}\n\ndata:{"n": 2}\n\ndata: [DONE]\n\ndata: {"n": 3}\n\n'
    server.answers["/v1/x"] = answer(200, data, "text/event-stream")
    assert use(server.url, lambda session: list(session.stream("/v1/x", {}))) == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (answer(200, b'data: {"error": {"message": "The engine failed."}}\n\n'), "The engine failed."),
        (answer(503, {"error": {"message": "The queue is full."}}), "The queue is full."),
        (break_off, "broke"),
    ],
)
def test_faults_of_a_stream(server: Server, reply: Answer, says: str) -> None:
    server.answers["/v1/x"] = reply
    with pytest.raises(CommandError, match=says):
        use(server.url, lambda session: list(session.stream("/v1/x", {})))


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://127.0.0.1:{port}", "Nothing answers at http://127.0.0.1:{port}; start it with: ignis serve"),
        ("127.0.0.1:notaport", "is no address"),
        ("ftp://127.0.0.1", "is no address"),
    ],
)
def test_addresses_that_lead_nowhere(url: str, says: str, closed_port: int) -> None:
    with pytest.raises(CommandError) as fault:
        use(url.format(port=closed_port), Session.engine_state)
    assert says.format(port=closed_port) in fault.value.message
