"""``POST /v1/completions``: text completion of one or several prompts, each on a lane of its own."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from engine.messages import Prompt, SamplingParams, TokenLogprob
from ignis_desktop.server.bodies import documented, read_body
from ignis_desktop.server.errors import bad_request
from ignis_desktop.server.generation import (
    Answer,
    Run,
    finish_reason,
    generate_request,
    timings_json,
    total_usage,
    usage_json,
    with_siblings,
)
from ignis_desktop.server.logprobs import completion_logprobs
from ignis_desktop.server.sampling import MAX_LOGPROBS, SamplingBody
from ignis_desktop.server.sse import DONE, KEEP_ALIVE, EventStreamResponse, json_frame
from ignis_desktop.server.state import ServerState, state_of

if TYPE_CHECKING:
    from engine import Engine

router = APIRouter(tags=["OpenAI"])

DEFAULT_MAX_TOKENS = 16
"""OpenAI's default for this route."""
MAX_PROMPTS = 128

TokenIds = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]


class CompletionBody(SamplingBody):
    prompt: str | list[str] | TokenIds | list[TokenIds]
    max_tokens: int | None = Field(None, ge=0)
    logprobs: int | None = Field(None, ge=0, le=MAX_LOGPROBS)
    echo: bool | None = None
    suffix: str | None = None
    best_of: int | None = None

    def check(self, engine: Engine) -> None:
        """Raises ``ApiError`` 400 for what this server cannot do."""
        self.check_siblings(engine.config.lanes)
        if self.suffix:
            raise bad_request("suffix: this model completes text at its end only.", "suffix", "suffix_not_supported")
        if self.best_of not in (None, 1, self.n):
            raise bad_request(f"best_of: as many as are given out (n = {self.n}), not {self.best_of}.", "best_of")

    @property
    def prompts(self) -> list[str | list[int]]:
        """The prompts one by one, whichever of the four shapes was sent."""
        if isinstance(self.prompt, str):
            return [self.prompt]
        ids = [token for token in self.prompt if isinstance(token, int)]
        return [ids] if ids else [prompt for prompt in self.prompt if not isinstance(prompt, int)]


@router.post("/v1/completions", openapi_extra=documented(CompletionBody))
async def completions(http: Request) -> Response:
    """Text completion, streamed (`stream: true`) or whole."""
    state = state_of(http)
    body = await read_body(http, CompletionBody)
    model, suffix = state.model_for(body.model)
    body.check(state.engine)
    prompts, sampling = await state.workers.prepare(_prepare, state.engine, body)
    request_class = body.class_of(http, suffix)
    labels = [prompt if isinstance(prompt, str) else f"{len(prompt)} token ids" for prompt in body.prompts]
    requests = [
        sibling
        for prompt, label in zip(prompts, labels, strict=True)
        for sibling in with_siblings(
            generate_request(http, prompt, sampling, request_class, label, stream=body.stream), body.n
        )
    ]
    run = Run(http, request_class, requests, "prompt", siblings=body.n)
    reply = CompletionReply(state, model, body, prompts)
    if body.stream:
        return EventStreamResponse(reply.frames(run), run)
    answers = await run.collect()
    return await state.workers.json(reply.whole, answers)


def _prepare(engine: Engine, body: CompletionBody) -> tuple[list[Prompt], SamplingParams]:
    if not 1 <= len(body.prompts) <= MAX_PROMPTS:
        raise bad_request(f"prompt: 1 to {MAX_PROMPTS} prompts a request, not {len(body.prompts)}.", "prompt")
    size = engine.info.vocabulary_size
    prompts = []
    for index, prompt in enumerate(body.prompts):
        if isinstance(prompt, str):
            prompts.append(engine.text_prompt(prompt))
            continue
        strange = next((token for token in prompt if token >= size), None)
        if strange is not None:
            raise bad_request(f"prompt: there is no token {strange}; the vocabulary has {size}.", f"prompt.{index}")
        prompts.append(Prompt(tuple(prompt)))
    sampling = body.sampling(
        engine.sampling_defaults(False),
        max_tokens=DEFAULT_MAX_TOKENS if body.max_tokens is None else body.max_tokens,
        logprobs=body.logprobs,
        prompt_logprobs=body.logprobs if body.echo else None,
    )
    return prompts, sampling


class CompletionReply:
    """Builds the bodies of one request's answer."""

    def __init__(self, state: ServerState, model: str, body: CompletionBody, prompts: Sequence[Prompt]) -> None:
        self._body = body
        self._prompts = prompts
        self._token_bytes = state.token_bytes
        self._head: dict[str, Any] = {
            "id": f"cmpl-{uuid.uuid4().hex}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": model,
            "system_fingerprint": state.fingerprint,
        }
        self._echoes = [""] * len(prompts)
        if body.echo:
            self._echoes = [p if isinstance(p, str) else state.engine.tokenizer.decode(p) for p in body.prompts]
        self._offsets: dict[int, int] = {}
        """Characters sent so far of each choice's text; no entry before its first chunk."""

    def whole(self, answers: Sequence[Answer]) -> dict[str, Any]:
        usage = total_usage([answer.end for answer in answers], self._body.n)
        return {
            **self._head,
            "choices": [self._choice(index, answer) for index, answer in enumerate(answers)],
            "usage": usage_json(usage),
            "timings": timings_json(answers[0].end) if len(answers) == 1 else None,
        }

    async def frames(self, run: Run) -> AsyncGenerator[bytes, None]:
        """Server-sent events: one chunk a prompt for whatever has come since the last."""
        async with contextlib.aclosing(run.batches()) as batches:
            async for batch in batches:
                data = b"" if batch else KEEP_ALIVE
                for index in sorted({index for index, _ in batch}):
                    choice = self._choice(index, run.answers[index])
                    if choice["text"] or choice["finish_reason"] or choice["logprobs"]:
                        data += json_frame({**self._head, "choices": [choice]})
                if data:
                    yield data
        if self._body.include_usage:
            usage = usage_json(total_usage([answer.end for answer in run.answers], self._body.n))
            yield json_frame({**self._head, "choices": [], "usage": usage})
        yield DONE

    def _choice(self, index: int, answer: Answer) -> dict[str, Any]:
        """What the answer has gained since it was last asked, after its prompt's echo the first time."""
        piece = answer.news()
        text, ids, tokens = piece.text, piece.ids, list[TokenLogprob | None](piece.logprobs)
        begun = index in self._offsets
        if not begun and self._body.echo and (ids or answer.finished):
            prompt = index // self._body.n
            text = self._echoes[prompt] + text
            ids, tokens = [*self._prompts[prompt].ids, *ids], [*answer.prompt_logprobs, *tokens]
        offset = self._offsets.get(index, 0)
        if text or ids:
            self._offsets[index] = offset + len(text)
        wanted = self._body.logprobs is not None and bool(ids)
        return {
            "index": index,
            "text": text,
            "logprobs": completion_logprobs(ids, tokens, self._token_bytes, offset) if wanted else None,
            "finish_reason": None if answer.finished is None else finish_reason(answer.finished),
        }
