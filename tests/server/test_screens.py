"""Screenshots over HTTP: kept, asked, dropped. Where things are found is tested with the readout itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from engine import Engine
from ignis_desktop.server.settings import Settings
from ignis_desktop.server.thread import ServerThread


@pytest.fixture
def screen(http: httpx.Client, two_buttons: str) -> Iterator[dict]:
    body = http.post("/v1/screens", json={"image": two_buttons})
    assert body.status_code == 201
    yield body.json()
    http.delete(f"/v1/screens/{body.json()['id']}")


def test_a_screen_is_kept_until_it_is_deleted(http: httpx.Client, screen: dict) -> None:
    assert (screen["width"], screen["height"]) == (320, 192)
    assert screen["encode_ms"] > 0
    assert screen["coordinate_map"] == {
        "image": [320, 192],
        "tiles": [{"image": [0, 0, 320, 192], "desktop": [0, 0, 320, 192]}],
    }
    assert http.get(f"/v1/screens/{screen['id']}").json() == screen
    assert http.delete(f"/v1/screens/{screen['id']}").json()["deleted"] is True
    assert http.get(f"/v1/screens/{screen['id']}").status_code == 404
    assert http.post(f"/v1/screens/{screen['id']}/point", json={"question": "x"}).status_code == 404


def check(answer: dict, width: int = 320, height: int = 192) -> None:
    assert {"found", "pixels", "desktop", "normalized", "confidence", "uncertainty", "ms"} <= set(answer)
    assert 0 <= answer["confidence"] <= 1
    assert answer["ms"] > 0
    if answer["found"]:
        (x, y), (u, v) = answer["pixels"], answer["normalized"]
        assert 0 <= x < width
        assert 0 <= y < height
        assert (x, y) == pytest.approx((u * width, v * height), abs=1.0)


def test_one_question(http: httpx.Client, screen: dict) -> None:
    answer = http.post(f"/v1/screens/{screen['id']}/point", json={"question": "the red button"}).json()
    check(answer)
    if answer["found"]:
        assert answer["desktop"] == pytest.approx(answer["pixels"], abs=1)
    assert http.get(f"/v1/screens/{screen['id']}").json()["questions"] == 1


def test_several_questions(http: httpx.Client, screen: dict) -> None:
    questions = ["the red button", "the white area", "the red button"]
    body = http.post(f"/v1/screens/{screen['id']}/point", json={"questions": questions}).json()
    assert len(body["answers"]) == 3
    for answer in body["answers"]:
        check(answer)
    assert body["answers"][0]["pixels"] == body["answers"][2]["pixels"]


def test_boxes(http: httpx.Client, two_buttons: str) -> None:
    """In the picture's pixels and on the desktop, here half the size and 1,000 pixels to the left."""
    coordinates = {"image": [320, 192], "tiles": [{"image": [0, 0, 320, 192], "desktop": [-1000, 500, 160, 96]}]}
    screen = http.post("/v1/screens", json={"image": two_buttons, "coordinate_map": coordinates}).json()
    route = f"/v1/screens/{screen['id']}/point"
    plain = http.post(route, json={"question": "the red button"}).json()
    answers = http.post(route, json={"questions": ["the red button", "the blue one"], "box": True}).json()["answers"]
    http.delete(f"/v1/screens/{screen['id']}")
    assert "box" not in plain
    assert answers[0]["pixels"] == pytest.approx(plain["pixels"], abs=1)
    for answer in answers:
        x0, y0, x1, y1 = answer["box"]
        assert 0 <= x0 < x1 <= 320
        assert 0 <= y0 < y1 <= 192
        wanted = [-1000 + x0 / 2, 500 + y0 / 2, -1000 + x1 / 2, 500 + y1 / 2]
        assert answer["desktop_box"] == pytest.approx(wanted, abs=1)


def test_a_coordinate_map_gives_desktop_pixels(http: httpx.Client, two_buttons: str) -> None:
    coordinates = {"image": [320, 192], "tiles": [{"image": [0, 0, 320, 192], "desktop": [-1000, 500, 160, 96]}]}
    screen = http.post("/v1/screens", json={"image": two_buttons, "coordinate_map": coordinates}).json()
    answer = http.post(f"/v1/screens/{screen['id']}/point", json={"question": "the red button"}).json()
    http.delete(f"/v1/screens/{screen['id']}")
    check(answer)
    if answer["found"]:
        u, v = answer["normalized"]
        assert answer["desktop"] == pytest.approx([-1000 + u * 160, 500 + v * 96], abs=1)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "question"),
        ({"question": "a", "questions": ["b"]}, "question"),
        ({"question": ""}, "question"),
        ({"questions": []}, "questions"),
        ({"question": "a", "box": "large"}, "box"),
    ],
)
def test_faults_in_a_question(http: httpx.Client, screen: dict, body: dict, param: str) -> None:
    answer = http.post(f"/v1/screens/{screen['id']}/point", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param


def test_a_map_of_another_size_is_refused(http: httpx.Client, two_buttons: str) -> None:
    coordinates = {"image": [10, 10], "tiles": [{"image": [0, 0, 10, 10], "desktop": [0, 0, 10, 10]}]}
    answer = http.post("/v1/screens", json={"image": two_buttons, "coordinate_map": coordinates})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "coordinate_map"


def test_the_least_recently_used_screen_goes_first(engine: Engine, two_buttons: str, tmp_path: Path) -> None:
    settings = Settings(port=0, max_screens=2, runtime_directory=tmp_path)
    with (
        ServerThread(engine, settings) as server,
        httpx.Client(base_url=server.url, trust_env=False, timeout=60) as http,
    ):
        first, second = (http.post("/v1/screens", json={"image": two_buttons}).json()["id"] for _ in range(2))
        assert http.get(f"/v1/screens/{first}").status_code == 200
        third = http.post("/v1/screens", json={"image": two_buttons}).json()["id"]
        states = [http.get(f"/v1/screens/{name}").status_code for name in (first, second, third)]
    assert states == [200, 404, 200]
    assert engine.snapshot().state == "ready"
