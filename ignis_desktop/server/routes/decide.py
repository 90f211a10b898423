"""``POST /v1/decide`` and ``/v1/systemone``: answers read from the model without generating text."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from engine.answers.locate import locate
from engine.messages import EngineError, RequestClass
from ignis_desktop.server.bodies import ClassedBody, documented, read_body
from ignis_desktop.server.errors import ApiError
from ignis_desktop.server.evidence import Evidence
from ignis_desktop.server.guard import client_name
from ignis_desktop.server.state import ServerState, state_of

router = APIRouter(tags=["Zero-token answers"])

Kind = Literal["auto", "log", "prose", "records"]
ANSWERED = ("locate",)
MAX_QUESTIONS = 256
MAX_TOP = 5


class DecideBody(ClassedBody):
    model: str | None = None
    state: Any = Field(description="the evidence: a text, a JSON object or array, or content parts")
    questions: Annotated[dict[str, dict[str, Any]], Field(min_length=1, max_length=MAX_QUESTIONS, description="by id")]


@dataclass(frozen=True)
class LocateQuestion:
    """A checked question of type ``locate``."""

    id: str
    evidence: str | list[str]
    instructions: str
    kind: Kind
    top: int


@router.post("/v1/systemone", openapi_extra=documented(DecideBody))
@router.post("/v1/decide", openapi_extra=documented(DecideBody))
async def decide(http: Request) -> Response:
    """Zero-token answers to typed questions over one state. This version answers `locate`."""
    state = state_of(http)
    body = await read_body(http, DecideBody, status=422)
    model, suffix = state.model_for(body.model)
    evidence = Evidence(body.state, await http.body())
    questions = await state.workers.prepare(_check, state, body, evidence)
    client = client_name(http.scope)
    request_class = body.class_of(http, suffix)
    http.scope["ignis.record"].note(request_class=request_class)
    began = time.perf_counter()

    def answer_all(stop: Callable[[], bool]) -> tuple[dict[str, Any], int, int]:
        answers, tokens, cached = {}, 0, 0
        for question in questions:
            answers[question.id], used, reused = _answer(state, question, request_class, client, stop)
            tokens, cached = tokens + used, cached + reused
        return answers, tokens, cached

    answers, tokens, cached = await state.workers.answer(http, answer_all, state.settings.deadline)
    http.scope["ignis.record"].note(prompt_tokens=tokens, cached_tokens=cached)
    return JSONResponse(
        {
            "id": f"decision-{uuid.uuid4().hex}",
            "object": "decision",
            "created": int(time.time()),
            "model": model,
            "answers": answers,
            "usage": {"input_tokens": tokens, "cached_tokens": cached, "output_tokens": 0},
            "ms": round((time.perf_counter() - began) * 1000, 3),
        }
    )


def fault(question_id: str, key: str, message: str, code: str = "invalid_value") -> ApiError:
    """A caller's fault in one question: the whole request is refused before any work."""
    return ApiError(
        422,
        f"Question {question_id!r}: {message}",
        code=code,
        param=f"questions.{question_id}.{key}",
        extra={"question": question_id},
    )


def _check(state: ServerState, body: DecideBody, evidence: Evidence) -> list[LocateQuestion]:
    """All questions, checked. Raises ``ApiError`` 422 for the first that cannot be answered."""
    for question_id, question in body.questions.items():
        if question.get("type") not in ANSWERED:
            raise fault(
                question_id,
                "type",
                f"type {question.get('type')!r} is not answered by this version; it answers {', '.join(ANSWERED)}.",
                "unsupported_question_type",
            )
    if not state.engine.info.locate:
        message = f"{state.engine.info.name} has no heads for locating, so it cannot answer locate questions."
        raise ApiError(422, message, code="locate_not_supported", param="model")
    return [_locate_question(evidence, *item) for item in body.questions.items()]


def _locate_question(evidence: Evidence, question_id: str, question: dict[str, Any]) -> LocateQuestion:
    key = "instructions" if "instructions" in question else "question"
    instructions = question.get(key)
    if not isinstance(instructions, str) or not instructions.strip():
        raise fault(question_id, key, "instructions must say in words what to find.")
    kind = question.get("kind", "auto")
    if kind not in get_args(Kind):
        raise fault(question_id, "kind", f"kind must be one of {', '.join(get_args(Kind))}, not {kind!r}.")
    top = question.get("top", MAX_TOP)
    if not isinstance(top, int) or isinstance(top, bool) or not 1 <= top <= MAX_TOP:
        raise fault(question_id, "top", f"top must be a whole number from 1 to {MAX_TOP}, not {top!r}.")
    within = question.get("within")
    if within is not None and not isinstance(within, str):
        raise fault(question_id, "within", "within must be a JSON pointer, for instance /items.")
    try:
        found = evidence.read(within)
    except ValueError as error:
        raise fault(question_id, "state" if within is None else "within", str(error)) from None
    return LocateQuestion(question_id, found, instructions.strip(), kind, top)


def _answer(
    state: ServerState, question: LocateQuestion, request_class: RequestClass, client: str, stop: Callable[[], bool]
) -> tuple[dict[str, Any], int, int]:
    """(answer, prompt tokens, of them cached). A fault at run time is this question's answer, not the request's."""
    began = time.perf_counter()
    try:
        found = locate(
            state.engine,
            question.evidence,
            question.instructions,
            kind=question.kind,
            top=question.top,
            request_class=request_class,
            client=client,
            cancelled=stop,
        )
    except EngineError as error:
        if stop():
            raise
        return ApiError.of(error).body(), 0, 0
    state.metrics.observe_answer("locate", found.found, time.perf_counter() - began)
    answer = {
        "type": "locate",
        "found": found.found,
        "segment": found.segment,
        "line": found.line,
        "value": found.value,
        "confidence": found.confidence,
        "ranking": [
            {"segment": rank.segment, "line": rank.line, "value": rank.value, "confidence": rank.confidence}
            for rank in found.ranking
        ],
        "timing_ms": {stage: round(ms, 3) for stage, ms in found.timing_ms.items()},
    }
    return answer, found.input_tokens, found.cached_tokens
