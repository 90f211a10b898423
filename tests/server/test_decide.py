"""Zero-token answers over HTTP: shapes and faults. What is found is tested with the readout itself."""

from __future__ import annotations

import base64
import io

import httpx
import pytest
from PIL import Image

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
    assert answer["kind"] == "records"
    assert answer["pointers"][0] == f"/items/{answer['segment']}"


def test_what_the_index_answers(http: httpx.Client) -> None:
    questions = {
        "count": {"type": "locate", "instructions": "How many GET requests are there?", "kind": "log"},
        "never": {"type": "locate", "instructions": "What happened after 11:00?", "kind": "log"},
    }
    answers = http.post("/v1/decide", json={"state": LOG, "questions": questions}).json()["answers"]
    assert (answers["count"]["count"], answers["count"]["line"]) == (2, 1)
    assert (answers["never"]["found"], answers["never"]["line"], answers["never"]["ranking"]) == (False, None, [])
    assert "No line" in answers["never"]["note"]


@pytest.mark.parametrize(
    ("question", "key", "code"),
    [
        ({"type": "polygon", "instructions": "x"}, "type", "unsupported_question_type"),
        ({"type": "box", "instructions": "x"}, "type", "invalid_value"),
        ({"type": "choice", "instructions": "x"}, "options", "invalid_value"),
        ({"type": "choice", "instructions": "x", "options": ["a"]}, "options", "bad_options"),
        ({"type": "choice", "instructions": "x", "options": ["a", 5]}, "options", "invalid_value"),
        ({"type": "multi", "instructions": "x", "options": {"a": "x", "b": ""}}, "options", "bad_options"),
        ({"type": "score", "instructions": "x", "levels": "high"}, "levels", "invalid_value"),
        ({"type": "noul", "instructions": "x", "true": "so"}, "options", "bad_options"),
        ({"type": "noul", "instructions": "x", "true": 1, "false": 0}, "true", "invalid_value"),
        ({"type": "number", "instructions": "x", "digits": 0}, "digits", "bad_digits"),
        ({"type": "number", "instructions": "x", "digits": "2"}, "digits", "invalid_value"),
        ({"type": "choice", "options": ["a", "b"]}, "question", "invalid_value"),
        ({"type": "point", "instructions": "x"}, "type", "invalid_value"),
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


TYPED = {
    "up": {"type": "noul", "instructions": "Is the card processor reachable?"},
    "down": {"type": "boolean", "instructions": "Is a service down?", "true": "One is.", "false": "None is."},
    "where": {"type": "choice", "instructions": "Which part fails?", "options": {"api": "the API", "pay": "payments"}},
    "grade": {"type": "score", "question": "How bad is it?", "levels": ["fine", "bad", "worst"]},
    "named": {"type": "multi", "instructions": "Which are named?", "options": ["cache", "worker", "printer"]},
    "job": {"type": "number", "instructions": "Which job finished?", "digits": 2},
    "share": {"type": "scalar", "instructions": "Which part of the keys was evicted?", "digits": 1},
}


def test_every_type_over_one_state(http: httpx.Client) -> None:
    body = http.post("/v1/decide", json={"state": LOG, "questions": {**TYPED, "which": QUESTION}}).json()
    answers = body["answers"]
    assert list(answers) == [*TYPED, "which"]
    assert [answers[name]["type"] for name in TYPED] == ["noul", "noul", "choice", "score", "multi", "number", "scalar"]
    assert body["usage"]["output_tokens"] == 3, "the digits of the numbers"
    assert body["usage"]["cached_tokens"] > body["usage"]["input_tokens"] / 3
    assert all(0 <= answers[name]["label_mass"] <= 1 for name in TYPED)
    assert 0 <= answers["up"]["noul"] <= 1
    assert answers["where"]["choice"] in ("api", "pay")
    assert sum(answers["where"]["probabilities"].values()) == pytest.approx(1)
    assert answers["where"]["confidence"] == max(answers["where"]["probabilities"].values())
    assert answers["grade"]["level"] in ("fine", "bad", "worst")
    assert 0 <= answers["grade"]["score"] <= 2
    assert set(answers["named"]["chosen"]) == {n for n, p in answers["named"]["probabilities"].items() if p >= 0.5}
    assert answers["job"]["value"] == int(
        "".join(str(max(range(10), key=d.__getitem__)) for d in answers["job"]["digits"])
    )
    assert answers["job"]["uncertainty"] >= 0
    assert 0 <= answers["share"]["value"] < 1


def test_without_numbers_nothing_is_generated(http: httpx.Client) -> None:
    questions = {name: TYPED[name] for name in ("up", "down", "where", "grade", "named")}
    before = http.get("/v1/engine").json()["counters"]["tokens_generated"]
    body = http.post("/v1/decide", json={"state": LOG, "questions": questions}).json()
    assert body["usage"]["output_tokens"] == 0
    assert http.get("/v1/engine").json()["counters"]["tokens_generated"] == before


def picture(colour: tuple[int, int, int]) -> dict:
    file = io.BytesIO()
    Image.new("RGB", (64, 64), colour).save(file, "PNG")
    return {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()},
    }


def test_pictures_are_pointed_on_and_judged(http: httpx.Client) -> None:
    state = [{"type": "text", "text": "Two screens:"}, picture((255, 0, 0)), picture((0, 0, 255))]
    questions = {
        "last": {"type": "point", "instructions": "the blue button"},
        "first": {"type": "point", "instructions": "the red button", "image": 0},
        "dark": {"type": "noul", "instructions": "Is it dark?"},
        "far": {"type": "box", "instructions": "the red button", "image": 0},
    }
    body = http.post("/v1/decide", json={"state": state, "questions": questions}).json()
    for name in ("last", "first", "far"):
        x, y = body["answers"][name]["pixels"]
        assert 0 <= x < 64
        assert 0 <= y < 64
    box = body["answers"]["far"]
    edges = [box["x0"], box["y0"], box["x1"], box["y1"]]
    assert 0 <= edges[0] < edges[2] <= 64
    assert 0 <= edges[1] < edges[3] <= 64
    assert box["normalized"] == pytest.approx([edge / 64 for edge in edges])
    # The same picture and words: the point's region is the box.
    assert body["answers"]["first"]["region"] == pytest.approx(edges, abs=1)
    assert 0 <= body["answers"]["dark"]["noul"] <= 1
    bad = {**questions, "none": {"type": "point", "instructions": "x", "image": 2}}
    answer = http.post("/v1/decide", json={"state": state, "questions": bad})
    assert (answer.status_code, answer.json()["error"]["param"]) == (422, "questions.none.image")


def test_places_as_digits(http: httpx.Client) -> None:
    questions = {
        "point": {"type": "point", "method": "chain", "instructions": "the red button"},
        "box": {"type": "box", "method": "chain", "instructions": "the red button"},
    }
    body = http.post("/v1/decide", json={"state": [picture((255, 0, 0))], "questions": questions}).json()
    assert body["usage"]["output_tokens"] == 6 + 12
    point, box = body["answers"]["point"], body["answers"]["box"]
    assert point["found"]
    assert point["pixels"] == [int(share * 64) for share in point["normalized"]]
    left, top, right, bottom = point["region"]
    assert left <= point["pixels"][0] < right
    assert top <= point["pixels"][1] < bottom
    assert 0 <= box["x0"] < box["x1"] <= 64
    assert 0 <= box["y0"] < box["y1"] <= 64
    bad = {"point": questions["point"] | {"method": "guess"}}
    answer = http.post("/v1/decide", json={"state": [picture((255, 0, 0))], "questions": bad})
    assert (answer.status_code, answer.json()["error"]["param"]) == (422, "questions.point.method")


@pytest.mark.parametrize("part", [PICTURE, {"type": "text", "text": 5}], ids=["picture", "text"])
def test_a_broken_part_of_the_state_is_refused_before_any_work(http: httpx.Client, part: dict) -> None:
    questions = {"dark": {"type": "noul", "instructions": "Is it dark?"}}
    answer = http.post("/v1/decide", json={"state": [part, picture((0, 0, 0))], "questions": questions})
    assert answer.status_code == 422
    assert "state" in answer.json()["error"]["param"]
