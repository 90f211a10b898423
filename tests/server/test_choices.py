"""Several answers to one prompt, biases, budgets of thinking, and what models are called."""

from __future__ import annotations

import json
import logging
from typing import Any

import httpx
import openai
import pytest

from engine import Engine
from ignis_desktop.server.settings import Settings
from ignis_desktop.server.thread import ServerThread
from tests.server.replay import Replay

LONG: list[Any] = [{"role": "user", "content": "one two three " * 60}]


@pytest.fixture
def replay(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Replay:
    return Replay(engine, monkeypatch)


def test_n_answers_read_their_prompt_once(client: openai.OpenAI, engine: Engine, model: str, replay: Replay) -> None:
    replay.answers("first", "second", "third")
    messages: list[Any] = [{"role": "user", "content": "four five six " * 60}]
    read = engine.snapshot().tokens_prefilled
    answer = client.chat.completions.create(model=model, messages=messages, n=3)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert sorted(choice.message.content or "" for choice in answer.choices) == ["first", "second", "third"]
    assert answer.usage is not None
    one = client.chat.completions.create(model=model, messages=messages, max_tokens=1).usage
    assert one is not None
    assert answer.usage.prompt_tokens == one.prompt_tokens
    texts = [choice.message.content or "" for choice in answer.choices]
    assert answer.usage.completion_tokens == sum(len(engine.tokenizer.encode(text)) + 1 for text in texts)
    # The followers found the prompt kept up to where the answer begins.
    assert engine.snapshot().tokens_prefilled - read < one.prompt_tokens + 4 * 64


def test_each_choice_has_its_own_stream(client: openai.OpenAI, model: str, replay: Replay) -> None:
    call = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    replay.answers("plain text", f"before\n{call}")
    tools: Any = [{"type": "function", "function": {"name": "f"}}]
    chunks = list(
        client.chat.completions.create(
            model=model, messages=LONG, n=2, tools=tools, stream=True, stream_options={"include_usage": True}
        )
    )
    texts, roles, ends = ["", ""], [0, 0], ["", ""]
    for chunk in chunks:
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
            roles[choice.index] += choice.delta.role is not None
            ends[choice.index] = choice.finish_reason or ends[choice.index]
    assert sorted(zip(texts, ends, strict=True)) == [("before", "tool_calls"), ("plain text", "stop")]
    assert roles == [1, 1]
    assert chunks[-1].usage is not None
    assert chunks[-1].choices == []


@pytest.mark.parametrize("stream", [False, True])
def test_a_seed_makes_one_for_each_answer(client: openai.OpenAI, model: str, stream: bool) -> None:
    options: dict[str, Any] = {
        "model": model,
        "messages": LONG,
        "n": 3,
        "seed": 5,
        "max_tokens": 12,
        "temperature": 1.5,
    }

    def ask() -> list[str]:
        if not stream:
            return [choice.message.content or "" for choice in client.chat.completions.create(**options).choices]
        texts = [""] * 3
        for chunk in client.chat.completions.create(**options, stream=True):
            for choice in chunk.choices:
                texts[choice.index] += choice.delta.content or ""
        return texts

    first = ask()
    assert len(set(first)) == 3
    assert ask() == first
    alone = client.chat.completions.create(**{**options, "n": 1, "seed": 6}).choices[0]
    assert alone.message.content == first[1]


def test_n_completions_a_prompt(client: openai.OpenAI, model: str, replay: Replay) -> None:
    replay.answers("a", "b", "c", "d")
    answer = client.completions.create(model=model, prompt=["left", "right"], n=2, max_tokens=5, echo=True)
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    assert [choice.text[:-1] for choice in answer.choices] == ["left", "left", "right", "right"]
    assert {choice.text[-1] for choice in answer.choices} == set("abcd")
    one = client.completions.create(model=model, prompt=["left", "right"], max_tokens=1)
    assert answer.usage is not None
    assert one.usage is not None
    assert answer.usage.prompt_tokens == one.usage.prompt_tokens


def test_more_answers_than_lanes(client: openai.OpenAI, engine: Engine, model: str) -> None:
    with pytest.raises(openai.BadRequestError, match=f"has {engine.config.lanes} lanes") as refused:
        client.chat.completions.create(model=model, messages=LONG, n=engine.config.lanes + 1)
    assert refused.value.param == "n"


def test_biases(client: openai.OpenAI, engine: Engine, model: str) -> None:
    (token,) = engine.tokenizer.encode("t")
    options: dict[str, Any] = {"model": model, "messages": LONG, "max_tokens": 4, "temperature": 0}
    answer = client.chat.completions.create(logit_bias={str(token): 100}, **options)
    assert answer.choices[0].message.content == "tttt"
    text = client.completions.create(model=model, prompt="x", max_tokens=4, logit_bias={str(token): 100})
    assert text.choices[0].text == "tttt"


@pytest.mark.parametrize(("budget", "most"), [(12, 60), (1_000, 40)])
def test_a_budget_leaves_room_for_the_answer(
    client: openai.OpenAI, engine: Engine, model: str, budget: int, most: int
) -> None:
    close = engine.tokenizer.token_id("</think>")
    answer = client.chat.completions.create(
        model=model, messages=LONG, max_completion_tokens=most, seed=3, temperature=1.0, logit_bias={str(close): -100},
        extra_body={"enable_thinking": True, "thinking_budget": budget, "ignore_eos": True},
    )  # fmt: skip
    assert answer.usage is not None
    assert answer.usage.completion_tokens_details is not None
    thought = answer.usage.completion_tokens_details.reasoning_tokens or 0
    assert thought <= budget + 2
    assert most - thought >= most // 4
    message = answer.choices[0].message.model_dump()
    assert message["content"]
    assert message["reasoning_content"]
    assert "think>" not in message["content"] + message["reasoning_content"]


def test_no_budget_is_no_thinking(client: openai.OpenAI, model: str, replay: Replay) -> None:
    replay.answers("at once")
    answer = client.chat.completions.create(
        model=model, messages=LONG, extra_body={"enable_thinking": True, "thinking_budget": 0}
    )
    assert answer.choices[0].message.content == "at once"
    assert "<think>" not in replay.prompts[0]


@pytest.mark.parametrize("effort", ["low", "medium", "high"])
def test_effort_is_thinking(client: openai.OpenAI, model: str, replay: Replay, effort: Any) -> None:
    replay.answers("so\n</think>\n\nyes")
    answer = client.chat.completions.create(model=model, messages=LONG, reasoning_effort=effort)
    message = answer.choices[0].message.model_dump()
    assert (message["reasoning_content"], message["content"]) == ("so", "yes")


def test_unknown_parameters_leave_a_line_in_the_log(http: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "ignis_desktop.server.bodies"):
        body = {"messages": LONG, "max_tokens": 1, "flavour": "mint", "new\nline": 1}
        assert http.post("/v1/chat/completions", json=body).status_code == 200
    (line,) = [record.getMessage() for record in caplog.records if "flavour" in record.getMessage()]
    assert "\n" not in line


def test_other_names_of_models(client: openai.OpenAI, engine: Engine, tmp_path: Any) -> None:
    with pytest.raises(openai.NotFoundError) as refused:
        client.chat.completions.create(model="gpt-5", messages=LONG, max_tokens=1)
    assert (refused.value.param, refused.value.code) == ("model", "model_not_found")
    with (
        ServerThread(engine, Settings(port=0, accept_any_model=True, runtime_directory=tmp_path)) as server,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0) as lenient,
    ):
        answer = lenient.chat.completions.create(model="gpt-5", messages=LONG, max_tokens=1)
        assert answer.model == engine.info.id


def test_alternatives_of_tokens(client: openai.OpenAI, model: str) -> None:
    answer = client.chat.completions.create(
        model=model, messages=LONG, max_tokens=3, logprobs=True, top_logprobs=4, n=2, seed=1
    )
    for choice in answer.choices:
        assert choice.logprobs is not None
        assert [len(token.top_logprobs) for token in choice.logprobs.content or ()] == [4, 4, 4]
    assert json.loads(answer.model_dump_json())["choices"][1]["index"] == 1
