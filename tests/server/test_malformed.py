"""Whatever is sent, the answer is a 4xx with OpenAI's body that names the parameter, never a 5xx."""

from __future__ import annotations

import json

import httpx
import pytest

CHAT = "/v1/chat/completions"
TEXT = "/v1/completions"
HI = [{"role": "user", "content": "hi"}]


def part(**fields: object) -> dict:
    return {"messages": [{"role": "user", "content": [fields]}]}


def image(url: object) -> dict:
    return part(type="image_url", image_url={"url": url})


CASES = [
    (CHAT, {}, "messages"),
    (CHAT, {"messages": None}, "messages"),
    (CHAT, {"messages": []}, "messages"),
    (CHAT, {"messages": "hi"}, "messages"),
    (CHAT, {"messages": [None]}, "messages.0"),
    (CHAT, {"messages": [{}]}, "messages.0.role"),
    (CHAT, {"messages": [{"role": "wizard", "content": "hi"}]}, "messages.0.role"),
    (CHAT, {"messages": [{"role": "user"}]}, "messages.0.content"),
    (CHAT, {"messages": [{"role": "user", "content": 5}]}, "messages.0.content"),
    (CHAT, {"messages": [{"role": "user", "content": ["hi"]}]}, "messages.0.content.0"),
    (CHAT, {"messages": [{"role": "assistant", "tool_calls": 5}]}, "messages.0.tool_calls"),
    (CHAT, {"messages": [{"role": "assistant", "tool_calls": [{"x": 1}]}]}, "messages"),
    (CHAT, part(type="text"), "messages.0.content.0.text"),
    (CHAT, part(type="text", text=5), "messages.0.content.0.text"),
    (CHAT, part(type="input_audio", input_audio={}), "messages.0.content.0.type"),
    (CHAT, part(type="image_url"), "messages.0.content.0.image_url.url"),
    (CHAT, image(None), "messages.0.content.0.image_url.url"),
    (CHAT, image("http://127.0.0.1:1/a.png"), "messages.0.content.0.image_url.url"),
    (CHAT, image("data:image/png;base64,AAAA"), "messages.0.content.0.image_url.url"),
    (CHAT, image("data:image/png;base64,!"), "messages.0.content.0.image_url.url"),
    (CHAT, {"messages": HI, "temperature": "hot"}, "temperature"),
    (CHAT, {"messages": HI, "temperature": -0.1}, "temperature"),
    (CHAT, {"messages": HI, "temperature": 2.1}, "temperature"),
    (CHAT, {"messages": HI, "top_p": 1.5}, "top_p"),
    (CHAT, {"messages": HI, "top_k": -2}, "top_k"),
    (CHAT, {"messages": HI, "top_k": 1.5}, "top_k"),
    (CHAT, {"messages": HI, "min_p": True}, "min_p"),
    (CHAT, {"messages": HI, "presence_penalty": 3}, "presence_penalty"),
    (CHAT, {"messages": HI, "repetition_penalty": 0}, "repetition_penalty"),
    (CHAT, {"messages": HI, "max_tokens": 0}, "max_tokens"),
    (CHAT, {"messages": HI, "max_tokens": "many"}, "max_tokens"),
    (CHAT, {"messages": HI, "max_completion_tokens": -1}, "max_completion_tokens"),
    (CHAT, {"messages": HI, "n": 9}, "n"),
    (CHAT, {"messages": HI, "n": "two"}, "n"),
    (CHAT, {"messages": HI, "n": 0}, "n"),
    (CHAT, {"messages": HI, "seed": 1.5}, "seed"),
    (CHAT, {"messages": HI, "stop": ""}, "stop"),
    (CHAT, {"messages": HI, "stop": 5}, "stop"),
    (CHAT, {"messages": HI, "stop": ["a", None]}, "stop.1"),
    (CHAT, {"messages": HI, "stop": ["a"] * 17}, "stop"),
    (CHAT, {"messages": HI, "stream": "yes"}, "stream"),
    (CHAT, {"messages": HI, "stream_options": []}, "stream_options"),
    (CHAT, {"messages": HI, "logprobs": 3}, "logprobs"),
    (CHAT, {"messages": HI, "top_logprobs": 3}, "top_logprobs"),
    (CHAT, {"messages": HI, "logprobs": True, "top_logprobs": 21}, "top_logprobs"),
    (CHAT, {"messages": HI, "logit_bias": {"5": 101}}, "logit_bias"),
    (CHAT, {"messages": HI, "logit_bias": {"five": 1}}, "logit_bias"),
    (CHAT, {"messages": HI, "logit_bias": {"999999": 1}}, "logit_bias"),
    (CHAT, {"messages": HI, "logit_bias": {"5": 1, "05": 1, "6": "x"}}, "logit_bias"),
    (CHAT, {"messages": HI, "response_format": "json"}, "response_format"),
    (CHAT, {"messages": HI, "response_format": {"type": "yaml"}}, "response_format.type"),
    (CHAT, {"messages": HI, "response_format": {"type": "json_schema"}}, "response_format.json_schema.schema"),
    (CHAT, {"messages": HI, "thinking_budget": -1}, "thinking_budget"),
    (CHAT, {"messages": HI, "thinking_budget": "much"}, "thinking_budget"),
    (CHAT, {"messages": HI, "tools": [{}]}, "tools"),
    (CHAT, {"messages": HI, "class": 5}, "class"),
    (CHAT, {"messages": HI, "model": 5}, "model"),
    (CHAT, {"messages": HI, "enable_thinking": "no"}, "enable_thinking"),
    (TEXT, {}, "prompt"),
    (TEXT, {"prompt": None}, "prompt"),
    (TEXT, {"prompt": 5}, "prompt"),
    (TEXT, {"prompt": {"text": "x"}}, "prompt"),
    (TEXT, {"prompt": ["a", 1]}, "prompt"),
    (TEXT, {"prompt": [1, "a"]}, "prompt"),
    (TEXT, {"prompt": [[1], ["a"]]}, "prompt"),
    (TEXT, {"prompt": [-1]}, "prompt"),
    (TEXT, {"prompt": [1.5]}, "prompt"),
    (TEXT, {"prompt": "a", "logprobs": True}, "logprobs"),
    (TEXT, {"prompt": "a", "max_tokens": -1}, "max_tokens"),
    ("/v1/screens", {}, "image"),
    ("/v1/screens", {"image": 5}, "image"),
    ("/v1/screens", {"image": "screenshot.png"}, "image"),
]


def check(answer: httpx.Response, status: int) -> dict:
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(error) >= {"message", "type", "code", "param"}
    assert error["message"]
    assert error["type"] == "invalid_request_error"
    assert "Traceback" not in answer.text
    return error


@pytest.mark.parametrize(("route", "body", "param"), CASES, ids=lambda value: None)
def test_bodies_that_do_not_fit(http: httpx.Client, route: str, body: dict, param: str) -> None:
    error = check(http.post(route, json=body), 400)
    assert error["param"] is not None
    assert error["param"] == param or error["param"].startswith(f"{param}.")


RAW = [
    b"",
    b"{",
    b"null",
    b"[]",
    b'"text"',
    b"messages=hi",
    b'{"messages": [}',
    b"\xff\xfe{",
    b'{"messages": [{"role": "user", "content": "\\ud800"}]}',
    b'{"messages": "' + b"[" * 100_000 + b'"}',
    b"[" * 100_000,
    b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
]


@pytest.mark.parametrize("route", [CHAT, TEXT, "/v1/tokenize", "/v1/detokenize", "/v1/screens"])
@pytest.mark.parametrize("raw", RAW, ids=range(len(RAW)))
def test_bytes_that_are_not_a_request(http: httpx.Client, route: str, raw: bytes) -> None:
    check(http.post(route, content=raw, headers={"content-type": "application/json"}), 400)


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity", "1" + "0" * 5_000])
@pytest.mark.parametrize("name", ["temperature", "top_k", "seed", "max_tokens", "presence_penalty"])
def test_numbers_beyond_all_bounds(http: httpx.Client, name: str, number: str) -> None:
    raw = f'{{"{name}": {number}, "messages": [{{"role": "user", "content": "hi"}}]}}'
    check(http.post(CHAT, content=raw), 400)


def test_a_broken_body_names_the_place(http: httpx.Client) -> None:
    error = check(http.post(CHAT, content=b'{"messages": [}'), 400)
    assert "not valid JSON" in error["message"]
    assert "column 15" in error["message"]


@pytest.mark.parametrize("declared", [True, False], ids=["content-length", "chunked"])
def test_bodies_that_are_too_large(http: httpx.Client, declared: bool) -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "x" * 6_000_000}]}).encode()
    content = body if declared else (body[at : at + 65536] for at in range(0, len(body), 65536))
    answer = http.post(CHAT, content=content)
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "body_too_large"
    assert http.get("/health").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/", 404, "unknown_route"),
        ("GET", "/v1/nothing", 404, "unknown_route"),
        ("GET", CHAT, 405, "method_not_allowed"),
        ("PATCH", "/v1/models", 405, "method_not_allowed"),
        ("GET", "/v1/screens/nothing", 404, "screen_not_found"),
        ("DELETE", "/v1/screens/nothing", 404, "screen_not_found"),
    ],
)
def test_routes_that_are_not_there(http: httpx.Client, method: str, path: str, status: int, code: str) -> None:
    answer = http.request(method, path)
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == code
