"""Anthropic's Messages through the real anthropic client: recorded answers of a model, replayed below sampling."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import anthropic
import httpx
import pydantic
import pytest
from anthropic import beta_tool

from engine import Engine
from ignis_desktop.server.routes.messages import MessagesCountBody
from ignis_desktop.server.settings import Settings
from ignis_desktop.server.thread import ServerThread
from ignis_desktop.server.turn import EFFORT_BUDGETS
from tests.server.replay import Replay
from tests.server.test_files import png
from tests.server.test_tools import READ, RUN, xml

ASK: list[Any] = [{"role": "user", "content": "Fix app.py."}]
TOOLS: list[Any] = [
    {
        "name": name,
        "description": f"{name}s things",
        "input_schema": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}, "new": {"type": "string"}},
        },
    }
    for name in ("read", "edit", "run")
]
MODEL = "claude-of-another-house"
THINK: Any = {"type": "enabled", "budget_tokens": 1024}


def create(claude: anthropic.Anthropic, **options: Any) -> anthropic.types.Message:
    return claude.messages.create(**{"model": MODEL, "max_tokens": 4000, "messages": ASK, **options})


def stream_of(claude: anthropic.Anthropic, **options: Any) -> list[Any]:
    options = {"model": MODEL, "max_tokens": 4000, "messages": ASK, **options}
    return list(claude.messages.create(stream=True, **options))


def test_a_message(claude: anthropic.Anthropic, model: str, replay: Replay) -> None:
    replay.answers("Done.")
    message = create(claude, system="Be brief.")
    assert (message.type, message.role, message.model) == ("message", "assistant", model)
    assert message.id.startswith("msg_")
    assert message._request_id is not None
    assert [block.to_dict() for block in message.content] == [{"type": "text", "text": "Done."}]
    assert (message.stop_reason, message.stop_sequence) == ("end_turn", None)
    assert message.usage.output_tokens > 0
    counted = claude.messages.count_tokens(model=MODEL, messages=ASK, system="Be brief.").input_tokens
    assert counted == message.usage.input_tokens + (message.usage.cache_read_input_tokens or 0)
    assert "<|im_start|>system\nBe brief.<|im_end|>" in replay.prompts[0]
    assert replay.prompts[0].endswith("user\nFix app.py.<|im_end|>\n<|im_start|>assistant\n")


def test_system_blocks_are_texts_one_after_the_other(claude: anthropic.Anthropic, replay: Replay) -> None:
    replay.answers("Done.")
    create(claude, system=[{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}])
    assert "system\nOne.\n\nTwo.<|im_end|>" in replay.prompts[0]


def test_calls(claude: anthropic.Anthropic, replay: Replay) -> None:
    replay.answers(f"First:\n{READ}\n{RUN}")
    message = create(claude, tools=TOOLS)
    text, read, run = message.content
    assert message.stop_reason == "tool_use"
    assert (text.type, read.type, run.type) == ("text", "tool_use", "tool_use")
    assert text.text == "First:"
    assert (read.name, read.input) == ("read", {"path": "app.py", "limit": 20})
    assert (run.name, run.input) == ("run", {"path": "app.py"})
    assert read.id.startswith("toolu_")
    assert read.id != run.id
    assert '"name": "read", "description": "reads things", "parameters"' in replay.prompts[0]


def test_the_events_in_order(claude: anthropic.Anthropic, replay: Replay) -> None:
    replay.answers(f"I read it.\n</think>\n\nFirst:\n{READ}")
    events = stream_of(claude, tools=TOOLS, thinking=THINK)
    kinds = [event.type for event in events]
    assert kinds[0] == "message_start"
    assert kinds[-2:] == ["message_delta", "message_stop"]
    started = events[0].message
    assert (started.content, started.stop_reason, started.usage.output_tokens) == ([], None, 0)
    blocks: list[str] = []
    deltas: dict[int, list[str]] = {}
    is_open = False
    for event in events[1:-2]:
        assert event.index == len(blocks) - (event.type != "content_block_start")
        if event.type == "content_block_start":
            assert not is_open
            blocks.append(event.content_block.type)
            is_open = True
        elif event.type == "content_block_delta":
            assert is_open
            deltas.setdefault(event.index, []).append(event.delta.type)
        else:
            assert event.type == "content_block_stop"
            is_open = False
    assert not is_open
    assert blocks == ["thinking", "text", "tool_use"]
    assert set(deltas[0][:-1]) == {"thinking_delta"}
    assert deltas[0][-1] == "signature_delta"
    assert set(deltas[1]) == {"text_delta"}
    assert set(deltas[2]) == {"input_json_delta"}
    assert len(deltas[2]) > 1
    end = events[-2]
    assert (end.delta.stop_reason, end.delta.stop_sequence) == ("tool_use", None)
    assert end.usage.output_tokens > 0
    total = end.usage.input_tokens + end.usage.cache_read_input_tokens
    assert total == started.usage.input_tokens


def test_the_frames_on_the_wire(http: httpx.Client, replay: Replay) -> None:
    replay.answers("Done.")
    body = {"model": MODEL, "messages": ASK, "max_tokens": 9, "stream": True}
    with http.stream("POST", "/v1/messages", json=body) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["request-id"].startswith("req_")
        raw = response.read().decode()
    frames = raw.split("\n\n")
    assert frames.pop() == ""
    for frame in frames:
        event, data = frame.split("\n")
        assert event.removeprefix("event: ") == json.loads(data.removeprefix("data: "))["type"]
    assert frames[1] == 'event: ping\ndata: {"type":"ping"}'


def test_the_streaming_helper(claude: anthropic.Anthropic, replay: Replay) -> None:
    answer = f"I read it.\n</think>\n\nFirst:\n{READ}\n{RUN}"
    replay.answers(answer, answer)
    options: Any = {"model": MODEL, "max_tokens": 4000, "messages": ASK, "tools": TOOLS, "thinking": THINK}
    with claude.messages.stream(**options) as stream:
        text = "".join(stream.text_stream)
        streamed = stream.get_final_message()
    whole = claude.messages.create(**options)
    assert text == "First:"
    assert stream.request_id

    def said(message: Any) -> list[Any]:
        return [block.model_dump(exclude={"id", "parsed_output", "caller", "citations"}) for block in message.content]

    assert said(streamed) == said(whole)
    assert streamed.stop_reason == whole.stop_reason == "tool_use"
    assert streamed.usage.output_tokens == whole.usage.output_tokens
    assert whole.content[0].type == "thinking"
    assert (whole.content[0].thinking, bool(whole.content[0].signature)) == ("I read it.", True)
    assert whole.usage.output_tokens_details is not None
    assert whole.usage.output_tokens_details.thinking_tokens > 0


def test_the_async_client(server: ServerThread, replay: Replay) -> None:
    replay.answers("One.", "Two.")

    async def talk() -> tuple[str, str]:
        async with anthropic.AsyncAnthropic(base_url=server.url, api_key="unused", max_retries=0) as claude:
            options: Any = {"model": MODEL, "max_tokens": 100, "messages": ASK}
            first = await claude.messages.create(**options)
            async with claude.messages.stream(**options) as stream:
                return first.content[0].text, await stream.get_final_text()  # type: ignore[union-attr]

    assert asyncio.run(talk()) == ("One.", "Two.")


def test_the_tool_runner(claude: anthropic.Anthropic, replay: Replay) -> None:
    seen: list[tuple[str, int]] = []

    @beta_tool
    def read(path: str, limit: int) -> str:
        """Read a file."""
        seen.append((path, limit))
        return "print('hi')"

    replay.answers(READ, "It prints hi.")
    runner = claude.beta.messages.tool_runner(model=MODEL, max_tokens=4000, messages=ASK, tools=[read])
    final = runner.until_done()
    assert seen == [("app.py", 20)]
    assert [block.type for block in final.content] == ["text"]
    assert final.content[0].text == "It prints hi."  # type: ignore[union-attr]
    assert "<tool_response>\nprint('hi')\n</tool_response>" in replay.prompts[1]


def test_a_conversation_with_calls_goes_on(claude: anthropic.Anthropic, replay: Replay) -> None:
    replay.answers(f"Thought.\n</think>\n\nBoth:\n{READ}\n{RUN}", "Done.")
    first = create(claude, tools=TOOLS, thinking=THINK)
    results: list[Any] = [
        {"type": "tool_result", "tool_use_id": block.id, "content": block.name, "is_error": block.name == "run"}
        for block in first.content[:1:-1]
        if block.type == "tool_use"
    ]
    history = [*ASK, {"role": "assistant", "content": first.content}]
    history.append({"role": "user", "content": [*results, {"type": "text", "text": "Go on."}]})
    create(claude, messages=history, tools=TOOLS)
    prompt = replay.prompts[1]
    assert "Both:\n<tool_call>" in prompt
    # In the order of the calls, although they were sent in another.
    assert prompt.index("<tool_response>\nread\n") < prompt.index("<tool_response>\nError: run\n")
    assert prompt.endswith("<|im_start|>user\nGo on.<|im_end|>\n<|im_start|>assistant\n")


def test_pictures(claude: anthropic.Anthropic, replay: Replay) -> None:
    replay.answers("Red.", "Red.", "Red.")
    file = claude.beta.files.upload(file=("red.png", png(), "image/png"))
    data = base64.b64encode(png()).decode()
    sources: list[Any] = [
        {"type": "base64", "media_type": "image/png", "data": data},
        {"type": "file", "file_id": file.id},
    ]
    asked: list[Any] = [
        [{"role": "user", "content": [{"type": "image", "source": source}, {"type": "text", "text": "What?"}]}]
        for source in sources
    ]
    for messages in asked:
        create(claude, messages=messages)
    assert replay.prompts[0] == replay.prompts[1]
    assert replay.prompts[0].count("<|image_pad|>") > 1
    call = {"type": "tool_use", "id": "1", "name": "shoot", "input": {}}
    shot = {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "image", "source": sources[0]}]}
    create(claude, messages=[*ASK, {"role": "assistant", "content": [call]}, {"role": "user", "content": [shot]}])
    assert "<tool_response>\n<|vision_start|><|image_pad|>" in replay.prompts[2]
    claude.beta.files.delete(file.id)


def test_documents(claude: anthropic.Anthropic, replay: Replay) -> None:
    replay.answers("Yes.")
    file = claude.beta.files.upload(file=("b.txt", b"second", "text/plain"))
    first = {"type": "text", "media_type": "text/plain", "data": "first"}
    blocks: list[Any] = [
        {"type": "document", "source": first, "title": "a.txt"},
        {"type": "document", "source": {"type": "file", "file_id": file.id}},
    ]
    create(claude, messages=[{"role": "user", "content": blocks}])
    assert (
        '<document title="a.txt">\nfirst\n</document><document title="b.txt">\nsecond\n</document>' in replay.prompts[0]
    )
    claude.beta.files.delete(file.id)


def test_stop_sequences(claude: anthropic.Anthropic, replay: Replay) -> None:
    replay.answers("One, two, three.", "One, two, three.")
    message = create(claude, stop_sequences=["nothing", " three"])
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", " three")
    assert message.content[0].text == "One, two,"  # type: ignore[union-attr]
    assert create(claude, max_tokens=2).stop_reason == "max_tokens"


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_that_is_cut_off(claude: anthropic.Anthropic, replay: Replay, stream: bool) -> None:
    replay.answers(xml("edit", path="app.py", new="a" * 400))
    options: Any = {"model": MODEL, "max_tokens": 80, "messages": ASK, "tools": TOOLS}
    if stream:
        with claude.messages.stream(**options) as events:
            message: Any = events.get_final_message()
    else:
        message = claude.messages.create(**options)
    (call,) = message.content
    assert message.stop_reason == "max_tokens"
    assert (call.name, call.input["path"]) == ("edit", "app.py")
    if not stream:
        assert set(call.input["new"]) == {"a"}


def test_an_answer_that_is_begun_already(claude: anthropic.Anthropic, replay: Replay) -> None:
    replay.answers("1}")
    message = create(claude, messages=[*ASK, {"role": "assistant", "content": '{"a": '}])
    assert message.content[0].text == "1}"  # type: ignore[union-attr]
    assert replay.prompts[0].endswith('<|im_start|>assistant\n{"a":')


def test_thinking_is_off_unless_asked_for(claude: anthropic.Anthropic, replay: Replay) -> None:
    replay.answers("a", "b", "c", "Thought.\n</think>\nd")
    for thinking in (
        anthropic.omit,
        {"type": "disabled"},
        THINK,
        {"type": "enabled", "budget_tokens": 64, "display": "omitted"},
    ):
        message = create(claude, thinking=thinking)
    assert [prompt.endswith("<think>\n") for prompt in replay.prompts] == [False, False, True, True]
    thought, text = message.content
    assert (thought.type, thought.thinking) == ("thinking", "")  # type: ignore[union-attr]
    assert text.text == "d"  # type: ignore[union-attr]


def test_tool_choices(claude: anthropic.Anthropic, replay: Replay) -> None:
    replay.answers(f"{READ}\n{RUN}", READ)
    one = create(claude, tools=TOOLS, tool_choice={"type": "auto", "disable_parallel_tool_use": True})
    assert [block.type for block in one.content] == ["tool_use"]
    none = create(claude, tools=TOOLS, tool_choice={"type": "none"})
    assert [block.type for block in none.content] == ["text"]
    assert "reads things" not in replay.prompts[1]


def test_tools_that_others_run_are_left_out(claude: anthropic.Anthropic, replay: Replay) -> None:
    replay.answers("Done.")
    create(claude, tools=[*TOOLS, {"type": "web_search_20250305", "name": "web_search"}])
    assert "reads things" in replay.prompts[0]
    assert "web_search" not in replay.prompts[0]


def test_what_is_marked_is_kept(claude: anthropic.Anthropic, replay: Replay) -> None:
    """Without the mark, conversations that part after it would share the system prompt alone."""
    long = " ".join(str(number) for number in range(400))

    def ask(question: str, **mark: Any) -> anthropic.types.Usage:
        text = {"type": "text", "text": f"{long} {mark}", **mark}
        return create(
            claude,
            max_tokens=1,
            messages=[
                {"role": "user", "content": [text]},
                {"role": "assistant", "content": "Read."},
                {"role": "user", "content": question},
            ],
        ).usage

    mark = {"cache_control": {"type": "ephemeral"}}
    assert ask("How many?", **mark).cache_read_input_tokens == 0
    again = ask("Which?", **mark)
    assert (again.cache_read_input_tokens or 0) > 400
    assert again.input_tokens < 100
    ask("How many?")
    assert ask("Which?").cache_read_input_tokens == 0


def test_the_models(claude: anthropic.Anthropic, model: str, engine: Engine) -> None:
    (listed,) = claude.models.list()
    assert (listed.id, listed.type, listed.display_name) == (model, "model", engine.info.name)
    assert listed.max_input_tokens == engine.info.context_length
    assert claude.models.retrieve(model).to_dict() == listed.to_dict()
    with pytest.raises(anthropic.NotFoundError):
        claude.models.retrieve(MODEL)


def test_a_key_either_way(engine: Engine, tmp_path: Path) -> None:
    settings = Settings(port=0, api_key="secret", runtime_directory=tmp_path, data_directory=tmp_path)
    options: Any = {"model": MODEL, "max_tokens": 1, "messages": ASK}
    with ServerThread(engine, settings) as server:
        for given in ({"api_key": "secret"}, {"auth_token": "secret"}):
            with anthropic.Anthropic(base_url=server.url, **given) as claude:  # type: ignore[arg-type]
                assert claude.messages.create(**options).usage.output_tokens == 1
        both = {"authorization": "Bearer other", "x-api-key": "secret"}
        assert httpx.post(f"{server.url}/v1/messages", json=options, headers=both).status_code == 200
        with (
            anthropic.Anthropic(base_url=server.url, api_key="wrong", max_retries=0) as claude,
            pytest.raises(anthropic.AuthenticationError) as refused,
        ):
            claude.messages.create(**options)
    body: Any = refused.value.body
    assert set(body) == {"type", "error", "request_id"}
    assert (body["type"], body["error"]["type"]) == ("error", "authentication_error")


def user(*blocks: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(blocks)}]}


def image(**source: Any) -> dict[str, Any]:
    return user({"type": "image", "source": source})


UNKNOWN = {"type": "array", "uniqueItems": True}
MARKED = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
CALL = {"type": "tool_use", "id": "1", "name": "read", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "1", "content": "x"}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"messages": []}, "messages"),
    ({"messages": None}, "messages"),
    ({"messages": [{"role": "wizard", "content": "x"}]}, "messages.0.role"),
    ({"messages": [{"role": "user"}]}, "messages.0.content"),
    ({"messages": [{"role": "user", "content": 5}]}, "messages.0.content"),
    ({"max_tokens": None}, "max_tokens"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"system": 5}, "system"),
    ({"system": [{"type": "image"}]}, "system.0.type"),
    ({"system": [{"type": "text"}]}, "system.0.text"),
    ({"stop_sequences": "x"}, "stop_sequences"),
    ({"temperature": 3}, "temperature"),
    ({"thinking": {"type": "deep"}}, "thinking.type"),
    ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens"),
    ({"thinking": {"type": "enabled", "budget_tokens": True}}, "thinking.budget_tokens"),
    ({"output_config": {"format": {"type": "yaml"}}}, "output_config.format"),
    ({"output_config": {"format": {"type": "json_schema", "schema": UNKNOWN}}}, "output_config.format"),
    (user({}), "messages.0.content.0"),
    (user({"type": "text"}), "messages.0.content.0.text"),
    (user({"type": "audio"}), "messages.0.content.0.type"),
    (user({"type": "image"}), "messages.0.content.0.source.type"),
    (image(type="base64", data="AAAA"), "messages.0.content.0.source.media_type"),
    (image(type="base64", media_type="image/png"), "messages.0.content.0.source.data"),
    (image(type="base64", media_type="image/png", data="AAAA"), "messages.0.content.0.source.data"),
    (image(type="base64", media_type="application/pdf", data="AAAA"), "messages.0.content.0.source.data"),
    (image(type="url", url="http://127.0.0.1/a.png"), "messages.0.content.0.source.url"),
    (image(type="url"), "messages.0.content.0.source.url"),
    (image(type="file", file_id="file-0"), "messages.0.content.0.source.file_id"),
    (user(RESULT), "messages.0.content.0.tool_use_id"),
    (user({**RESULT, "tool_use_id": {}}), "messages.0.content.0.tool_use_id"),
    (user({"type": "text", "text": "x"}, RESULT), "messages.0.content.1"),
    (user(*[MARKED] * 5), "messages.0.content.4.cache_control"),
    ({"messages": [*ASK, {"role": "assistant", "content": [CALL]}]}, "messages"),
    ({"messages": [*ASK, {"role": "assistant", "content": [{**CALL, "input": "x"}]}]}, "messages.1.content.0.input"),
    ({"messages": [*ASK, {"role": "assistant", "content": [{**CALL, "id": 5}]}]}, "messages.1.content.0.id"),
    ({"tools": [{"name": "a b", "input_schema": {}}]}, "tools.0.name"),
    ({"tools": [{"name": "a", "input_schema": []}]}, "tools.0.input_schema"),
    ({"tools": [{"name": "a", "input_schema": {"type": "string"}}]}, "tools.0.input_schema.type"),
    ({"tools": [{"name": "a", "input_schema": {}, "description": 5}]}, "tools.0.description"),
    ({"tools": [{"type": "bash_20250124", "name": "bash"}]}, "tools.0.type"),
    ({"tools": TOOLS, "tool_choice": {"type": "maybe"}}, "tool_choice.type"),
    ({"tools": TOOLS, "tool_choice": {"type": []}}, "tool_choice.type"),
    ({"tools": TOOLS, "tool_choice": {"type": "tool", "name": "fly"}}, "tool_choice"),
    ({"tool_choice": {"type": "any"}}, "tool_choice"),
    ({"thread": {"type": "create"}}, "thread"),
]


@pytest.mark.parametrize(("body", "where"), REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_what_is_refused(http: httpx.Client, body: dict[str, Any], where: str) -> None:
    answer = http.post("/v1/messages", json={"model": MODEL, "messages": ASK, "max_tokens": 1, **body})
    assert answer.status_code == 400, answer.text
    told = answer.json()
    assert (told["type"], told["error"]["type"]) == ("error", "invalid_request_error")
    assert told["error"]["message"].startswith(where + ":")
    assert told["request_id"] == answer.headers["request-id"]


def test_a_prompt_that_is_too_long(http: httpx.Client) -> None:
    """In the words by which clients know that it is time to compact."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": "1 2 3 " * 30_000}], "max_tokens": 1}
    answer = http.post("/v1/messages", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith("prompt is too long: ")


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[str]:
    """Address of a server whose engine never loads."""
    with ServerThread(Engine(tmp_path), Settings(port=0, runtime_directory=tmp_path)) as server:
        yield server.url


def test_a_server_that_is_not_ready(closed: str) -> None:
    with (
        anthropic.Anthropic(base_url=closed, api_key="x", max_retries=0) as claude,
        pytest.raises(anthropic.APIStatusError) as refused,
    ):
        create(claude)
    body: Any = refused.value.body
    assert (refused.value.status_code, body["error"]["type"]) == (503, "overloaded_error")
    assert refused.value.response.headers["retry-after"]


def test_other_faults_have_the_same_body(http: httpx.Client) -> None:
    for method, path, status in (("GET", "/v1/messages", 405), ("POST", "/v1/messages/batches", 404)):
        answer = http.request(method, path)
        assert (answer.status_code, answer.json()["type"]) == (status, "error")


class Place(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    name: Literal["here", "there"]
    rank: Literal[1, 2, 3]


def test_a_schema_is_kept(claude: anthropic.Anthropic) -> None:
    """By a model that writes noise."""
    parsed = claude.messages.parse(model=MODEL, max_tokens=400, messages=ASK, output_format=Place)
    assert isinstance(parsed.parsed_output, Place)
    with claude.messages.stream(model=MODEL, max_tokens=400, messages=ASK, output_format=Place) as stream:
        assert isinstance(stream.get_final_message().parsed_output, Place)


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "run"}])
def test_calls_that_are_forced(claude: anthropic.Anthropic, choice: Any) -> None:
    tools: list[Any] = [{"name": name, "input_schema": Place.model_json_schema()} for name in ("read", "run")]
    choice = {**choice, "disable_parallel_tool_use": True}
    message = create(claude, tools=tools, tool_choice=choice)
    (call,) = message.content
    assert call.type == "tool_use"
    assert message.stop_reason == "tool_use"
    assert call.name in (("read", "run") if choice["type"] == "any" else ("run",))
    Place.model_validate(call.input)


def test_thinking_has_an_end(claude: anthropic.Anthropic) -> None:
    thinking: Any = {"type": "enabled", "budget_tokens": 16}
    message = create(claude, thinking=thinking, max_tokens=60, extra_body={"ignore_eos": True, "seed": 3})
    assert message.usage.output_tokens_details is not None
    assert 0 < message.usage.output_tokens_details.thinking_tokens < 40
    assert [block.type for block in message.content] == ["thinking", "text"]


@pytest.mark.parametrize(
    ("thinking", "effort", "budget"),
    [
        (None, None, None),
        ({"type": "enabled", "budget_tokens": 5}, "low", 5),
        ({"type": "adaptive"}, "low", EFFORT_BUDGETS["low"]),
        ({"type": "adaptive"}, "max", None),
        ({"type": "adaptive"}, [], None),
    ],
)
def test_how_long_it_thinks(thinking: Any, effort: Any, budget: int | None) -> None:
    output = None if effort is None else {"effort": effort}
    body = MessagesCountBody(messages=[{"role": "user", "content": "x"}], thinking=thinking, output_config=output)  # type: ignore[list-item]
    assert body.thinking_budget == budget


def test_what_coding_agents_send_is_taken(http: httpx.Client, replay: Replay) -> None:
    """More than there is here, as they do not know who answers."""
    replay.answers("Done.")
    cached = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    body = {
        "model": "claude-of-another-house[1m]",
        "max_tokens": 32_000,
        "system": [
            {"type": "text", "text": "billing: x"},
            {"type": "text", "text": "You are an agent.", **cached},
        ],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "<system-reminder>\nx\n</system-reminder>"}]},
            {"role": "user", "content": [{"type": "text", "text": "Hello.", **cached}]},
            {"role": "system", "content": "The date has changed."},
            {"role": "user", "content": "Go on."},
        ],
        "tools": [{**TOOLS[0], "eager_input_streaming": True}, {**TOOLS[1], **cached, "strict": True}],
        "metadata": {"user_id": "x"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "output_config": {"effort": "high"},
        "thinking": {"type": "adaptive"},
        "stream": True,
    }
    headers = {"anthropic-version": "2023-06-01", "anthropic-beta": "a,b", "x-app": "cli"}
    answer = http.post("/v1/messages?beta=true", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    assert "event: message_stop" in answer.text
    assert "You are an agent." in replay.prompts[0]
    assert replay.prompts[0].endswith("Go on.<|im_end|>\n<|im_start|>assistant\n<think>\n")


def test_a_stream_that_somebody_ends(
    claude: anthropic.Anthropic, http: httpx.Client, wait_until: Callable[[Callable[[], bool], float], float]
) -> None:
    options: Any = {"model": MODEL, "max_tokens": 20_000, "messages": ASK, "extra_body": {"ignore_eos": True}}

    def running() -> list[str]:
        return [lane["request_id"] for lane in http.get("/v1/engine").json()["lanes"] if lane["request_id"]]

    wait_until(lambda: not running(), 10.0)
    with claude.messages.create(stream=True, **options) as events:
        wait_until(lambda: len(running()) == 1, 10.0)
        http.post(f"/v1/engine/requests/{running()[0]}/cancel").raise_for_status()
        with pytest.raises(anthropic.APIStatusError, match="cancelled") as ended:
            list(events)
    body: Any = ended.value.body
    assert (body["type"], body["error"]["type"]) == ("error", "overloaded_error")
