"""``POST /v1/chat/completions``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from ignis_desktop.server.attachments import read_messages
from ignis_desktop.server.bodies import documented, read_body
from ignis_desktop.server.chat_reply import ChatReply, ReplyOptions
from ignis_desktop.server.conversation import ChatMessage, chat_messages, last_user_text
from ignis_desktop.server.errors import bad_request
from ignis_desktop.server.generation import Run, with_siblings
from ignis_desktop.server.response_format import asked_schema
from ignis_desktop.server.sampling import MAX_LOGPROBS, SamplingBody
from ignis_desktop.server.sse import EventStreamResponse
from ignis_desktop.server.state import state_of
from ignis_desktop.server.tools import checked_choice, checked_tools
from ignis_desktop.server.turn import EFFORT_BUDGETS, PreparedTurn, Turn, prepare_turn

if TYPE_CHECKING:
    from engine import Engine

router = APIRouter(tags=["OpenAI"])


class ChatBody(SamplingBody):
    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1, description="the same; wins over max_tokens")
    logprobs: bool | None = None
    top_logprobs: int | None = Field(None, ge=0, le=MAX_LOGPROBS)
    enable_thinking: bool | None = None
    thinking_budget: int | None = Field(None, ge=0, description="tokens of reasoning, after which it is closed")
    reasoning_effort: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = Field(
        None, description="auto (default), none, required or an object that names a function"
    )
    parallel_tool_calls: bool | None = Field(None, description="false: the first call alone")
    response_format: dict[str, Any] | None = None

    @property
    def thinking(self) -> bool | None:
        """Whether to think before answering; None leaves it to the model's template."""
        if self.enable_thinking is not None:
            return self.enable_thinking
        asked = (self.chat_template_kwargs or {}).get("enable_thinking")
        if isinstance(asked, bool):
            return asked
        if self.reasoning_effort is None:
            return None
        return self.reasoning_effort not in ("none", "minimal")

    @property
    def budget(self) -> int | None:
        """Tokens of reasoning; None does not limit it."""
        if self.thinking_budget is not None:
            return self.thinking_budget
        return EFFORT_BUDGETS.get(self.reasoning_effort or "")

    def check(self, engine: Engine) -> None:
        """Raises ``ApiError`` 400 for parameters that do not fit each other or the engine."""
        self.check_siblings(engine.config.lanes)
        if self.top_logprobs and not self.logprobs:
            raise bad_request("top_logprobs needs logprobs: true.", "top_logprobs")


@router.post("/v1/chat/completions", openapi_extra=documented(ChatBody))
async def chat_completions(http: Request) -> Response:
    """Chat, streamed (`stream: true`) or whole."""
    state = state_of(http)
    body = await read_body(http, ChatBody)
    model, suffix = state.model_for(body.model)
    body.check(state.engine)
    messages = await read_messages(state, chat_messages, body.messages)
    turn = await state.workers.prepare(_prepare, state.engine, body, messages)
    request_class = body.class_of(http, suffix)
    request = turn.request(http, request_class, last_user_text(body.messages), stream=body.stream)
    run = Run(http, request_class, with_siblings(request, body.n), "messages", siblings=body.n)
    options = ReplyOptions(logprobs=bool(body.logprobs), include_usage=body.include_usage)
    reply = ChatReply(state, model, options, [turn.parser() for _ in range(body.n)])
    if body.stream:
        return EventStreamResponse(reply.frames(run), run)
    answers = await run.collect()
    return await state.workers.json(reply.whole, answers)


def _prepare(engine: Engine, body: ChatBody, messages: list[dict[str, Any]]) -> PreparedTurn:
    """Check the tools, fill the template, tokenise. Not on the event loop."""
    tools = checked_tools(body.tools or [])
    turn = Turn(
        messages=messages,
        tools=tools,
        choice=checked_choice(body.tool_choice, tools),
        parallel=body.parallel_tool_calls is not False,
        schema=asked_schema(body.response_format),
        thinking=body.thinking,
        thinking_budget=body.budget,
    )
    return prepare_turn(
        engine,
        turn,
        lambda defaults: body.sampling(
            defaults,
            max_tokens=body.max_completion_tokens or body.max_tokens,
            logprobs=(body.top_logprobs or 0) if body.logprobs else None,
        ),
    )
