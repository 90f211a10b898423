"""Answers that are held to a schema or to a call, through the real openai client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Literal

import httpx
import jsonschema
import openai
import pydantic
import pytest

from engine import Engine
from ignis_desktop.server.thread import ServerThread
from tests.server.replay import Replay

ASK: list[Any] = [{"role": "user", "content": "Pick."}]
HOT: dict[str, Any] = {"temperature": 1.5, "max_tokens": 400}


class Pick(pydantic.BaseModel):
    colour: Literal["red", "green", "blue"]
    count: Literal[1, 2, 3]
    loud: bool
    extra: Literal["none"] | None


def format_of(schema: Any) -> Any:
    return {"type": "json_schema", "json_schema": {"name": "pick", "strict": True, "schema": schema}}


def tool(name: str, parameters: Any) -> Any:
    return {"type": "function", "function": {"name": name, "parameters": parameters, "strict": True}}


def closed(**properties: Any) -> Any:
    return {
        "type": "object", "properties": properties, "required": list(properties), "additionalProperties": False,
    }  # fmt: skip


CLOSED = closed(level={"enum": [1, 2, 3]})
WORD = closed(word={"enum": ["on", "off"]})
TOOLS = [tool("set_level", CLOSED), tool("set_word", WORD)]
SCHEMAS = {"set_level": CLOSED, "set_word": WORD}


@pytest.fixture
def replay(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Replay:
    return Replay(engine, monkeypatch)


@pytest.fixture
def forms(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sets the form in which the model's template shows calls."""
    return lambda form: monkeypatch.setattr(engine.loaded.template, "call_form", form)


@pytest.mark.parametrize("seed", range(4))
def test_parse(client: openai.OpenAI, model: str, seed: int) -> None:
    answer = client.chat.completions.parse(model=model, messages=ASK, response_format=Pick, seed=seed, **HOT)
    (choice,) = answer.choices
    assert choice.finish_reason == "stop"
    assert isinstance(choice.message.parsed, Pick)


def test_parse_while_it_streams(client: openai.OpenAI, model: str) -> None:
    with client.chat.completions.stream(model=model, messages=ASK, response_format=Pick, seed=1, **HOT) as stream:
        events = list(stream)
        final = stream.get_final_completion()
    assert isinstance(final.choices[0].message.parsed, Pick)
    assert sum(event.type == "content.delta" for event in events) > 1


def test_the_async_client(server: ServerThread, model: str) -> None:
    async def ask() -> list[Any]:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0, timeout=60) as client:
            asked = (
                client.chat.completions.parse(model=model, messages=ASK, response_format=Pick, seed=seed, **HOT)
                for seed in range(8)
            )
            return await asyncio.gather(*asked)

    assert all(isinstance(answer.choices[0].message.parsed, Pick) for answer in asyncio.run(ask()))


def test_any_json_object(client: openai.OpenAI, model: str, replay: Replay) -> None:
    replay.answers('{"a": [1, {"b":null}], "c": "d"}')
    answer = client.chat.completions.create(model=model, messages=ASK, response_format={"type": "json_object"})
    assert json.loads(answer.choices[0].message.content or "") == {"a": [1, {"b": None}], "c": "d"}
    for seed in range(3):
        hot = client.chat.completions.create(
            model=model, messages=ASK, response_format={"type": "json_object"}, seed=seed, **{**HOT, "max_tokens": 30}
        )
        assert (hot.choices[0].message.content or "").startswith("{")


def test_what_was_there_when_it_was_cut_off(client: openai.OpenAI, model: str) -> None:
    options = {**HOT, "max_tokens": 5}
    answer = client.chat.completions.create(model=model, messages=ASK, response_format=format_of(CLOSED), **options)
    (choice,) = answer.choices
    assert choice.finish_reason == "length"
    assert '{"level":1}'.startswith((choice.message.content or "x").replace(" ", "")[:6])


def test_the_schema_holds_behind_the_reasoning(client: openai.OpenAI, model: str, replay: Replay) -> None:
    replay.answers('Is it {"level": 9}? No.\n</think>\n\n{"level": 2}')
    answer = client.chat.completions.create(
        model=model, messages=ASK, response_format=format_of(CLOSED), extra_body={"enable_thinking": True}
    )
    message = answer.choices[0].message
    assert message.content == '{"level": 2}'
    assert message.model_dump()["reasoning_content"] == 'Is it {"level": 9}? No.'


@pytest.mark.parametrize("form", ["json", "xml"])
@pytest.mark.parametrize("thinking", [False, True])
@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "set_word"}}], ids=str)
def test_a_call_that_must_be_made(
    client: openai.OpenAI, model: str, forms: Callable[[str], None], choice: Any, thinking: bool, form: str
) -> None:
    forms(form)
    for seed in range(2):
        answer = client.chat.completions.create(
            model=model, messages=ASK, tools=TOOLS, tool_choice=choice, seed=seed, parallel_tool_calls=False,
            extra_body={"enable_thinking": thinking, "thinking_budget": 15}, **HOT,
        )  # fmt: skip
        (only,) = answer.choices
        assert only.finish_reason == "tool_calls"
        assert only.message.content is None
        (call,) = only.message.tool_calls or ()
        assert call.type == "function"
        jsonschema.validate(json.loads(call.function.arguments), SCHEMAS[call.function.name])
        assert choice == "required" or call.function.name == "set_word"
        assert bool(only.message.model_dump().get("reasoning_content")) is thinking


def test_several_calls_that_must_be_made_as_they_stream(
    client: openai.OpenAI, model: str, replay: Replay, forms: Callable[[str], None]
) -> None:
    forms("xml")
    calls = (
        "<tool_call>\n<function=set_word>\n<parameter=word>\non\n</parameter>\n</function>\n</tool_call>\n"
        "<tool_call>\n<function=set_level>\n<parameter=level>\n3\n</parameter>\n</function>\n</tool_call>"
    )
    replay.answers(calls)
    with client.chat.completions.stream(model=model, messages=ASK, tools=TOOLS, tool_choice="required") as stream:
        final = stream.get_final_completion()
    made = final.choices[0].message.tool_calls or ()
    found = [(call.function.name, json.loads(call.function.arguments)) for call in made]
    assert found == [("set_word", {"word": "on"}), ("set_level", {"level": 3})]


def test_a_forced_call_that_is_cut_off(client: openai.OpenAI, model: str) -> None:
    options = {**HOT, "max_tokens": 40}
    tools = [tool("note", closed(t={"type": "string", "minLength": 900}))]
    answer = client.chat.completions.create(model=model, messages=ASK, tools=tools, tool_choice="required", **options)
    (choice,) = answer.choices
    assert choice.finish_reason == "length"
    assert (choice.message.tool_calls or [])[0].function.name == "note"  # type: ignore[union-attr]


def test_a_schema_where_tools_may_be_called_too(client: openai.OpenAI, model: str, replay: Replay) -> None:
    replay.answers('{"level": 1}', '<tool_call>\n{"name": "set_word", "arguments": {"word": "off"}}\n</tool_call>')
    options: Any = {"model": model, "messages": ASK, "tools": TOOLS, "response_format": format_of(CLOSED)}
    first, second = (client.chat.completions.create(**options).choices[0] for _ in range(2))
    assert (first.message.content, first.message.tool_calls) == ('{"level": 1}', None)
    assert [call.function.name for call in second.message.tool_calls or ()] == ["set_word"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"type": "object", "properties": {"a": {"not": {"type": "null"}}}}, "not"),
        ({"type": "array", "uniqueItems": True}, "uniqueItems"),
        ({"type": "string", "format": "shoe-size"}, "shoe-size"),
    ],
)
def test_what_a_schema_may_not_say_is_named(client: openai.OpenAI, model: str, schema: Any, named: str) -> None:
    with pytest.raises(openai.BadRequestError, match=named) as refused:
        client.chat.completions.create(model=model, messages=ASK, response_format=format_of(schema))
    assert (refused.value.param, refused.value.code) == ("response_format", "unsupported_schema")
    with pytest.raises(openai.BadRequestError, match=f"set: .*{named}"):
        client.chat.completions.create(
            model=model, messages=ASK, tool_choice="required",
            tools=[tool("set", {"type": "object", "properties": {"p": schema}})],
        )  # fmt: skip


def test_deep_schemas_are_refused(http: httpx.Client) -> None:
    schema: dict[str, Any] = {}
    for _ in range(70):
        schema = {"type": "array", "items": schema}
    answer = http.post("/v1/chat/completions", json={"messages": ASK, "response_format": format_of(schema)})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "response_format")
