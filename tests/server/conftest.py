"""Servers on real sockets: around a tiny random model for the protocol, around Ember for what models answer."""

from __future__ import annotations

import base64
import io
import time
from collections.abc import Callable, Iterator

import anthropic
import httpx
import openai
import pytest
from PIL import Image, ImageDraw

from engine import Engine
from ignis_desktop.server.settings import Settings
from ignis_desktop.server.thread import ServerThread
from tests.server.replay import Replay
from tests.tiny import write_tiny

CONTEXT = 65_536
"""Long enough for prompts that are still being read when their client leaves."""


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A tiny random model with a long context."""
    with Engine.load(write_tiny(tmp_path_factory.mktemp("tiny"), context=CONTEXT), threads=1) as loaded:
        yield loaded


@pytest.fixture(scope="session")
def server(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    settings = Settings(
        port=0,
        max_body_bytes=4 * 2**20,
        max_file_bytes=2**20,
        max_files_bytes=8 * 2**20,
        data_directory=tmp_path_factory.mktemp("data"),
        runtime_directory=tmp_path_factory.mktemp("run"),
    )
    with ServerThread(engine, settings) as running:
        yield running


@pytest.fixture(scope="session")
def http(server: ServerThread) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60, trust_env=False) as client:
        yield client


@pytest.fixture(scope="session")
def client(server: ServerThread) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="unused", max_retries=0, timeout=60) as opened:
        yield opened


@pytest.fixture(scope="session")
def claude(server: ServerThread) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=server.url, api_key="unused", max_retries=0, timeout=60) as opened:
        yield opened


@pytest.fixture
def replay(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Replay:
    return Replay(engine, monkeypatch)


@pytest.fixture(scope="session")
def model(engine: Engine) -> str:
    return engine.info.id


@pytest.fixture(scope="session")
def ember_server(ember: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    with ServerThread(ember, Settings(port=0, runtime_directory=tmp_path_factory.mktemp("run"))) as running:
        yield running


@pytest.fixture(scope="session")
def ember_http(ember_server: ServerThread) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=ember_server.url, timeout=110, trust_env=False) as client:
        yield client


@pytest.fixture(scope="session")
def two_buttons() -> str:
    """A small screen with a red Save button and a blue Cancel button, as a data URI."""
    picture = Image.new("RGB", (320, 192), "white")
    draw = ImageDraw.Draw(picture)
    draw.rectangle((200, 120, 280, 160), fill="red")
    draw.text((226, 134), "Save", fill="white")
    draw.rectangle((32, 19, 96, 38), fill="blue")
    draw.text((46, 23), "Cancel", fill="white")
    data = io.BytesIO()
    picture.save(data, "PNG")
    return "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()


@pytest.fixture
def wait_until() -> Callable[[Callable[[], bool], float], float]:
    """Waits for a condition; returns the seconds it took, fails after the limit."""

    def wait(condition: Callable[[], bool], limit: float) -> float:
        began = time.monotonic()
        while not condition():
            if time.monotonic() - began > limit:
                pytest.fail(f"not within {limit} s")
            time.sleep(0.01)
        return time.monotonic() - began

    return wait
