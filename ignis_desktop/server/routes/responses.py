"""OpenAI's ``/v1/responses``: ask, come back to what was answered, delete it, end what still runs."""

from __future__ import annotations

import logging
import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from engine.messages import EngineError
from ignis_desktop.server.attachments import attach
from ignis_desktop.server.bodies import documented, read_body
from ignis_desktop.server.errors import ApiError, bad_request
from ignis_desktop.server.generation import Run
from ignis_desktop.server.response_body import ResponseBody, ResponseInputBody
from ignis_desktop.server.response_format import JSON_OBJECT
from ignis_desktop.server.response_items import (
    as_items,
    choice_of,
    custom_names,
    engine_messages,
    last_text,
    tools_of,
)
from ignis_desktop.server.response_reply import LiveResponse, ReplyForm, ResponseReply
from ignis_desktop.server.sse import EventStreamResponse
from ignis_desktop.server.state import ServerState, state_of
from ignis_desktop.server.turn import PreparedTurn, Turn, prepare_turn
from ignis_desktop.store.responses import StoredResponse

if TYPE_CHECKING:
    from engine import Engine

logger = logging.getLogger(__name__)

router = APIRouter(tags=["OpenAI"])

MAX_LISTED = 100
SEALED = "reasoning.encrypted_content"


@dataclass
class Asked:
    """``earlier``: items of the responses that this one goes on from; ``items``: the request's own."""

    earlier: list[dict[str, Any]]
    items: list[dict[str, Any]]
    messages: list[dict[str, Any]]


@dataclass(frozen=True)
class Prepared:
    turn: PreparedTurn
    tools: list[dict[str, Any]]
    """Those of the request that are used, as it sent them."""


@router.post("/v1/responses", openapi_extra=documented(ResponseBody))
async def create(http: Request) -> Response:
    """A response, streamed (`stream: true`) or whole; kept unless `store` is false."""
    state = state_of(http)
    body = await read_body(http, ResponseBody)
    model, suffix = state.model_for(body.model)
    body.refuse_unsupported()
    asked, prepared = await _prepared(state, body, body.max_output_tokens)
    request_class = body.class_of(http, suffix)
    request = prepared.turn.request(http, request_class, last_text(asked.items), stream=body.stream)
    run = Run(http, request_class, [request], "input")
    form = ReplyForm(custom_names(prepared.tools), SEALED in (body.include or ()))
    reply = ResponseReply(state, _head(body, model, prepared), prepared.turn.parser(), form)

    async def save() -> None:
        if body.store is not False:
            stored = StoredResponse(reply.id, body.previous_response_id, asked.items, reply.body)
            try:
                await state.workers.prepare(state.responses.save, stored)
            except sqlite3.Error:  # not worth losing the answer for
                logger.exception("A response could not be kept")
                reply.not_kept()

    if body.stream:
        live = LiveResponse(state, reply, run)
        return EventStreamResponse(reply.frames(run, save), live)
    (answer,) = await run.collect()
    await state.workers.prepare(reply.whole, answer)
    await save()
    return await state.workers.json(lambda: reply.body)


@router.post("/v1/responses/input_tokens", openapi_extra=documented(ResponseInputBody))
async def count(http: Request) -> Response:
    """How many tokens a request would read, tools, pictures and all."""
    state = state_of(http)
    body = await read_body(http, ResponseInputBody)
    state.model_for(body.model)
    _, prepared = await _prepared(state, body)
    return JSONResponse({"object": "response.input_tokens", "input_tokens": len(prepared.turn.prompt)})


@router.get("/v1/responses/{response_id}")
async def retrieve(response_id: str, http: Request, stream: bool = False) -> Response:
    """One response, also while it streams."""
    if stream:
        raise bad_request("stream: a response streams to the client that asked for it alone.", "stream")
    state = state_of(http)
    if (live := state.live_responses.get(response_id)) is not None:
        return JSONResponse(live.reply.body)
    return JSONResponse((await _stored(state, response_id)).body)


@router.delete("/v1/responses/{response_id}")
async def delete(response_id: str, http: Request) -> Response:
    """Drop one response for good. Those that went on from it stay, but cannot be gone on from."""
    state = state_of(http)
    if not await state.workers.prepare(state.responses.delete, response_id):
        raise _unknown(response_id)
    return JSONResponse({"id": response_id, "object": "response", "deleted": True})


@router.post("/v1/responses/{response_id}/cancel")
async def cancel(response_id: str, http: Request) -> Response:
    """End a response that streams now; what there is of it stays."""
    state = state_of(http)
    if (live := state.live_responses.get(response_id)) is not None:
        live.cancel()
        return JSONResponse({**live.reply.body, "status": "cancelled"})
    await _stored(state, response_id)
    raise bad_request("This response has ended already; there is nothing to cancel.", "id", "response_ended")


@router.get("/v1/responses/{response_id}/input_items")
async def input_items(
    response_id: str,
    http: Request,
    after: str | None = None,
    limit: int = 20,
    order: Literal["asc", "desc"] = "desc",
) -> Response:
    """What the request of one response sent, the newest first."""
    if not 1 <= limit <= MAX_LISTED:
        raise bad_request(f"limit: 1 to {MAX_LISTED} items a page, not {limit}.", "limit")
    items = (await _stored(state_of(http), response_id)).input
    if order == "desc":
        items = items[::-1]
    if after is not None:
        places = [index for index, item in enumerate(items) if item["id"] == after]
        if not places:
            raise bad_request(f"after: there is no item {after[:80]!r}.", "after")
        items = items[places[0] + 1 :]
    page = items[:limit]
    ends = {"first_id": page[0]["id"] if page else None, "last_id": page[-1]["id"] if page else None}
    return JSONResponse({"object": "list", "data": page, **ends, "has_more": len(items) > limit})


async def _prepared(state: ServerState, body: ResponseInputBody, most: int | None = None) -> tuple[Asked, Prepared]:
    """``most``: tokens of the answer. Raises ``ApiError`` 400 naming what cannot be used."""
    asked = await state.workers.prepare(_asked, state, body)
    asked.messages = await attach(state, asked.messages)
    try:
        return asked, await state.workers.prepare(_prepare, state.engine, body, asked.messages, most)
    except EngineError as error:
        if error.param == "messages":
            error.param = "input"
        raise


def _asked(state: ServerState, body: ResponseInputBody) -> Asked:
    earlier: list[dict[str, Any]] = []
    if body.previous_response_id is not None:
        chain = state.responses.chain(body.previous_response_id)
        if chain is None:
            where = "previous_response_id"
            message = f"{where}: there is no response {body.previous_response_id[:80]!r}, or one before it was deleted."
            raise bad_request(message, where, "previous_response_not_found")
        for response in chain:
            earlier += [*response.input, *response.body["output"]]
    items = as_items(body.input)
    if not items and not earlier:
        raise bad_request("input: a text, or a list of items that is not empty.", "input")
    return Asked(earlier, items, engine_messages(body.instructions, earlier, items))


def _prepare(engine: Engine, body: ResponseInputBody, messages: list[dict[str, Any]], most: int | None) -> Prepared:
    """Check the tools, fill the template, tokenise. Not on the event loop."""
    tools, taken = tools_of(body.tools or [])
    choice, tools = choice_of(body.tool_choice, tools)
    form = body.format
    turn = Turn(
        messages=messages,
        tools=tools,
        choice=choice,
        parallel=body.parallel_tool_calls is not False,
        schema={"json_object": JSON_OBJECT, "json_schema": form.get("schema")}.get(form["type"]),
        thinking=body.thinking,
        thinking_budget=body.budget,
        schema_param="text.format",
    )
    return Prepared(prepare_turn(engine, turn, lambda defaults: body.sampling(defaults, max_tokens=most)), taken)


def _head(body: ResponseBody, model: str, prepared: Prepared) -> dict[str, Any]:
    """The fields of a response that its request decides."""
    sampling, extra = prepared.turn.sampling, body.model_extra or {}
    return {
        "model": model,
        "instructions": body.instructions,
        "previous_response_id": body.previous_response_id,
        "background": False,
        "store": body.store is not False,
        "max_output_tokens": body.max_output_tokens,
        "max_tool_calls": None,
        "parallel_tool_calls": body.parallel_tool_calls is not False,
        "reasoning": {"effort": (body.reasoning or {}).get("effort"), "summary": None},
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_logprobs": 0,
        "text": {**(body.text or {}), "format": body.format},
        "tool_choice": "auto" if body.tool_choice is None else body.tool_choice,
        "tools": prepared.tools,
        "truncation": "disabled",
        "metadata": body.metadata or {},
        "service_tier": "default",
        "user": extra.get("user"),
        "safety_identifier": extra.get("safety_identifier"),
        "prompt_cache_key": extra.get("prompt_cache_key"),
    }


async def _stored(state: ServerState, response_id: str) -> StoredResponse:
    stored = await state.workers.prepare(state.responses.get, response_id)
    if stored is None:
        raise _unknown(response_id)
    return stored


def _unknown(response_id: str) -> ApiError:
    message = f"There is no response {response_id[:80]!r}: it was deleted, never kept, or is too old."
    return ApiError(404, message, code="response_not_found", param="id")
