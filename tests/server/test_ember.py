"""The bundled model through the whole server: a sentence, a line, two buttons."""

from __future__ import annotations

import httpx
import openai

from ignis_desktop.server.thread import ServerThread
from tests.server.test_decide import LOG, QUESTION


def test_a_sentence(ember_server: ServerThread) -> None:
    with openai.OpenAI(base_url=f"{ember_server.url}/v1", api_key="x", max_retries=0, timeout=110) as client:
        stream = client.chat.completions.create(
            model="ember",
            messages=[{"role": "user", "content": "Say hello in one sentence."}],
            max_tokens=6,
            temperature=0,
            stream=True,
        )
        text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
    assert text.startswith("Hello")


def test_the_line_that_answers(ember_http: httpx.Client) -> None:
    body = ember_http.post("/v1/decide", json={"state": LOG, "questions": {"q": QUESTION}}).json()
    answer = body["answers"]["q"]
    assert answer["found"]
    assert answer["line"] == 3
    assert "processor unavailable" in answer["value"]


def test_the_buttons_that_are_meant(ember_http: httpx.Client, two_buttons: str) -> None:
    screen = ember_http.post("/v1/screens", json={"image": two_buttons}).json()
    route, questions = f"/v1/screens/{screen['id']}/point", ["the red Save button", "the Cancel button"]
    save, cancel = ember_http.post(route, json={"questions": questions}).json()["answers"]
    ember_http.delete(f"/v1/screens/{screen['id']}").raise_for_status()
    for answer, (left, top, right, bottom) in ((save, (200, 120, 280, 160)), (cancel, (32, 19, 96, 38))):
        assert answer["found"]
        x, y = answer["pixels"]
        assert left <= x <= right
        assert top <= y <= bottom
