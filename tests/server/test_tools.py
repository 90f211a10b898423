"""Tools through the real openai client: recorded answers of a model, replayed below sampling."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import openai
import pydantic
import pytest

from engine import Engine
from ignis_desktop.server.thread import ServerThread
from tests.server.replay import Replay


def tool(name: str, **properties: str) -> Any:
    schema = {"type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}}
    return {"type": "function", "function": {"name": name, "description": f"{name}s things", "parameters": schema}}


TOOLS: list[Any] = [
    tool("read", path="string", limit="integer"),
    tool("edit", path="string", old="string", new="string"),
    tool("run", path="string"),
]
ASK: list[Any] = [{"role": "user", "content": "Fix app.py."}]


def xml(name: str, **parameters: str) -> str:
    inside = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in parameters.items())
    return f"<tool_call>\n<function={name}>\n{inside}</function>\n</tool_call>"


READ = xml("read", path="app.py", limit="20")
RUN = '<tool_call>\n{"name": "run", "arguments": {"path": "app.py"}}\n</tool_call>'


def chunks_of(client: openai.OpenAI, model: str, **options: Any) -> list[Any]:
    return list(client.chat.completions.create(model=model, messages=ASK, tools=TOOLS, stream=True, **options))


def test_a_call(client: openai.OpenAI, model: str, replay: Replay) -> None:
    replay.answers(READ)
    answer = client.chat.completions.create(model=model, messages=ASK, tools=TOOLS)
    (choice,) = answer.choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    (call,) = choice.message.tool_calls or ()
    assert call.type == "function"
    assert call.id.startswith("call_")
    assert (call.function.name, json.loads(call.function.arguments)) == ("read", {"path": "app.py", "limit": 20})
    assert '"name": "read", "description": "reads things", "parameters"' in replay.prompts[0]


def test_the_keys_of_a_whole_answer_are_openais(http: httpx.Client, replay: Replay) -> None:
    replay.answers(f"I look.\n\n{READ}")
    answer = http.post("/v1/chat/completions", json={"messages": ASK, "tools": TOOLS}).json()
    message = answer["choices"][0]["message"]
    assert set(message) == {"role", "content", "refusal", "tool_calls"}
    assert message["content"] == "I look."
    (call,) = message["tool_calls"]
    assert set(call) == {"id", "type", "function"}
    assert set(call["function"]) == {"name", "arguments"}


def test_two_calls_with_reasoning_and_text(client: openai.OpenAI, model: str, replay: Replay) -> None:
    replay.answers(f"I read it.\n</think>\n\nFirst:\n{READ}\n<think>\nand run\n</think>\n{RUN}")
    answer = client.chat.completions.create(
        model=model, messages=ASK, tools=TOOLS, extra_body={"enable_thinking": True}
    )
    message = answer.choices[0].message
    assert [call.function.name for call in message.tool_calls or ()] == ["read", "run"]
    assert len({call.id for call in message.tool_calls or ()}) == 2
    assert message.content == "First:"
    assert message.model_dump()["reasoning_content"] == "I read it.\n\nand run"


@pytest.mark.parametrize("first", [READ, RUN], ids=["xml", "json"])
def test_chunks(client: openai.OpenAI, model: str, replay: Replay, first: str) -> None:
    replay.answers(f"Two.\n{first}\n{RUN}")
    chunks = chunks_of(client, model, stream_options={"include_usage": True})
    assert chunks[-1].usage.completion_tokens > 0
    choices = [chunk.choices[0] for chunk in chunks if chunk.choices]
    assert [choice.finish_reason for choice in choices] == [None] * (len(choices) - 1) + ["tool_calls"]
    assert "".join(choice.delta.content or "" for choice in choices) == "Two."
    calls: list[dict[str, str]] = []
    for choice in choices:
        assert len(choice.delta.tool_calls or ()) <= 1
        for call in choice.delta.tool_calls or ():
            if call.id is not None:  # name first, arguments after it
                assert (call.index, call.type, call.function.arguments) == (len(calls), "function", "")
                calls.append({"id": call.id, "name": call.function.name, "arguments": ""})
            else:
                assert (call.index, call.type, call.function.name) == (len(calls) - 1, None, None)
                calls[-1]["arguments"] += call.function.arguments
    assert len({call["id"] for call in calls}) == 2
    assert json.loads(calls[0]["arguments"])["path"] == json.loads(calls[1]["arguments"])["path"] == "app.py"


def test_a_long_argument_streams(client: openai.OpenAI, model: str, replay: Replay) -> None:
    text = 'if a < b:\n\tprint("é")\n' * 3
    replay.answers(xml("edit", path="a", old="b", new=text))
    pieces = [
        choice.delta.tool_calls[0].function.arguments
        for chunk in chunks_of(client, model)
        for choice in chunk.choices
        if choice.delta.tool_calls
    ]
    assert len(pieces) > 10
    assert json.loads("".join(pieces))["new"] == text


def test_the_streaming_helper(client: openai.OpenAI, model: str, replay: Replay) -> None:
    replay.answers(f"Two.\n{READ}\n{RUN}")
    done = []
    with client.chat.completions.stream(model=model, messages=ASK, tools=TOOLS) as stream:
        done = [event for event in stream if event.type == "tool_calls.function.arguments.done"]
        final = stream.get_final_completion()
    assert [(event.index, event.name) for event in done] == [(0, "read"), (1, "run")]
    message = final.choices[0].message
    assert [json.loads(call.function.arguments) for call in message.tool_calls or ()] == [
        {"path": "app.py", "limit": 20},
        {"path": "app.py"},
    ]
    assert message.content == "Two."


@pytest.mark.parametrize("stream", [False, True])
def test_only_the_first_call_where_parallel_calls_are_off(
    client: openai.OpenAI, model: str, replay: Replay, stream: bool
) -> None:
    replay.answers(f"{READ}\n{RUN}")
    options: dict[str, Any] = {"model": model, "messages": ASK, "tools": TOOLS, "parallel_tool_calls": False}
    if stream:
        with client.chat.completions.stream(**options) as events:
            choice: Any = events.get_final_completion().choices[0]
    else:
        choice = client.chat.completions.create(**options).choices[0]
    assert [call.function.name for call in choice.message.tool_calls] == ["read"]
    assert choice.finish_reason == "tool_calls"


def test_none_never_calls(client: openai.OpenAI, model: str, replay: Replay) -> None:
    replay.answers(READ)
    answer = client.chat.completions.create(model=model, messages=ASK, tools=TOOLS, tool_choice="none")
    assert "reads things" not in replay.prompts[0]
    assert answer.choices[0].finish_reason == "stop"
    assert answer.choices[0].message.tool_calls is None
    assert answer.choices[0].message.content == READ


def test_what_cannot_be_read_is_text(client: openai.OpenAI, model: str, replay: Replay) -> None:
    broken = '<tool_call>\n{"name": "read", "arguments": {"path": }}\n</tool_call>'
    replay.answers(f"So:\n{broken}")
    answer = client.chat.completions.create(model=model, messages=ASK, tools=TOOLS)
    assert answer.choices[0].finish_reason == "stop"
    assert answer.choices[0].message.tool_calls is None
    assert answer.choices[0].message.content == f"So:\n{broken}"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("call", [xml("run", path="a" * 400), RUN.replace("app.py", "a" * 400)], ids=["xml", "json"])
def test_a_call_that_is_cut_off(client: openai.OpenAI, model: str, replay: Replay, call: str, stream: bool) -> None:
    replay.answers(f"So:\n{call}")
    if stream:
        choices = [chunk.choices[0] for chunk in chunks_of(client, model, max_tokens=80)]
        calls = [choice.delta.tool_calls[0].function for choice in choices if choice.delta.tool_calls]
        name, arguments = calls[0].name, "".join(function.arguments for function in calls)
        text, reason = "".join(choice.delta.content or "" for choice in choices), choices[-1].finish_reason
    else:
        choice: Any = client.chat.completions.create(model=model, messages=ASK, tools=TOOLS, max_tokens=80).choices[0]
        (only,) = choice.message.tool_calls
        name, arguments, text, reason = (
            only.function.name, only.function.arguments, choice.message.content, choice.finish_reason,
        )  # fmt: skip
    assert (name, text, reason) == ("run", "So:", "length")
    assert arguments.startswith('{"path": "aaa')
    assert not arguments.endswith("}")


def test_a_stop_string_inside_a_call(client: openai.OpenAI, model: str, replay: Replay) -> None:
    replay.answers(xml("run", path="left right"))
    choice = client.chat.completions.create(model=model, messages=ASK, tools=TOOLS, stop=" right").choices[0]
    (only,) = choice.message.tool_calls or ()
    assert only.type == "function"
    assert (only.function.arguments, choice.finish_reason) == ('{"path": "left', "stop")


def test_reasoning_is_not_searched_for_calls(client: openai.OpenAI, model: str, replay: Replay) -> None:
    replay.answers(f"I could {RUN}\n</think>\nNo need.")
    with client.chat.completions.stream(
        model=model, messages=ASK, tools=TOOLS, extra_body={"enable_thinking": True}
    ) as stream:
        choice: Any = stream.get_final_completion().choices[0]
    assert (choice.message.content, choice.message.tool_calls, choice.finish_reason) == ("No need.", None, "stop")
    assert choice.message.reasoning_content == f"I could {RUN}"


class Edit(pydantic.BaseModel):
    path: str
    lines: list[int]
    force: bool = False


def test_the_parse_helper(client: openai.OpenAI, model: str, replay: Replay) -> None:
    replay.answers(xml("Edit", path="app.py", lines="[1, 2]", force="true"))
    tools = [openai.pydantic_function_tool(Edit)]
    answer = client.chat.completions.parse(model=model, messages=ASK, tools=tools)
    (only,) = answer.choices[0].message.tool_calls or ()
    assert only.function.parsed_arguments == Edit(path="app.py", lines=[1, 2], force=True)


def test_the_async_client(server: ServerThread, model: str, replay: Replay) -> None:
    async def ask() -> Any:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0, timeout=60) as client:
            replay.answers(f"{READ}\n{RUN}")
            async with client.chat.completions.stream(model=model, messages=ASK, tools=TOOLS) as stream:
                return (await stream.get_final_completion()).choices[0]

    choice = asyncio.run(ask())
    assert [call.function.name for call in choice.message.tool_calls] == ["read", "run"]
    assert choice.finish_reason == "tool_calls"


def test_tools_that_the_model_would_not_be_told_of(
    http: httpx.Client, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine.loaded.template, "takes_tools", False)
    answer = http.post("/v1/chat/completions", json={"messages": ASK, "tools": TOOLS})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "tools_not_supported")


@pytest.mark.parametrize("thinks", [False, True], ids=["", "thinking"])
@pytest.mark.parametrize("forced", [False, True], ids=["", "forced"])
def test_an_agent_reads_edits_and_runs(
    client: openai.OpenAI,
    engine: Engine,
    model: str,
    replay: Replay,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    forced: bool,
    thinks: bool,
) -> None:
    """The loop that agents are: calls are done for real, results sent back, until the model says that it is done.

    Forced, every turn but the last must call, and the recorded tokens are those that the grammar lets through.
    """
    (tmp_path / "app.py").write_text("print(2 - 2)\n")
    thought = "The path is app.py.\n</think>\n\n" if thinks else ""
    looked = xml("read", path="app.py", limit="20") if forced else f"I look at it.\n\n{xml('read', path='app.py')}"
    edited = xml("edit", path="app.py", old="2 - 2", new="2 + 2")
    replay.answers(*(thought + said for said in (looked, edited, xml("run", path="app.py") if forced else RUN)))
    replay.answers(f"{thought}It prints 4 now.")
    if forced:
        monkeypatch.setattr(engine.loaded.template, "call_form", "xml")

    def do(name: str, arguments: dict[str, Any]) -> str:
        file = tmp_path / arguments["path"]
        if name == "read":
            return file.read_text()
        if name == "edit":
            file.write_text(file.read_text().replace(arguments["old"], arguments["new"]))
            return "done"
        return subprocess.run([sys.executable, file], capture_output=True, text=True, check=True).stdout

    messages: list[Any] = list(ASK)
    turns = 0
    while True:
        choices: Any = ("required", "required", "required", "none") if forced else ("auto",) * 4
        with client.chat.completions.stream(
            model=model,
            messages=messages,
            tools=TOOLS,
            tool_choice=choices[turns],
            extra_body={"enable_thinking": thinks, "thinking_budget": 500},
        ) as stream:
            choice: Any = stream.get_final_completion().choices[0]
        turns += 1
        assert "think>" not in (choice.message.content or "")
        assert choice.message.model_dump().get("reasoning_content") == ("The path is app.py." if thinks else None)
        messages.append(choice.message.model_dump(exclude_none=True, exclude={"parsed"}))
        if choice.finish_reason != "tool_calls":
            break
        for call in choice.message.tool_calls or ():
            result = do(call.function.name, json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    assert choice.message.content == "It prints 4 now."
    assert [message["content"] for message in messages if message["role"] == "tool"] == [
        "print(2 - 2)\n", "done", "4\n",
    ]  # fmt: skip
    shown = replay.prompts[-1]
    assert '<tool_call>\n{"name": "edit", "arguments": {"path": "app.py", "old": "2 - 2", "new": "2 + 2"}}' in shown
    assert "<tool_response>\n4\n\n</tool_response>" in shown


def call(name: str, number: str, arguments: object = "{}") -> dict[str, Any]:
    return {"id": number, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_results_stand_in_the_order_of_their_calls(client: openai.OpenAI, model: str, replay: Replay) -> None:
    replay.answers("Done.")
    messages: list[Any] = [
        *ASK,
        {"role": "assistant", "content": None, "tool_calls": [call("read", "1"), call("run", "2")]},
        {"role": "tool", "tool_call_id": "2", "content": "of run"},
        {"role": "tool", "tool_call_id": "1", "content": "of read"},
    ]
    client.chat.completions.create(model=model, messages=messages)
    assert replay.prompts[0].index("of read") < replay.prompts[0].index("of run")


DEEP: dict[str, Any] = {"type": "object"}
for _ in range(70):
    DEEP = {"type": "object", "properties": {"a": DEEP}}


def function(**fields: object) -> dict[str, Any]:
    return {"tools": [{"type": "function", "function": {"name": "f", **fields}}]}


def history(*messages: object) -> dict[str, Any]:
    return {"messages": [*ASK, *messages]}


def said(*calls: object) -> dict[str, Any]:
    return history({"role": "assistant", "tool_calls": [*calls]})


RESULT = {"role": "tool", "tool_call_id": "1", "content": "x"}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"tools": {}}, "tools"),
    ({"tools": [5]}, "tools.0"),
    ({"tools": [{"type": "web_search"}]}, "tools.0.type"),
    ({"tools": [{"type": "function"}]}, "tools.0.function"),
    (function(name=""), "tools.0.function.name"),
    (function(name="a b"), "tools.0.function.name"),
    (function(name="a" * 129), "tools.0.function.name"),
    (function(description=5), "tools.0.function.description"),
    (function(description="a" * 300_000), "tools.0.function"),
    (function(parameters=[]), "tools.0.function.parameters"),
    (function(parameters={"type": "string"}), "tools.0.function.parameters.type"),
    (function(parameters={"properties": []}), "tools.0.function.parameters.properties"),
    (function(parameters=DEEP), "tools.0.function.parameters"),
    ({"tools": [TOOLS[0], TOOLS[0]]}, "tools.1.function.name"),
    ({"tools": [tool(f"f{n}") for n in range(513)]}, "tools"),
    ({"tools": TOOLS, "tool_choice": "maybe"}, "tool_choice"),
    ({"tools": TOOLS, "tool_choice": {"type": "function"}}, "tool_choice"),
    ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "fly"}}}, "tool_choice"),
    ({"tool_choice": "required"}, "tool_choice"),
    ({**function(parameters={"not": {}}), "tool_choice": "required"}, "tools"),
    ({"tools": TOOLS, "parallel_tool_calls": "no"}, "parallel_tool_calls"),
    (said({"type": "function", "function": {"name": "f", "arguments": "{}"}}), "messages.1.tool_calls.0.id"),
    (said({"id": "1", "type": "function"}), "messages.1.tool_calls.0.function"),
    (said({"id": "1", "function": {"arguments": "{}"}}), "messages.1.tool_calls.0.function.name"),
    (said(call("f", "1"), call("f", "2", '{"a": ')), "messages.1.tool_calls.1.function.arguments"),
    (said(call("f", "1", "[]")), "messages.1.tool_calls.0.function.arguments"),
    (said(call("f", "1", "[" * 100_000)), "messages.1.tool_calls.0.function.arguments"),
    (said(call("f", "1", json.dumps(DEEP))), "messages.1.tool_calls.0.function.arguments"),
    (history({"role": "tool", "content": "x"}), "messages.1.tool_call_id"),
    (history({"role": "tool", "content": "x", "tool_call_id": []}), "messages.1.tool_call_id"),
    (history(RESULT), "messages.1.tool_call_id"),
    (history({"role": "assistant", "tool_calls": [call("f", "2")]}, RESULT), "messages.2.tool_call_id"),
    (
        history({"role": "assistant", "tool_calls": [call("f", "1")]}, {"role": "user", "content": "x"}, RESULT),
        "messages.3.tool_call_id",
    ),
]


@pytest.mark.parametrize(("body", "param"), REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_what_is_refused(http: httpx.Client, body: dict[str, Any], param: str) -> None:
    answer = http.post("/v1/chat/completions", json={"messages": ASK, "max_tokens": 1, **body})
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error["param"] == param
    assert error["message"].startswith(param)


def test_tokens_of_tools_are_counted(http: httpx.Client, client: openai.OpenAI, model: str) -> None:
    counted = http.post("/v1/tokenize", json={"messages": ASK, "tools": TOOLS}).json()["count"]
    answer = client.chat.completions.create(model=model, messages=ASK, tools=TOOLS, max_tokens=1)
    assert answer.usage is not None
    assert counted == answer.usage.prompt_tokens


@pytest.mark.parametrize(
    "body",
    [
        {"tools": []},
        {"tools": None, "tool_choice": "auto"},
        {"tool_choice": "none"},
        {"tools": [{"type": "function", "function": {"name": "mcp__a.b-c:d", "strict": True}}]},
        said(call("f", "1", "")),
        history({"role": "assistant", "content": "x", "tool_calls": []}),
    ],
)
def test_what_clients_send_is_taken(http: httpx.Client, body: dict[str, Any]) -> None:
    answer = http.post("/v1/chat/completions", json={"messages": ASK, "max_tokens": 1, **body})
    assert answer.status_code == 200, answer.text


def test_the_model_says_that_it_takes_tools(client: openai.OpenAI, model: str) -> None:
    assert client.models.retrieve(model).model_dump()["capabilities"]["tools"] is True
