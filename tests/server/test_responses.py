"""OpenAI's Responses through the real openai client: recorded answers of a model, replayed below sampling."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import httpx
import openai
import pydantic
import pytest
from openai.types.responses import Response

from engine import Engine
from ignis_desktop.server.app import BODIES
from ignis_desktop.server.settings import Settings
from ignis_desktop.server.thread import ServerThread
from ignis_desktop.store import responses as store
from ignis_desktop.store.responses import ResponseDatabase, StoredResponse
from tests.server.replay import Replay
from tests.server.test_files import png
from tests.server.test_tools import READ, RUN, xml

ASK = "Fix app.py."
SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}, "new": {"type": "string"}},
}
TOOLS: list[Any] = [
    {"type": "function", "name": name, "description": f"{name}s things", "parameters": SCHEMA, "strict": False}
    for name in ("read", "edit", "run")
]
THINK: Any = {"effort": "high"}


def create(client: openai.OpenAI, model: str, **options: Any) -> Response:
    return client.responses.create(**{"model": model, "input": ASK, **options})


def test_a_response(client: openai.OpenAI, model: str, replay: Replay) -> None:
    replay.answers("Done.")
    before = time.time()
    response = create(client, model, instructions="Be brief.", metadata={"a": "b"}, temperature=0.5)
    assert response.id.startswith("resp_")
    assert (response.object, response.status, response.model) == ("response", "completed", model)
    assert before - 1 <= response.created_at <= time.time()
    assert response.output_text == "Done."
    (message,) = response.output
    assert (message.type, message.status) == ("message", "completed")
    assert (response.error, response.incomplete_details) == (None, None)
    assert (response.instructions, response.metadata, response.temperature) == ("Be brief.", {"a": "b"}, 0.5)
    assert response.usage is not None
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens
    assert response.usage.output_tokens > 0
    counted = client.responses.input_tokens.count(model=model, input=ASK, instructions="Be brief.")
    assert counted.input_tokens == response.usage.input_tokens
    assert "<|im_start|>system\nBe brief.<|im_end|>" in replay.prompts[0]
    assert replay.prompts[0].endswith("user\nFix app.py.<|im_end|>\n<|im_start|>assistant\n")


def test_calls(client: openai.OpenAI, model: str, replay: Replay) -> None:
    replay.answers(f"Thought.\n</think>\n\nFirst:\n{READ}\n{RUN}")
    response = create(client, model, tools=TOOLS, reasoning=THINK)
    reasoning, message, read, run = response.output
    assert [item.type for item in response.output] == ["reasoning", "message", "function_call", "function_call"]
    assert reasoning.content[0].text == "Thought."  # type: ignore[union-attr, index]
    assert response.output_text == "First:"
    assert message.status == "completed"  # type: ignore[union-attr]
    assert (read.name, json.loads(read.arguments)) == ("read", {"path": "app.py", "limit": 20})  # type: ignore[union-attr]
    assert read.call_id != run.call_id  # type: ignore[union-attr]
    assert response.tools[0].to_dict() == TOOLS[0]
    assert response.usage is not None
    assert response.usage.output_tokens_details.reasoning_tokens > 0
    assert '"name": "read", "description": "reads things", "parameters"' in replay.prompts[0]


def test_the_events_in_order(client: openai.OpenAI, model: str, replay: Replay) -> None:
    replay.answers(f"Thought.\n</think>\n\nFirst:\n{READ}")
    events: list[Any] = list(create(client, model, tools=TOOLS, reasoning=THINK, stream=True))  # type: ignore[call-overload]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    shape: list[str] = []
    for event in events:
        kind = event.type.removeprefix("response.")
        if not shape or shape[-1] != kind:
            shape.append(kind)
    assert shape == [
        "created", "in_progress",
        "output_item.added", "content_part.added", "reasoning_text.delta", "reasoning_text.done", "content_part.done",
        "output_item.done",
        "output_item.added", "content_part.added", "output_text.delta", "output_text.done", "content_part.done",
        "output_item.done",
        "output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done",
        "completed",
    ]  # fmt: skip
    assert (events[0].response.status, events[0].response.output) == ("in_progress", [])
    final = events[-1].response
    items = [event.item for event in events if event.type == "response.output_item.done"]
    assert [item.to_dict() for item in items] == [item.to_dict() for item in final.output]
    for index, item in enumerate(final.output):
        mine = [event for event in events if getattr(event, "output_index", None) == index]
        assert {event.item_id for event in mine if hasattr(event, "item_id")} == {item.id}
        text = "".join(event.delta for event in mine if event.type.endswith(".delta"))
        assert text == (item.arguments if item.type == "function_call" else item.content[0].text)
    assert len([event for event in events if event.type == "response.function_call_arguments.delta"]) > 1


def test_the_streaming_helper(client: openai.OpenAI, model: str, replay: Replay) -> None:
    replay.answers(f"First:\n{READ}")
    with client.responses.stream(model=model, input=ASK, tools=TOOLS) as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        final = stream.get_final_response()
    assert text == final.output_text == "First:"
    assert final.output[1].type == "function_call"
    assert client.responses.retrieve(final.id).output_text == "First:"


def test_the_frames_on_the_wire(http: httpx.Client, replay: Replay) -> None:
    replay.answers("Done.")
    with http.stream("POST", "/v1/responses", json={"input": ASK, "stream": True, "store": False}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        raw = response.read().decode()
    frames = raw.split("\n\n")
    assert frames.pop() == ""
    for frame in frames:
        event, data = frame.split("\n")
        assert event.removeprefix("event: ") == json.loads(data.removeprefix("data: "))["type"]
    assert frames[-1].startswith("event: response.completed")


def test_the_async_client(server: ServerThread, model: str, replay: Replay) -> None:
    replay.answers("One.", "Two.")

    async def talk() -> tuple[str, str]:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="unused", max_retries=0) as client:
            first = await client.responses.create(model=model, input=ASK)
            async with client.responses.stream(model=model, input=ASK) as stream:
                return first.output_text, (await stream.get_final_response()).output_text

    assert asyncio.run(talk()) == ("One.", "Two.")


def test_a_conversation_that_the_server_keeps(client: openai.OpenAI, model: str, replay: Replay) -> None:
    replay.answers("One.", "Two.", "Three.")
    first = create(client, model, input="First?", instructions="Be brief.")
    second = create(client, model, input="Second?", previous_response_id=first.id)
    assert second.previous_response_id == first.id
    create(client, model, input="Third?", previous_response_id=second.id)
    turns = replay.prompts[2].split("<|im_start|>")[2:]
    said = ["user\nFirst?", "assistant\nOne.", "user\nSecond?", "assistant\nTwo.", "user\nThird?"]
    assert turns == [*(f"{turn}<|im_end|>\n" for turn in said), "assistant\n"]
    assert "Be brief." not in replay.prompts[1]  # instructions are of one response alone
    assert second.usage is not None


def test_what_was_read_before_is_not_read_again(client: openai.OpenAI, model: str, replay: Replay) -> None:
    replay.answers("One.", "Two.")
    first = create(client, model, input="All of these: " + " ".join(str(n) for n in range(300)))
    second = create(client, model, input="And?", previous_response_id=first.id)
    assert first.usage is not None
    assert second.usage is not None
    assert second.usage.input_tokens_details.cached_tokens > 0.9 * first.usage.input_tokens


def test_calls_are_answered(client: openai.OpenAI, model: str, replay: Replay) -> None:
    replay.answers(f"Thought.\n</think>\n\nBoth:\n{READ}\n{RUN}", "Done.", "Done.")
    first = create(client, model, tools=TOOLS, reasoning=THINK)
    outputs: list[Any] = [
        {"type": "function_call_output", "call_id": item.call_id, "output": f"of {item.name}"}
        for item in first.output[:1:-1]
        if item.type == "function_call"
    ]
    create(client, model, input=outputs, tools=TOOLS, previous_response_id=first.id)
    # The same by a client that keeps the conversation itself.
    history: list[Any] = [{"role": "user", "content": ASK}, *(item.to_dict() for item in first.output), *outputs]
    create(client, model, input=history, tools=TOOLS, store=False)
    assert replay.prompts[1] == replay.prompts[2]
    prompt = replay.prompts[1]
    assert prompt.count("<|im_start|>assistant") == 2
    assert prompt.index("<tool_response>\nof read\n") < prompt.index("<tool_response>\nof run\n")


def test_retrieve_list_delete(client: openai.OpenAI, model: str, replay: Replay) -> None:
    replay.answers("One.", "Two.", "Three.")
    parts: list[Any] = [{"role": "user", "content": [{"type": "input_text", "text": "a"}]}]
    response = create(client, model, input=[*parts, {"role": "assistant", "content": "b"}, *parts])
    assert client.responses.retrieve(response.id).to_dict() == response.to_dict()
    items = list(client.responses.input_items.list(response.id, order="asc", limit=2))
    assert [item.role for item in items] == ["user", "assistant", "user"]  # type: ignore[union-attr]
    assert items[1].content[0].text == "b"  # type: ignore[union-attr]
    newest = client.responses.input_items.list(response.id, limit=1)
    assert newest.data[0].id == items[2].id
    after = create(client, model, input="c", previous_response_id=response.id)
    client.responses.delete(response.id)
    for call in (client.responses.retrieve, client.responses.delete, client.responses.input_items.list):
        with pytest.raises(openai.NotFoundError) as refused:
            call(response.id)
        assert refused.value.code == "response_not_found"
    for gone in (response.id, after.id):
        with pytest.raises(openai.BadRequestError) as cut:
            create(client, model, input="d", previous_response_id=gone)
        assert (cut.value.code, cut.value.param) == ("previous_response_not_found", "previous_response_id")
    assert client.responses.retrieve(after.id).output_text == "Two."


@pytest.mark.parametrize("stream", [False, True])
def test_what_is_not_to_be_kept(client: openai.OpenAI, model: str, replay: Replay, stream: bool) -> None:
    replay.answers("One.")
    if stream:
        *_, last = create(client, model, store=False, stream=True)  # type: ignore[misc]
        response = last.response
    else:
        response = create(client, model, store=False)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(response.id)


@pytest.mark.parametrize("stream", [False, True])
def test_a_response_that_is_cut_off(client: openai.OpenAI, model: str, replay: Replay, stream: bool) -> None:
    replay.answers("So:\n" + xml("edit", path="app.py", new="a" * 400))
    options: Any = {"tools": TOOLS, "max_output_tokens": 80}
    if stream:
        *_, last = create(client, model, stream=True, **options)  # type: ignore[misc]
        assert last.type == "response.incomplete"
        response: Any = last.response
    else:
        response = create(client, model, **options)
    assert response.status == "incomplete"
    assert response.incomplete_details.reason == "max_output_tokens"
    message, call = response.output
    assert (message.status, call.status) == ("completed", "incomplete")
    assert call.arguments.startswith('{"path": "app.py", "new": "aaa')
    assert client.responses.retrieve(response.id).status == "incomplete"


def test_a_response_that_is_cancelled(client: openai.OpenAI, model: str) -> None:
    stream = client.responses.create(
        model=model, input=ASK, stream=True, max_output_tokens=20_000, extra_body={"ignore_eos": True}
    )
    events = iter(stream)
    response_id = next(events).response.id  # type: ignore[union-attr]
    assert client.responses.retrieve(response_id).status == "in_progress"
    assert client.responses.cancel(response_id).status == "cancelled"
    *_, last = events
    assert last.type == "response.incomplete"
    assert last.response.status == "cancelled"
    assert client.responses.retrieve(response_id).status == "cancelled"
    with pytest.raises(openai.BadRequestError, match="has ended already"):
        client.responses.cancel(response_id)
    with pytest.raises(openai.NotFoundError):
        client.responses.cancel("resp_0")


def test_a_client_that_leaves(
    client: openai.OpenAI, model: str, server: ServerThread, wait_until: Callable[[Callable[[], bool], float], float]
) -> None:
    stream = client.responses.create(
        model=model, input=ASK, stream=True, max_output_tokens=20_000, extra_body={"ignore_eos": True}
    )
    response_id = next(iter(stream)).response.id  # type: ignore[union-attr]
    stream.close()
    assert server._app is not None
    live = server._app.state.ignis.live_responses
    wait_until(lambda: response_id not in live, 5.0)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(response_id)


def test_pictures_and_files(client: openai.OpenAI, model: str, replay: Replay) -> None:
    replay.answers("Red.", "Red.", "Yes.")
    picture = client.files.create(file=("red.png", png()), purpose="vision")
    text = client.files.create(file=("a.txt", b"inside"), purpose="user_data")
    url = "data:image/png;base64," + base64.b64encode(png()).decode()
    for image in ({"image_url": url}, {"file_id": picture.id}):
        part: Any = {"type": "input_image", "detail": "auto", **image}
        create(client, model, input=[{"role": "user", "content": [{"type": "input_text", "text": "What?"}, part]}])
    assert replay.prompts[0] == replay.prompts[1]
    assert replay.prompts[0].count("<|image_pad|>") > 1
    create(client, model, input=[{"role": "user", "content": [{"type": "input_file", "file_id": text.id}]}])
    assert '<document title="a.txt">\ninside\n</document>' in replay.prompts[2]
    for file in (picture, text):
        client.files.delete(file.id)


def test_a_custom_tool(client: openai.OpenAI, model: str, replay: Replay) -> None:
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}
    tool: Any = {"type": "custom", "name": "patch", "description": "Patches.", "format": grammar}
    replay.answers(xml("patch", input="*** Begin\n+ a"), "Done.")
    *events, last = create(client, model, tools=[tool], stream=True)  # type: ignore[misc]
    response: Any = last.response
    (call,) = response.output
    assert (call.type, call.name, call.input) == ("custom_tool_call", "patch", "*** Begin\n+ a")
    assert call.input in [event.input for event in events if event.type == "response.custom_tool_call_input.done"]
    assert "start: /.+/" in replay.prompts[0]
    output: Any = {"type": "custom_tool_call_output", "call_id": call.call_id, "output": "ok"}
    create(client, model, tools=[tool], input=[output], previous_response_id=response.id)
    assert "<tool_response>\nok\n</tool_response>" in replay.prompts[1]


def test_tools_that_others_run_are_left_out(client: openai.OpenAI, model: str, replay: Replay) -> None:
    replay.answers("Done.")
    response = create(client, model, tools=[*TOOLS, {"type": "web_search"}])
    assert [tool.type for tool in response.tools] == ["function"] * 3
    assert "web_search" not in replay.prompts[0]


def test_reasoning_that_the_client_keeps(client: openai.OpenAI, model: str, replay: Replay) -> None:
    replay.answers(f"Thought.\n</think>\n\n{READ}", "Done.")
    include: Any = ["reasoning.encrypted_content"]
    first = create(client, model, tools=TOOLS, reasoning=THINK, store=False, include=include)
    reasoning: Any = first.output[0].to_dict()
    assert reasoning["encrypted_content"]
    del reasoning["content"]
    call: Any = first.output[1].to_dict()
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "x"}
    foreign = {"type": "reasoning", "id": "rs_0", "summary": [], "encrypted_content": "gAAAA…"}
    history: list[Any] = [{"role": "user", "content": ASK}, foreign, reasoning, call, output]
    assert create(client, model, input=history, tools=TOOLS, store=False).output_text == "Done."


def test_allowed_tools(client: openai.OpenAI, model: str, replay: Replay) -> None:
    replay.answers("Done.", READ)
    allowed: Any = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "run"}]}
    create(client, model, tools=TOOLS, tool_choice=allowed)
    assert "runs things" in replay.prompts[0]
    assert "reads things" not in replay.prompts[0]
    assert create(client, model, tools=TOOLS, tool_choice="none").output[0].type == "message"


def test_several_system_messages_are_one(client: openai.OpenAI, model: str, replay: Replay) -> None:
    replay.answers("Done.")
    items: list[Any] = [{"role": "developer", "content": "Two."}, {"role": "user", "content": "Hi."}]
    create(client, model, instructions="One.", input=items)
    assert "system\nOne.\n\nTwo.<|im_end|>" in replay.prompts[0]


def test_what_coding_agents_send_is_taken(http: httpx.Client, model: str, replay: Replay) -> None:
    """More than there is here, as they do not know who answers."""
    replay.answers(f"Thought.\n</think>\n\n{READ}")
    body = {
        "model": model,
        "instructions": "You are an agent.",
        "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "<permissions>"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment>"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": ASK}]},
        ],
        "tools": [
            *TOOLS,
            {
                "type": "custom",
                "name": "patch",
                "format": {"type": "grammar", "syntax": "lark", "definition": "start: /x/"},
            },
            {"type": "web_search", "external_web_access": False},
            {"type": "local_shell"},
        ],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "reasoning": {"effort": "medium", "summary": "auto"},
        "text": {"verbosity": "low"},
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "key",
        "service_tier": None,
        "client_metadata": {"x": "y"},
        "store": False,
        "stream": True,
    }
    answer = http.post("/v1/responses", json=body, headers={"originator": "x", "session_id": "y"})
    assert answer.status_code == 200, answer.text
    final = json.loads(answer.text.split("\n\n")[-2].partition("data: ")[2])["response"]
    assert [item["type"] for item in final["output"]] == ["reasoning", "function_call"]
    assert final["prompt_cache_key"] == "key"
    assert "system\nYou are an agent.\n\n<permissions>\n\nYou may call these functions:" in replay.prompts[0]


def user(*parts: Any) -> dict[str, Any]:
    return {"input": [{"role": "user", "content": list(parts)}]}


UNKNOWN = {"type": "array", "uniqueItems": True}
CALL = {"type": "function_call", "call_id": "1", "name": "read", "arguments": "{}"}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"input": None}, "input"),
    ({"input": []}, "input"),
    ({"input": 5}, "input"),
    ({"input": [{}]}, "input.0"),
    ({"input": [{"type": "dance"}]}, "input.0.type"),
    ({"input": [{"type": "item_reference", "id": "msg_0"}]}, "input.0.type"),
    ({"input": [{"role": "wizard", "content": "x"}]}, "input.0.role"),
    ({"input": [{"role": "user"}]}, "input.0.content"),
    (user({"type": "audio"}), "input.0.content.0.type"),
    (user({"type": "input_text"}), "input.0.content.0.text"),
    (user({"type": "input_image"}), "input.0.content.0.image_url"),
    (user({"type": "input_image", "image_url": "http://127.0.0.1/"}), "input.0.content.0.image_url"),
    (user({"type": "input_image", "file_id": "file-0"}), "input.0.content.0.file_id"),
    (user({"type": "input_file"}), "input.0.content.0.file_id"),
    ({"input": [{"type": "function_call_output", "call_id": "1", "output": "x"}]}, "input.0.call_id"),
    (
        {"input": [CALL, {"role": "user", "content": "x"}, {"type": "function_call_output", "call_id": "1"}]},
        "input.2.call_id",
    ),
    ({"input": [CALL, {"type": "function_call_output", "call_id": "1"}]}, "input.1.output"),
    ({"input": [CALL, {"type": "function_call_output", "call_id": []}]}, "input.1.call_id"),
    ({"input": [{**CALL, "call_id": None}]}, "input.0.call_id"),
    ({"input": [{**CALL, "name": None}]}, "input.0.name"),
    ({"input": [{**CALL, "arguments": "["}]}, "input.0.arguments"),
    ({"tools": [{"name": "x"}]}, "tools.0.type"),
    ({"tools": [{"type": "function"}]}, "tools.0.name"),
    ({"tools": [{"type": "function", "name": "f", "parameters": []}]}, "tools.0.parameters"),
    ({"tools": TOOLS, "tool_choice": {"type": "function", "name": "fly"}}, "tool_choice"),
    ({"tools": TOOLS, "tool_choice": {"type": "web_search"}}, "tool_choice"),
    ({"tool_choice": "required"}, "tool_choice"),
    ({"text": {"format": {"type": "yaml"}}}, "text.format.type"),
    ({"text": {"format": {"type": "json_schema"}}}, "text.format.schema"),
    ({"text": {"format": {"type": "json_schema", "schema": UNKNOWN}}}, "text.format"),
    ({"reasoning": {"effort": 5}}, "reasoning.effort"),
    ({"background": True}, "background"),
    ({"conversation": "conv_0"}, "conversation"),
    ({"prompt": {"id": "p"}}, "prompt"),
    ({"top_logprobs": 3}, "top_logprobs"),
    ({"include": ["message.output_text.logprobs"]}, "include"),
    ({"previous_response_id": "resp_0"}, "previous_response_id"),
    ({"max_output_tokens": 0}, "max_output_tokens"),
    ({"metadata": {"a": 5}}, "metadata.a"),
    ({"input": "1 2 3 " * 30_000}, "input"),
]


@pytest.mark.parametrize(("body", "param"), REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_what_is_refused(http: httpx.Client, body: dict[str, Any], param: str) -> None:
    answer = http.post("/v1/responses", json={"input": ASK, "max_output_tokens": 1, "store": False, **body})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param


def test_another_model(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as refused:
        create(client, "gpt-5")
    assert refused.value.code == "model_not_found"


def test_queries(http: httpx.Client, client: openai.OpenAI, model: str, replay: Replay) -> None:
    replay.answers("One.")
    path = f"/v1/responses/{create(client, model).id}"
    assert http.get(path, params={"include": "x"}).status_code == 200
    for query in ({"limit": 0}, {"limit": 101}, {"order": "up"}, {"after": "msg_0"}):
        assert http.get(f"{path}/input_items", params=query).status_code == 400
    assert http.get(path, params={"stream": "true"}).status_code == 400


def test_responses_outlast_the_server(engine: Engine, model: str, tmp_path: Path, replay: Replay) -> None:
    replay.answers("One.", "Two.")
    settings = Settings(port=0, data_directory=tmp_path, runtime_directory=tmp_path)
    kept = ""
    for question in ("First?", "Second?"):
        with (
            ServerThread(engine, settings) as server,
            openai.OpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0) as client,
        ):
            kept = create(client, model, input=question, previous_response_id=kept or openai.omit).id
    assert "First?" in replay.prompts[1]


@pytest.mark.parametrize("stream", [False, True])
def test_a_disk_that_cannot_be_written(
    engine: Engine, model: str, tmp_path: Path, replay: Replay, stream: bool
) -> None:
    """The answer is worth more than its copy."""
    replay.answers("One.")
    (tmp_path / "taken").touch()
    settings = Settings(port=0, data_directory=tmp_path / "taken", runtime_directory=tmp_path)
    with (
        ServerThread(engine, settings) as server,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0) as client,
    ):
        if stream:
            *_, last = create(client, model, stream=True)  # type: ignore[misc]
            answer: Any = last.response
        else:
            answer = create(client, model)
        assert (answer.output_text, answer.to_dict()["store"]) == ("One.", False)
        with pytest.raises(openai.InternalServerError) as refused:
            client.responses.retrieve(answer.id)
        assert refused.value.code == "storage_failed"


def stored(number: int, previous: int | None = None) -> StoredResponse:
    return StoredResponse(f"resp_{number}", None if previous is None else f"resp_{previous}", [], {"output": []})


def test_old_responses_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = ResponseDatabase(tmp_path / "responses.sqlite")
    kept.save(stored(0))
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + store.LIFETIME + 1)
    assert kept.get("resp_0") is None
    monkeypatch.setattr(store, "MOST", 3)
    for number in range(1, 6):
        kept.save(stored(number, number - 1))
    assert [kept.get(f"resp_{number}") is not None for number in range(6)] == [False, False, False, True, True, True]
    assert kept.chain("resp_5") is None
    kept.close()


def test_a_chain_that_bites_its_tail(tmp_path: Path) -> None:
    kept = ResponseDatabase(tmp_path / "responses.sqlite")
    kept.save(stored(1, 2))
    kept.save(stored(2, 1))
    assert kept.chain("resp_2") is None
    kept.close()


class Place(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    name: Literal["here", "there"]
    rank: Literal[1, 2, 3]


@pytest.mark.parametrize("stream", [False, True])
def test_a_schema_is_kept(client: openai.OpenAI, model: str, stream: bool) -> None:
    """By a model that writes noise."""
    options: Any = {"model": model, "input": ASK, "text_format": Place, "temperature": 1.5}
    for seed in range(3):
        options["extra_body"] = {"seed": seed}
        if stream:
            with client.responses.stream(**options) as events:
                parsed = events.get_final_response().output_parsed
        else:
            parsed = client.responses.parse(**options).output_parsed
        assert isinstance(parsed, Place)


def test_any_json_object(client: openai.OpenAI, model: str) -> None:
    form: Any = {"format": {"type": "json_object"}}
    answer = create(client, model, text=form, temperature=0, max_output_tokens=40, extra_body={"seed": 1})
    assert answer.output_text.startswith("{")


@pytest.mark.parametrize(
    "choice", ["required", {"type": "function", "name": "run"}, {"type": "allowed_tools", "mode": "required"}]
)
def test_calls_that_are_forced(client: openai.OpenAI, model: str, choice: Any) -> None:
    tools: list[Any] = [
        {"type": "function", "name": name, "parameters": Place.model_json_schema()} for name in ("read", "run")
    ]
    if isinstance(choice, dict) and "mode" in choice:
        choice["tools"] = [{"type": "function", "name": "run"}]
    answer = create(client, model, tools=tools, tool_choice=choice, parallel_tool_calls=False, temperature=1.5)
    (call,) = answer.output
    assert call.type == "function_call"
    assert call.name in (("read", "run") if choice == "required" else ("run",))
    Place.model_validate_json(call.arguments)


def test_reasoning_has_an_end(client: openai.OpenAI, model: str) -> None:
    answer = create(
        client,
        model,
        reasoning=THINK,
        max_output_tokens=60,
        extra_body={"thinking_budget": 16, "ignore_eos": True, "seed": 3},
    )
    assert answer.usage is not None
    assert 0 < answer.usage.output_tokens_details.reasoning_tokens < 40
    assert answer.output_text


def test_the_document_names_each_body_once(http: httpx.Client) -> None:
    names = [body.__name__ for body in BODIES]
    assert len(set(names)) == len(names)
    document = http.get("/openapi.json").json()
    assert set(names) <= set(document["components"]["schemas"])
    assert {"/v1/responses", "/v1/messages", "/v1/messages/count_tokens", "/v1/files"} <= set(document["paths"])
