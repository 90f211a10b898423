"""Zero-token answers over HTTP: shapes and faults. What is found is tested with the readout itself."""

from __future__ import annotations

import httpx
import pytest

LOG = """\
2026-01-05 10:00:01 INFO  api      GET /health 200
2026-01-05 10:00:02 INFO  worker   job 17 finished in 31 ms
2026-01-05 10:00:03 ERROR payments card processor unavailable, retrying in 5 s
2026-01-05 10:00:04 INFO  api      GET /orders 200
2026-01-05 10:00:05 WARN  cache    eviction of 120 keys"""
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}
QUESTION = {"type": "locate", "instructions": "Which line says the card payment processor is unavailable?"}


@pytest.mark.parametrize("route", ["/v1/decide", "/v1/systemone"])
def test_locate_in_a_text(http: httpx.Client, route: str, model: str) -> None:
    body = http.post(route, json={"model": model, "state": LOG, "questions": {"which": QUESTION}}).json()
    assert body["object"] == "decision"
    assert body["usage"]["output_tokens"] == 0
    assert body["usage"]["input_tokens"] > 0
    answer = body["answers"]["which"]
    assert {"found", "segment", "line", "value", "confidence", "ranking", "timing_ms"} <= set(answer)
    assert answer["line"] == answer["segment"] + 1
    assert answer["value"] == LOG.split("\n")[answer["segment"]]
    assert 0 <= answer["confidence"] <= 1
    assert 1 <= len(answer["ranking"]) <= 5
    assert answer["ranking"][0]["line"] == answer["line"]
    assert all({"segment", "line", "value", "confidence"} == set(rank) for rank in answer["ranking"])
    assert all(isinstance(ms, int | float) for ms in answer["timing_ms"].values())


def test_several_questions_and_a_bounded_ranking(http: httpx.Client) -> None:
    second = {"type": "locate", "question": "Which line is about the cache?", "kind": "log", "top": 2}
    body = http.post("/v1/decide", json={"state": LOG, "questions": {"a": QUESTION, "b": second}}).json()
    assert list(body["answers"]) == ["a", "b"]
    assert len(body["answers"]["b"]["ranking"]) == 2


def test_elements_of_an_array_are_segments(http: httpx.Client) -> None:
    rows = [{"id": n, "name": name, "price": price} for n, (name, price) in enumerate(
        [("hammer", 12.50), ("ladder", 80.00), ("paint", 9.90)])]  # fmt: skip
    question = {"type": "locate", "instructions": "Which item is the ladder?", "within": "/items"}
    body = http.post("/v1/decide", json={"state": {"shop": "x", "items": rows}, "questions": {"q": question}}).json()
    answer = body["answers"]["q"]
    assert answer["segment"] in (0, 1, 2)
    assert f'"id": {answer["segment"]}' in answer["value"]


@pytest.mark.parametrize(
    ("question", "key", "code"),
    [
        ({"type": "choice", "instructions": "x", "options": ["a", "b"]}, "type", "unsupported_question_type"),
        ({"instructions": "x"}, "type", "unsupported_question_type"),
        ({"type": "locate"}, "question", "invalid_value"),
        ({"type": "locate", "instructions": " "}, "instructions", "invalid_value"),
        ({"type": "locate", "instructions": 5}, "instructions", "invalid_value"),
        ({"type": "locate", "instructions": "x", "kind": "poem"}, "kind", "invalid_value"),
        ({"type": "locate", "instructions": "x", "top": 0}, "top", "invalid_value"),
        ({"type": "locate", "instructions": "x", "top": True}, "top", "invalid_value"),
        ({"type": "locate", "instructions": "x", "within": "/a"}, "within", "invalid_value"),
        ({"type": "locate", "instructions": "x", "within": 1}, "within", "invalid_value"),
    ],
)
def test_a_fault_in_one_question_refuses_all_before_any_work(
    http: httpx.Client, question: dict, key: str, code: str
) -> None:
    answer = http.post("/v1/decide", json={"state": LOG, "questions": {"good": QUESTION, "bad": question}})
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert (error["question"], error["param"], error["code"]) == ("bad", f"questions.bad.{key}", code)
    if code == "unsupported_question_type":
        assert "locate" in error["message"]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"questions": {"q": QUESTION}}, "state"),
        ({"state": LOG}, "questions"),
        ({"state": LOG, "questions": {}}, "questions"),
        ({"state": LOG, "questions": [QUESTION]}, "questions"),
        ({"state": LOG, "questions": {"q": "which?"}}, "questions.q"),
        ({"state": "", "questions": {"q": QUESTION}}, "questions.q.state"),
        ({"state": [PICTURE], "questions": {"q": QUESTION}}, "questions.q.state"),
    ],
)
def test_bodies_that_do_not_fit_are_unprocessable(http: httpx.Client, body: dict, param: str) -> None:
    answer = http.post("/v1/decide", json=body)
    assert answer.status_code == 422
    assert answer.json()["error"]["param"] == param


def test_a_body_that_is_not_json_is_a_bad_request(http: httpx.Client) -> None:
    assert http.post("/v1/decide", content=b"{").status_code == 400
