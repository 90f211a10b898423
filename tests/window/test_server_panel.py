"""The Server panel around a real server: states, ports, keys, requests, snippets that work."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from ignis_desktop.panels.snippets import snippets
from tests.window.conftest import Opened


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that another program listens on."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield int(holder.getsockname()[1])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def running(opened: Opened) -> Opened:
    opened.settings.change(port=free_port())
    opened.window.show_panel("server")
    opened.window.server.toggle()
    reach(opened, "running")
    return opened


def reach(opened: Opened, state: str) -> None:
    opened.qtbot.waitUntil(lambda: opened.server.state == state, timeout=30_000)


def set_port(opened: Opened, port: int) -> None:
    opened.window.server.port.set_value(port)


def test_it_starts_serves_logs_and_stops(running: Opened, qtbot) -> None:
    panel = running.window.server
    assert panel._address.text() == running.server.url + "/v1"
    assert running.server.url in running.window.status.text
    assert panel._toggle.text() == "Stop"
    model = httpx.get(running.server.url + "/v1/models", trust_env=False).json()["data"][0]["id"]
    assert f'"{model}"' in panel.code.text
    httpx.get(running.server.url + "/v1/nothing", trust_env=False)
    table = panel.table.requests
    qtbot.waitUntil(lambda: table.index(0, 4).data() == "404 unknown_route", timeout=5000)
    assert table.rowCount() == 2
    assert table.index(0, 1).data() == "GET /v1/nothing"
    assert table.index(1, 4).data() == "200"
    panel.toggle()
    reach(running, "stopped")
    with pytest.raises(httpx.ConnectError):
        httpx.get(running.server.url or panel.base_url(), trust_env=False)
    assert not running.settings.values.serve
    assert panel._toggle.text() == "Start"


def test_a_taken_port_is_said_and_nothing_else_is_picked(opened: Opened, taken: int) -> None:
    opened.settings.change(port=taken)
    panel = opened.window.server
    panel.toggle()
    reach(opened, "failed")
    assert panel._state.text() == "Not running."
    assert f"Port {taken} is taken" in panel._port_error.text()
    assert not panel._port_error.isHidden()
    assert panel.port.property("invalid")
    assert "server not running" in opened.window.status.text
    other = free_port()
    set_port(opened, other)
    reach(opened, "running")
    assert opened.server.url == f"http://127.0.0.1:{other}"
    assert panel._port_error.isHidden()


def test_the_key_is_needed_once_it_is_set(running: Opened, qapp) -> None:
    panel = running.window.server
    assert httpx.get(running.server.url + "/v1/models", trust_env=False).status_code == 200
    panel._change_key("secret-key")
    reach(running, "running")
    url = running.server.url + "/v1/models"
    assert httpx.get(url, trust_env=False).status_code == 401
    assert httpx.get(url, headers={"Authorization": "Bearer secret-key"}, trust_env=False).status_code == 200
    shown = panel.code._view.toPlainText()
    assert "secret-key" not in shown, "a hidden key is hidden everywhere"
    panel.code.copy.click()
    assert 'api_key="secret-key"' in qapp.clipboard().text()
    panel._toggle_key()
    assert "secret-key" in panel.code._view.toPlainText()


def test_other_machines_need_a_key(running: Opened) -> None:
    panel = running.window.server
    panel.lan.setChecked(True)
    reach(running, "running")
    assert running.settings.values.host == "0.0.0.0"
    key = running.settings.values.api_key
    assert key.startswith("ignis-")
    assert not panel._warning.isHidden()
    assert "Other machines reach it at http://" in panel._state.text()
    assert httpx.get(running.server.url + "/v1/models", trust_env=False).status_code == 401
    panel._change_key("")
    reach(running, "running")
    assert running.settings.values.host == "127.0.0.1"
    assert not panel.lan.isChecked()


def test_web_pages_only_when_switched_on(running: Opened) -> None:
    panel = running.window.server
    headers = {"Origin": "https://example.org"}
    answer = httpx.get(running.server.url + "/v1/models", headers=headers, trust_env=False)
    assert "access-control-allow-origin" not in answer.headers
    panel.cors.setChecked(True)
    reach(running, "running")
    answer = httpx.get(running.server.url + "/v1/models", headers=headers, trust_env=False)
    assert answer.headers["access-control-allow-origin"] in ("*", "https://example.org")


@pytest.mark.parametrize("key", ["", "secret-key"])
def test_snippets_work_as_they_are_pasted(running: Opened, qtbot, key: str) -> None:
    panel = running.window.server
    if key:
        panel._change_key(key)
        reach(running, "running")
    environment = os.environ | {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}

    def run(command: list[str]) -> str:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        qtbot.waitUntil(lambda: process.poll() is not None, timeout=60_000)
        out, err = process.communicate()
        assert process.returncode == 0, err
        return out

    def chosen(title: str) -> str:
        panel.client._choose(title)
        return panel.code.text

    assert run([sys.executable, "-c", chosen("OpenAI SDK")]).strip()
    assert run([sys.executable, "-c", chosen("Anthropic SDK")]).strip()
    if shutil.which("curl") and sys.platform != "win32":
        assert '"choices"' in run(["bash", "-c", chosen("curl")])
        variables = run(["bash", "-c", chosen("Others") + "env"])
        assert f"OPENAI_BASE_URL={running.server.url}/v1" in variables
        variables = run(["bash", "-c", chosen("Claude Code").replace("claude\n", "env\n")])
        assert f"ANTHROPIC_BASE_URL={running.server.url}\n" in variables
    codex = tomllib.loads(chosen("Codex"))["model_providers"]["ignis"]
    assert panel._place.text() == "In ~/.codex/config.toml"
    headers = codex.get("http_headers", {})
    assert httpx.get(codex["base_url"] + "/models", headers=headers, trust_env=False).status_code == 200


def test_an_answer_shows_its_tokens_and_its_speed(running: Opened, qtbot) -> None:
    body = {"messages": [{"role": "user", "content": "hi " * 100}], "max_tokens": 8, "ignore_eos": True}
    for _ in range(2):
        answer = httpx.post(
            running.server.url + "/v1/chat/completions",
            json=body,
            headers={"X-Ignis-Class": "agent", "User-Agent": "aider/1"},
            trust_env=False,
            timeout=30,
        )
    usage, table = answer.json()["usage"], running.window.server.table.requests
    qtbot.waitUntil(lambda: table.rowCount() == 2 and table.index(0, 4).data() == "200", timeout=5000)
    row = [table.index(0, column).data() for column in range(table.columnCount())]
    assert row[1:5] == ["POST /v1/chat/completions", "aider/1", "agent", "200"]
    assert row[6] == f"{usage['prompt_tokens']:,} → 8"
    assert row[7] == f"{usage['prompt_tokens_details']['cached_tokens']:,}"
    assert float(row[8].replace(",", "")) > 0


def test_windows_gets_snippets_of_its_own() -> None:
    found = {one.title: one.code for one in snippets("http://127.0.0.1:8000/v1", "k", "ember", platform="win32")}
    assert "PowerShell" in found
    assert "curl" not in found
    assert found["Others"].splitlines()[0] == '$env:OPENAI_BASE_URL="http://127.0.0.1:8000/v1"'


def test_the_document_shows_the_same_snippets() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "clients.md").read_text(encoding="utf-8")
    for one in snippets("http://127.0.0.1:8000/v1", "", "ember", platform="linux"):
        assert f"```{one.language}\n{one.code}```" in text, one.title


def test_captures_are_switched_off(running: Opened) -> None:
    assert running.settings.values.capture
    running.window.server.capture.click()
    reach(running, "running")
    body = {"capture": {"monitor": 1}}
    answer = httpx.post(running.server.url + "/v1/screens", json=body, trust_env=False)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "capture_not_allowed")
    assert not running.settings.values.capture
