"""The bundled model through the whole server: a sentence, a line, a point."""

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


def test_the_button_that_is_meant(ember_http: httpx.Client, red_button: str) -> None:
    screen = ember_http.post("/v1/screens", json={"image": red_button}).json()
    answer = ember_http.post(f"/v1/screens/{screen['id']}/point", json={"question": "the red button"}).json()
    ember_http.delete(f"/v1/screens/{screen['id']}").raise_for_status()
    assert answer["found"]
    x, y = answer["pixels"]
    assert 200 <= x <= 280
    assert 120 <= y <= 160
