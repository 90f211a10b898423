"""Tokenising over HTTP."""

from __future__ import annotations

import httpx
import pytest

from engine import Engine


@pytest.mark.parametrize("text", ["hello world", "한국어 🔥 naïve\n\ttabs", "<|im_end|>", "a" * 1000])
def test_round_trip(http: httpx.Client, text: str) -> None:
    tokens = http.post("/v1/tokenize", json={"prompt": text, "return_token_strs": True}).json()
    assert tokens["count"] == len(tokens["tokens"]) == len(tokens["token_strs"])
    assert http.post("/v1/detokenize", json={"tokens": tokens["tokens"]}).json() == {"prompt": text}


def test_nothing_is_no_tokens(http: httpx.Client) -> None:
    assert http.post("/v1/tokenize", json={"prompt": ""}).json()["tokens"] == []
    assert http.post("/v1/detokenize", json={"tokens": []}).json() == {"prompt": ""}


def test_messages_are_tokenised_as_the_chat_prompt(http: httpx.Client, engine: Engine) -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    answer = http.post("/v1/tokenize", json={"messages": messages}).json()
    assert answer["tokens"] == list(engine.chat_prompt(messages).ids)
    assert answer["max_model_len"] == engine.info.context_length


@pytest.mark.parametrize(
    ("route", "body", "param"),
    [
        ("tokenize", {}, "prompt"),
        ("tokenize", {"prompt": "a", "messages": []}, "prompt"),
        ("tokenize", {"prompt": 3}, "prompt"),
        ("detokenize", {}, "tokens"),
        ("detokenize", {"tokens": [-1]}, "tokens.0"),
        ("detokenize", {"tokens": [10**9]}, "tokens"),
        ("detokenize", {"tokens": "1 2"}, "tokens"),
    ],
)
def test_faults(http: httpx.Client, route: str, body: dict, param: str) -> None:
    answer = http.post(f"/v1/{route}", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param
