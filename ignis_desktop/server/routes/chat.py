"""``POST /v1/chat/completions``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from engine.messages import Prompt, SamplingParams
from engine.text.answer import AnswerParser
from engine.text.thinking import OPEN
from ignis_desktop.server.bodies import documented, read_body
from ignis_desktop.server.chat_reply import ChatReply, ReplyOptions
from ignis_desktop.server.conversation import ChatMessage, engine_messages, last_user_text
from ignis_desktop.server.errors import ApiError, bad_request
from ignis_desktop.server.generation import Run, generate_request
from ignis_desktop.server.sampling import MAX_LOGPROBS, SamplingBody
from ignis_desktop.server.sse import EventStreamResponse
from ignis_desktop.server.state import state_of
from ignis_desktop.server.tools import check_choice, checked_tools, schemas_of

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
    reasoning_effort: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = Field(None, description="auto (default) or none")
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

    def refuse_unsupported(self) -> None:
        """Raises ``ApiError`` 400 for what would change the answer but is not there: ignoring it would mislead."""
        kind = (self.response_format or {}).get("type", "text")
        if kind != "text":
            raise ApiError(
                400,
                f"response_format: this version answers in plain text only, not {kind!r}.",
                code="response_format_not_supported",
                param="response_format",
            )
        if self.top_logprobs and not self.logprobs:
            raise bad_request("top_logprobs needs logprobs: true.", "top_logprobs")


@router.post("/v1/chat/completions", openapi_extra=documented(ChatBody))
async def chat_completions(http: Request) -> Response:
    """Chat, streamed (`stream: true`) or whole."""
    state = state_of(http)
    body = await read_body(http, ChatBody)
    model, suffix = state.model_for(body.model)
    body.refuse_unsupported()
    prompt, sampling, parser = await state.workers.prepare(_prepare, state.engine, body)
    request_class = body.class_of(http, suffix)
    request = generate_request(http, prompt, sampling, request_class, last_user_text(body.messages), stream=body.stream)
    run = Run(http, request_class, [request], "messages")
    options = ReplyOptions(logprobs=bool(body.logprobs), include_usage=body.include_usage)
    reply = ChatReply(state, model, options, parser)
    if body.stream:
        return EventStreamResponse(reply.frames(run), run)
    (answer,) = await run.collect()
    return await state.workers.json(reply.whole, answer)


def _prepare(engine: Engine, body: ChatBody) -> tuple[Prompt, SamplingParams, AnswerParser]:
    """Check the tools, decode pictures, fill the template, tokenise; also what will read the answer.

    Takes milliseconds to seconds: not on the event loop.
    """
    tools = checked_tools(body.tools) if body.tools else None
    check_choice(body.tool_choice, tools)
    if tools and body.tool_choice == "none":
        tools = None  # a model that is told of no tools calls none; one that does all the same has written a text
    if tools and not engine.loaded.template.takes_tools:
        raise ApiError(
            400,
            "tools: this model's chat template does not tell it of tools; leave them out.",
            code="tools_not_supported",
            param="tools",
        )
    messages = engine_messages(engine, body.messages)
    thinking = body.thinking if engine.info.thinking else None
    prompt = engine.chat_prompt(messages, tools=tools, enable_thinking=thinking)
    opened = engine.tokenizer.decode(prompt.ids[-4:]).rstrip().endswith(OPEN)
    sampling = body.sampling(
        engine.sampling_defaults(opened),
        max_tokens=body.max_completion_tokens or body.max_tokens,
        logprobs=(body.top_logprobs or 0) if body.logprobs else None,
    )
    most = 1 if body.parallel_tool_calls is False else None
    return prompt, sampling, AnswerParser(schemas_of(tools) if tools else None, opened=opened, most=most)
