"""Anthropic's ``POST /v1/messages`` and ``/v1/messages/count_tokens``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from engine.text.marks import turn_ends
from ignis_desktop.server.attachments import attach
from ignis_desktop.server.bodies import documented, read_body
from ignis_desktop.server.errors import bad_request
from ignis_desktop.server.generation import Run
from ignis_desktop.server.message_blocks import (
    BlockMessage,
    Conversation,
    choice_of,
    conversation,
    last_text,
    tools_of,
)
from ignis_desktop.server.message_reply import MessageReply
from ignis_desktop.server.sampling import SamplingBody, StopString
from ignis_desktop.server.sse import EventStreamResponse
from ignis_desktop.server.state import ServerState, state_of
from ignis_desktop.server.turn import EFFORT_BUDGETS, PreparedTurn, Turn, prepare_turn

if TYPE_CHECKING:
    from engine import Engine

router = APIRouter(tags=["Anthropic"])


class MessagesCountBody(SamplingBody):
    messages: Annotated[list[BlockMessage], Field(min_length=1)]
    system: str | list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: dict[str, Any] | None = None
    thinking: dict[str, Any] | None = Field(None, description="enabled with budget_tokens, adaptive, or disabled")
    output_config: dict[str, Any] | None = Field(None, description="format: a JSON schema that the answer fits")

    @property
    def thinks(self) -> bool:
        """Whether to think before answering: only when asked, as clients of this API expect. Raises ``ApiError``."""
        if self.thinking is None:
            return False
        kind = self.thinking.get("type")
        if kind not in ("enabled", "adaptive", "between_tools", "disabled"):
            raise bad_request("thinking.type: enabled, adaptive or disabled.", "thinking.type")
        return kind != "disabled"

    @property
    def thinking_budget(self) -> int | None:
        if self.thinking is None or self.thinking.get("type") != "enabled":
            effort = (self.output_config or {}).get("effort")
            return EFFORT_BUDGETS.get(effort) if isinstance(effort, str) else None
        budget = self.thinking.get("budget_tokens")
        if not isinstance(budget, int) or isinstance(budget, bool) or budget < 1:
            where = "thinking.budget_tokens"
            raise bad_request(f"{where}: enabled thinking needs a budget, a whole number of tokens.", where)
        return budget

    @property
    def schema_asked(self) -> dict[str, Any] | None:
        form = (self.output_config or {}).get("format")
        if form is None:
            return None
        where = "output_config.format"
        schema = form.get("schema") if isinstance(form, dict) and form.get("type") == "json_schema" else None
        if not isinstance(schema, dict):
            raise bad_request(f"{where}: a format is of type json_schema and has a schema, an object.", where)
        return schema


class MessagesBody(MessagesCountBody):
    max_tokens: int = Field(ge=1)
    stop_sequences: Annotated[list[StopString], Field(max_length=16)] | None = None
    thread: dict[str, Any] | None = Field(None, description="refused: send the whole conversation")

    def refuse_thread(self) -> None:
        """Raises ``ApiError`` 400, in the words that tell clients to go on without."""
        if self.thread is not None:
            message = "thread: this server keeps no conversations; send all messages, without thread."
            raise bad_request(message, "thread", "thread_unsupported_request")


@router.post("/v1/messages", openapi_extra=documented(MessagesBody))
async def messages(http: Request) -> Response:
    """A conversation's next message, streamed (`stream: true`) or whole. Any model name will do."""
    state = state_of(http)
    body = await read_body(http, MessagesBody)
    model, suffix = state.model_for(body.model, any_name=True)
    body.refuse_thread()
    turn = await _turn(state, body)
    turn = replace(
        turn, sampling=replace(turn.sampling, max_tokens=body.max_tokens, stop=tuple(body.stop_sequences or ()))
    )
    request_class = body.class_of(http, suffix)
    request = turn.request(http, request_class, last_text(body.messages), stream=body.stream)
    run = Run(http, request_class, [request], "messages")
    shown = (body.thinking or {}).get("display") != "omitted"
    reply = MessageReply(state, model, turn.parser(), len(turn.prompt), show_thinking=shown)
    if body.stream:
        return EventStreamResponse(reply.frames(run), run)
    (answer,) = await run.collect()
    return await state.workers.json(reply.whole, answer)


@router.post("/v1/messages/count_tokens", openapi_extra=documented(MessagesCountBody))
async def count_tokens(http: Request) -> Response:
    """How many tokens a conversation takes, tools, pictures and all."""
    state = state_of(http)
    body = await read_body(http, MessagesCountBody)
    state.model_for(body.model, any_name=True)
    turn = await _turn(state, body)
    return JSONResponse({"input_tokens": len(turn.prompt)})


async def _turn(state: ServerState, body: MessagesCountBody) -> PreparedTurn:
    """Raises ``ApiError`` 400 naming what cannot be used."""
    asked = await state.workers.prepare(conversation, body.system, body.messages)
    asked.messages = await attach(state, asked.messages)
    return await state.workers.prepare(_prepare, state.engine, body, asked)


def _prepare(engine: Engine, body: MessagesCountBody, asked: Conversation) -> PreparedTurn:
    """Check the tools, fill the template, tokenise. Not on the event loop."""
    begun = ""
    if asked.messages[-1]["role"] == "assistant":
        begun = _begun(asked.messages.pop())
        asked.marks = [index for index in asked.marks if index < len(asked.messages)]
    tools = tools_of(body.tools or [])
    turn = Turn(
        messages=asked.messages,
        tools=tools,
        choice=choice_of(body.tool_choice, tools),
        parallel=(body.tool_choice or {}).get("disable_parallel_tool_use") is not True,
        schema=body.schema_asked,
        thinking=body.thinks,
        thinking_budget=body.thinking_budget,
        schema_param="output_config.format",
    )
    prepared = prepare_turn(engine, turn, body.sampling)
    prompt = prepared.prompt
    roles = [message["role"] for message in asked.messages]
    kept = turn_ends(prompt.ids, engine.tokenizer, roles, asked.marks)
    prompt = replace(prompt, marks=tuple(sorted({*prompt.marks, *kept})))
    if begun:
        if prepared.opened or turn.schema is not None or turn.choice.mode == "required":
            message = (
                "messages: an answer that is begun already goes with neither thinking nor formats or forced tools."
            )
            raise bad_request(message, "messages")
        prompt = replace(prompt, ids=(*prompt.ids, *engine.tokenizer.encode(begun)))
    return replace(prepared, prompt=prompt)


def _begun(message: dict[str, Any]) -> str:
    """The beginning of the answer that is asked for, where the conversation ends with it."""
    if "tool_calls" in message:
        raise bad_request("messages: after a tool_use block comes a message with its tool_result.", "messages")
    return message["content"].rstrip()
