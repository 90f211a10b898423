"""``POST /v1/chat/completions``."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from engine.messages import Prompt, SamplingParams
from engine.text.thinking import CLOSE, OPEN, Split, ThinkingSplitter
from ignis_desktop.server.bodies import documented, read_body
from ignis_desktop.server.conversation import ChatMessage, engine_messages, last_user_text
from ignis_desktop.server.errors import ApiError, bad_request
from ignis_desktop.server.generation import (
    Answer,
    Piece,
    Run,
    finish_reason,
    generate_request,
    timings_json,
    usage_json,
)
from ignis_desktop.server.logprobs import chat_logprobs
from ignis_desktop.server.sampling import MAX_LOGPROBS, SamplingBody
from ignis_desktop.server.sse import DONE, KEEP_ALIVE, EventStreamResponse, json_frame
from ignis_desktop.server.state import ServerState, state_of

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
    tool_choice: str | dict[str, Any] | None = None
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
        if self.tools and self.tool_choice != "none":
            raise ApiError(
                400,
                'tools: this version cannot call tools; leave them out or send tool_choice: "none".',
                code="tools_not_supported",
                param="tools",
            )
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
    prompt, sampling, opened = await state.workers.prepare(_prepare, state.engine, body)
    request_class = body.class_of(http, suffix)
    request = generate_request(http, prompt, sampling, request_class, last_user_text(body.messages), stream=body.stream)
    run = Run(http, request_class, [request], "messages")
    reply = ChatReply(state, model, body, thinking=opened)
    if body.stream:
        return EventStreamResponse(reply.frames(run), run)
    (answer,) = await run.collect()
    return await state.workers.json(reply.whole, answer)


def _prepare(engine: Engine, body: ChatBody) -> tuple[Prompt, SamplingParams, bool]:
    """Decode pictures, fill the template, tokenise; also whether the prompt opened the answer's reasoning.

    Takes milliseconds to seconds: not on the event loop.
    """
    messages = engine_messages(engine, body.messages)
    prompt = engine.chat_prompt(messages, enable_thinking=body.thinking if engine.info.thinking else None)
    opened = engine.tokenizer.decode(prompt.ids[-4:]).rstrip().endswith(OPEN)
    sampling = body.sampling(
        engine.sampling_defaults(opened),
        max_tokens=body.max_completion_tokens or body.max_tokens,
        logprobs=(body.top_logprobs or 0) if body.logprobs else None,
    )
    return prompt, sampling, opened


class ChatReply:
    """Builds the bodies of one request's answer."""

    def __init__(self, state: ServerState, model: str, body: ChatBody, *, thinking: bool) -> None:
        """``thinking``: the prompt ends inside a reasoning block."""
        self._body = body
        self._token_bytes = state.token_bytes
        self._splitter = ThinkingSplitter(opened=thinking)
        self._tags = state.engine.tokenizer.token_id(OPEN), state.engine.tokenizer.token_id(CLOSE)
        self._thinking = thinking
        self._reasoning_tokens = 0
        self._head: dict[str, Any] = {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": model,
            "system_fingerprint": state.fingerprint,
        }

    def whole(self, answer: Answer) -> dict[str, Any]:
        reasoning, content = self._split(answer.news(), last=True)
        message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
        if reasoning:
            message["reasoning_content"] = reasoning
        choice = {
            "index": 0,
            "message": message,
            "logprobs": chat_logprobs(answer.logprobs, self._token_bytes) if self._body.logprobs else None,
            "finish_reason": finish_reason(answer.end),
        }
        return {
            **self._head,
            "choices": [choice],
            "usage": usage_json(answer.end.usage, self._reasoning_tokens),
            "timings": timings_json(answer.end),
        }

    async def frames(self, run: Run) -> AsyncGenerator[bytes, None]:
        """Server-sent events: the role, a chunk for whatever has come since the last, why it ended, the usage."""
        self._head["object"] = "chat.completion.chunk"
        yield self._chunk({"role": "assistant", "content": ""})
        (answer,) = run.answers
        async with contextlib.aclosing(run.batches()) as batches:
            async for batch in batches:
                data = self._progress(answer) if batch else KEEP_ALIVE
                if data:
                    yield data
        yield self._chunk({}, finish=finish_reason(answer.end), timings=timings_json(answer.end))
        if self._body.include_usage:
            usage = usage_json(answer.end.usage, self._reasoning_tokens)
            yield json_frame({**self._head, "choices": [], "usage": usage})
        yield DONE

    def _progress(self, answer: Answer) -> bytes:
        """The chunk for what the answer has gained; nothing when that is no text yet."""
        piece = answer.news()
        reasoning, content = self._split(piece, last=answer.finished is not None)
        delta = {}
        if reasoning:
            delta["reasoning_content"] = reasoning
        if content:
            delta["content"] = content
        logprobs = chat_logprobs(piece.logprobs, self._token_bytes) if piece.logprobs else None
        return self._chunk(delta, logprobs) if delta or logprobs else b""

    def _chunk(
        self,
        delta: dict[str, str],
        logprobs: dict[str, Any] | None = None,
        finish: str | None = None,
        timings: dict[str, Any] | None = None,
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        body: dict[str, Any] = {**self._head, "choices": [choice]}
        if self._body.include_usage:
            body["usage"] = None
        if timings is not None:
            body["timings"] = timings
        return json_frame(body)

    def _split(self, piece: Piece, *, last: bool) -> tuple[str, str]:
        """(reasoning, content) that became certain with this piece; counts reasoning's tokens."""
        begins, ends = self._tags
        split = self._splitter.push(piece.text)
        rest = self._splitter.flush() if last else Split()
        self._thinking = self._thinking or (begins is not None and piece.ids[:1] == [begins])
        if self._thinking:
            self._thinking = ends is None or ends not in piece.ids
            counted = len(piece.ids) if ends is None or self._thinking else piece.ids.index(ends) + 1
            self._reasoning_tokens += counted
        return split.reasoning + rest.reasoning, split.content + rest.content
