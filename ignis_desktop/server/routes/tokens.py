"""``POST /v1/tokenize`` and ``/v1/detokenize``."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from engine.messages import Prompt
from ignis_desktop.server.attachments import read_messages
from ignis_desktop.server.bodies import Body, documented, read_body
from ignis_desktop.server.conversation import ChatMessage, chat_messages
from ignis_desktop.server.errors import bad_request
from ignis_desktop.server.state import ServerState, state_of
from ignis_desktop.server.tools import checked_tools

router = APIRouter(tags=["Tokens"])


class TokenizeBody(Body):
    model: str | None = None
    prompt: str | None = None
    messages: list[ChatMessage] | None = Field(None, description="instead of prompt: tokens of the whole chat prompt")
    tools: list[dict[str, Any]] | None = Field(None, description="with messages: what the chat prompt tells of them")
    enable_thinking: bool | None = None
    return_token_strs: bool = False


class DetokenizeBody(Body):
    model: str | None = None
    tokens: list[Annotated[int, Field(ge=0)]]


@router.post("/v1/tokenize", openapi_extra=documented(TokenizeBody))
async def tokenize(http: Request) -> Response:
    """Token ids of a text or of a conversation."""
    state = state_of(http)
    body = await read_body(http, TokenizeBody)
    state.model_for(body.model)
    if (body.prompt is None) == (body.messages is None):
        raise bad_request("Send either prompt (a text) or messages (a conversation).", "prompt")
    messages = await read_messages(state, chat_messages, body.messages) if body.messages is not None else None
    return await state.workers.json(_tokenize, state, body, messages)


@router.post("/v1/detokenize", openapi_extra=documented(DetokenizeBody))
async def detokenize(http: Request) -> Response:
    """The text of token ids."""
    state = state_of(http)
    body = await read_body(http, DetokenizeBody)
    state.model_for(body.model)
    size = state.engine.info.vocabulary_size
    strange = next((token for token in body.tokens if token >= size), None)
    if strange is not None:
        raise bad_request(f"tokens: there is no token {strange}; the vocabulary has {size}.", "tokens")
    return JSONResponse({"prompt": await state.workers.prepare(state.engine.tokenizer.decode, body.tokens)})


def _tokenize(state: ServerState, body: TokenizeBody, messages: list[dict[str, Any]] | None) -> dict[str, Any]:
    engine = state.engine
    prompt: Prompt
    if messages is not None:
        tools = checked_tools(body.tools) if body.tools else None
        prompt = engine.chat_prompt(messages, tools=tools, enable_thinking=body.enable_thinking)
    else:
        prompt = engine.text_prompt(body.prompt or "")
    answer: dict[str, Any] = {
        "tokens": list(prompt.ids),
        "count": len(prompt),
        "max_model_len": engine.info.context_length,
    }
    if body.return_token_strs:
        answer["token_strs"] = [state.token_bytes(token).decode("utf-8", "replace") for token in prompt.ids]
    return answer
