"""Screenshots that the server takes itself: what may be named, and who may ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from PIL import Image

from engine import Engine
from ignis_desktop.capture.coordinates import CoordinateMap, Rect
from ignis_desktop.capture.grabbing import (
    CaptureError,
    Monitor,
    MonitorTarget,
    RegionTarget,
    Shot,
    Target,
    Window,
    WindowTarget,
    find_monitor,
    find_window,
)
from ignis_desktop.server import captures
from ignis_desktop.server.settings import Settings
from ignis_desktop.server.thread import ServerThread


class Grabber:
    """A monitor at the left of a desktop, 150 % as dense as it, with one window."""

    watchable = True

    def monitors(self) -> list[Monitor]:
        return [Monitor(1, "DP-1", Rect(-320, 0, 320, 192), True)]

    def windows(self) -> list[Window]:
        return [Window(7, "Buttons - Demo", Rect(-300, 20, 160, 96))]

    def grab(self, target: Target) -> Shot:
        area = target.area if isinstance(target, RegionTarget) else None
        if isinstance(target, WindowTarget):
            area = find_window(self.windows(), target).area
        elif isinstance(target, MonitorTarget):
            area = find_monitor(self.monitors(), target.number).area
        assert area is not None
        size = round(area.width * 1.5), round(area.height * 1.5)
        return Shot(Image.new("RGB", size, "teal"), CoordinateMap.of_region(*size, area))


@pytest.fixture(autouse=True)
def grabber(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captures, "choose_grabber", lambda **_: Grabber())


@pytest.fixture
def served(engine: Engine, tmp_path: Path) -> Iterator[Callable[..., httpx.Client]]:
    """Starts servers with other settings; returns clients of theirs."""
    open_ones: list[tuple[ServerThread, httpx.Client]] = []

    def serve(**settings: object) -> httpx.Client:
        server = ServerThread(engine, Settings(port=0, runtime_directory=tmp_path, **settings))
        server.start()
        client = httpx.Client(base_url=server.url, trust_env=False, timeout=60)
        open_ones.append((server, client))
        return client

    yield serve
    for server, client in open_ones:
        client.close()
        server.stop()


@pytest.mark.parametrize(
    ("target", "area"),
    [
        ({"monitor": 1}, [-320, 0, 320, 192]),
        ({"region": [-100, 10, 64, 32]}, [-100, 10, 64, 32]),
        ({"window": "buttons"}, [-300, 20, 160, 96]),
    ],
)
def test_what_is_captured_knows_where_it_lies(http: httpx.Client, target: dict, area: list[float]) -> None:
    answer = http.post("/v1/screens", json={"capture": target})
    assert answer.status_code == 201
    screen = answer.json()
    assert (screen["width"], screen["height"]) == (round(area[2] * 1.5), round(area[3] * 1.5))
    assert [tile["desktop"] for tile in screen["coordinate_map"]["tiles"]] == [area]
    place = http.post(f"/v1/screens/{screen['id']}/point", json={"question": "the button"}).json()
    http.delete(f"/v1/screens/{screen['id']}")
    x, y = place["desktop"]
    assert area[0] <= x < area[0] + area[2]
    assert area[1] <= y < area[1] + area[3]
    u, v = place["normalized"]
    assert (x, y) == pytest.approx((area[0] + u * area[2], area[1] + v * area[3]), abs=1)


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        ({"capture": {}}, 400, "invalid_value", "capture"),
        ({"capture": {"monitor": "main"}}, 400, "invalid_value", "capture"),
        ({"capture": {"monitor": 4}}, 404, "monitor_not_found", "capture"),
        ({"capture": {"window": "Firefox"}}, 404, "window_not_found", "capture"),
        ({"capture": {"monitor": 1}, "image": "data:image/png;base64,AA=="}, 400, "invalid_value", "image"),
        ({}, 400, "invalid_value", "image"),
    ],
)
def test_faults_of_the_caller(http: httpx.Client, body: dict, status: int, code: str, param: str) -> None:
    answer = http.post("/v1/screens", json=body)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert (error["code"], error["param"]) == (code, param)


def test_a_machine_without_a_display(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(**_: object) -> Grabber:
        raise CaptureError("There is no display to capture; send an image instead.", "no_display")

    monkeypatch.setattr(captures, "choose_grabber", none)
    answer = http.post("/v1/screens", json={"capture": {"monitor": 1}})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "no_display")


CAPTURE = {"capture": {"monitor": 1}}
PAGE = {"origin": "https://example.org"}


def test_captures_can_be_switched_off(served: Callable[..., httpx.Client], two_buttons: str) -> None:
    client = served(capture=False)
    answer = client.post("/v1/screens", json=CAPTURE)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "capture_not_allowed")
    assert client.post("/v1/screens", json={"image": two_buttons}).status_code == 201


def test_a_web_page_needs_the_key(served: Callable[..., httpx.Client]) -> None:
    client = served(cors_origins=("*",))
    answer = client.post("/v1/screens", json=CAPTURE, headers=PAGE)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "capture_not_allowed")
    own = {"origin": str(client.base_url).rstrip("/")}
    assert client.post("/v1/screens", json=CAPTURE, headers=own).status_code == 201


def test_a_web_page_with_the_key(served: Callable[..., httpx.Client]) -> None:
    client = served(cors_origins=("*",), api_key="secret")
    assert client.post("/v1/screens", json=CAPTURE, headers=PAGE).status_code == 401
    answer = client.post("/v1/screens", json=CAPTURE, headers=PAGE | {"authorization": "Bearer secret"})
    assert answer.status_code == 201
