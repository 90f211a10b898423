"""``POST /v1/decide`` and ``/v1/systemone``: answers read from the model without generating text."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from engine import Engine
from engine.answers.decide import Answer, Choice, Multi, Noul, Number, Place, Score, decide, located
from engine.answers.decide.prompts import State
from engine.answers.locate import locate
from engine.answers.point import Screen
from engine.messages import EngineError, RequestClass
from ignis_desktop.server.bodies import ClassedBody, documented, read_body
from ignis_desktop.server.errors import ApiError
from ignis_desktop.server.evidence import Evidence
from ignis_desktop.server.guard import client_name
from ignis_desktop.server.images import Picture, decode_picture
from ignis_desktop.server.locate_json import locate_json
from ignis_desktop.server.places import Placed, box_pixels, chained, place_json
from ignis_desktop.server.questions import Checked, LabelQuestion, LocateQuestion, PointQuestion, check, fault
from ignis_desktop.server.state import state_of

router = APIRouter(tags=["Zero-token answers"])

MAX_QUESTIONS = 256
LIKELY = 0.5
"""An option of a multi question is chosen from this probability on."""


class DecideBody(ClassedBody):
    model: str | None = None
    state: Any = Field(description="the evidence: a text, a JSON object or array, or content parts")
    questions: Annotated[dict[str, dict[str, Any]], Field(min_length=1, max_length=MAX_QUESTIONS, description="by id")]


@router.post("/v1/systemone", openapi_extra=documented(DecideBody))
@router.post("/v1/decide", openapi_extra=documented(DecideBody))
async def decide_route(http: Request) -> Response:
    """Zero-token answers to typed questions over one state."""
    state = state_of(http)
    body = await read_body(http, DecideBody, status=422)
    model, suffix = state.model_for(body.model)
    evidence = Evidence(body.state, await http.body())
    questions, pictures = await state.workers.prepare(check_all, state.engine, body.questions, evidence)
    request_class = body.class_of(http, suffix)
    http.scope["ignis.record"].note(request_class=request_class)
    began = time.perf_counter()

    def answer_all(stop: Callable[[], bool]) -> Answers:
        answers = Answers(
            state.engine,
            evidence,
            pictures,
            request_class,
            client_name(http.scope),
            stop,
            state.metrics.observe_answer,
        )
        answers.answer(questions)
        return answers

    found = await state.workers.answer(http, answer_all, state.settings.deadline)
    http.scope["ignis.record"].note(
        prompt_tokens=found.input_tokens, cached_tokens=found.cached_tokens, output_tokens=found.output_tokens
    )
    return JSONResponse(
        {
            "id": f"decision-{uuid.uuid4().hex}",
            "object": "decision",
            "created": int(time.time()),
            "model": model,
            "answers": {question.id: found.answers[question.id] for question in questions},
            "usage": {
                "input_tokens": found.input_tokens,
                "cached_tokens": found.cached_tokens,
                "output_tokens": found.output_tokens,
            },
            "ms": round((time.perf_counter() - began) * 1000, 3),
        }
    )


def check_all(
    engine: Engine, asked: Mapping[str, Mapping[str, Any]], evidence: Evidence
) -> tuple[list[Checked], dict[int, Picture]]:
    """All questions, checked, and the pictures that they are about, by number. Raises ``ApiError`` 422 for the first
    that cannot be answered."""
    questions = [check(evidence, *item) for item in asked.items()]
    info = engine.info
    for question in questions:
        if isinstance(question, LocateQuestion) and not info.locate:
            message = f"{info.name} has no heads for locating, so it cannot answer locate questions."
            raise fault(question.id, "type", message, "locate_not_supported")
        if isinstance(question, PointQuestion) and not question.chain and not info.point:
            message = f"{info.name} has no pointing heads, so it finds things on pictures by method chain alone."
            raise fault(question.id, "type", message, "pointing_not_supported")
    wanted = {question.image for question in questions if isinstance(question, PointQuestion)}
    if any(isinstance(question, LabelQuestion) and question.within is None for question in questions):
        wanted.update(range(len(evidence.images)))
    try:
        return questions, {i: decode_picture(engine, evidence.images[i], "state") for i in sorted(wanted)}
    except ApiError as error:
        raise ApiError(422, error.message, code=error.code, param=error.param) from None


@dataclass
class Answers:
    """Answers a request's questions in the caller's thread. A fault at run time is its question's answer, not the
    request's."""

    engine: Engine
    evidence: Evidence
    pictures: dict[int, Picture]
    request_class: RequestClass
    client: str
    stop: Callable[[], bool]
    observe: Callable[[str, bool, float], None] | None = None
    """Called with a question's type, whether something was found, and seconds."""
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0

    def answer(self, questions: list[Checked]) -> None:
        labelled: dict[str | None, list[LabelQuestion]] = {}
        for question in questions:
            if isinstance(question, LabelQuestion):
                labelled.setdefault(question.within, []).append(question)
        for within, group in labelled.items():
            self._guarded([question.id for question in group], partial(self._decide, within, group))
        pictures: dict[int, list[PointQuestion]] = {}
        for question in questions:
            if isinstance(question, LocateQuestion):
                self._guarded([question.id], partial(self._locate, question))
            elif isinstance(question, PointQuestion) and question.chain:
                self._guarded([question.id], partial(self._chain, question))
            elif isinstance(question, PointQuestion):
                pictures.setdefault(question.image, []).append(question)
        for image, asked in pictures.items():
            self._guarded([question.id for question in asked], partial(self._point, image, asked))

    def _observe(self, kind: str, found: bool, seconds: float) -> None:
        if self.observe is not None:
            self.observe(kind, found, seconds)

    def _guarded(self, ids: list[str], work: Callable[[], None]) -> None:
        try:
            work()
        except EngineError as error:
            if self.stop():
                raise
            for question in ids:
                self.answers.setdefault(question, ApiError.of(error).body())

    def _decide(self, within: str | None, questions: list[LabelQuestion]) -> None:
        decision = decide(
            self.engine,
            self._label_state(within),
            [question.asked for question in questions],
            request_class=self.request_class,
            client=self.client,
            cancelled=self.stop,
        )
        self.input_tokens += decision.input_tokens
        self.cached_tokens += decision.cached_tokens
        self.output_tokens += decision.output_tokens
        for question in questions:
            answer = decision.answers[question.id]
            if isinstance(answer, EngineError):
                self.answers[question.id] = ApiError.of(answer).body()
            else:
                self._observe(question.type, True, decision.seconds / len(questions))
                self.answers[question.id] = _label_json(question, answer)

    def _label_state(self, within: str | None) -> State:
        if within is None and self.evidence.images:
            return [
                {"type": "image", "image": self.pictures[part].image}
                if isinstance(part, int)
                else {"type": "text", "text": part}
                for part in self.evidence.parts
            ]
        found = self.evidence.read(within)
        return found if isinstance(found, str) else "\n".join(found)

    def _locate(self, question: LocateQuestion) -> None:
        began = time.perf_counter()
        found = locate(
            self.engine,
            question.evidence,
            question.instructions,
            kind=question.kind,
            top=question.top,
            request_class=self.request_class,
            client=self.client,
            cancelled=self.stop,
        )
        self._observe("locate", found.found, time.perf_counter() - began)
        self.input_tokens += found.input_tokens
        self.cached_tokens += found.cached_tokens
        self.answers[question.id] = locate_json(found, question.within)

    def _point(self, image: int, questions: list[PointQuestion]) -> None:
        picture = self.pictures[image]
        screen = Screen.open(
            self.engine,
            picture.image,
            source=picture.source,
            request_class=self.request_class,
            client=self.client,
            cancelled=self.stop,
        )
        self.input_tokens += screen.input_tokens
        try:
            texts = [question.instructions for question in questions]
            found = screen.points(texts, request_class=self.request_class, client=self.client, cancelled=self.stop)
        finally:
            screen.close()
        for question, answer in zip(questions, found, strict=True):
            if isinstance(answer, EngineError):
                self.answers[question.id] = ApiError.of(answer).body()
                continue
            self._observe("point", answer.found, answer.ms / 1000)
            self.input_tokens += answer.input_tokens
            self.cached_tokens += answer.cached_tokens
            self.answers[question.id] = _place_json(question, answer, screen.width, screen.height)

    def _chain(self, question: PointQuestion) -> None:
        began = time.perf_counter()
        image = self.pictures[question.image].image
        decision = decide(
            self.engine,
            [{"type": "image", "image": image}],
            [Place(question.id, question.instructions, question.box)],
            request_class=self.request_class,
            client=self.client,
            cancelled=self.stop,
        )
        self.input_tokens += decision.input_tokens
        self.cached_tokens += decision.cached_tokens
        self.output_tokens += decision.output_tokens
        answer = decision.answers[question.id]
        if isinstance(answer, EngineError):
            raise answer
        seconds = time.perf_counter() - began
        self._observe("point", True, seconds)
        place = chained(located(answer.probabilities), *image.original_size, ms=seconds * 1000)
        self.answers[question.id] = _place_json(question, place, *image.original_size)


def _place_json(question: PointQuestion, answer: Placed, width: int, height: int) -> dict[str, Any]:
    box = box_pixels(answer, width, height)
    place = place_json(answer, width, height)
    if not question.box:
        return {"type": "point", **place, "region": box}
    edges = dict(zip(("x0", "y0", "x1", "y1"), box, strict=True))
    sides = (width, height) * 2
    shares = [round(edge / side, 6) for edge, side in zip(box, sides, strict=True)]
    return {"type": "box", **edges, **place, "normalized": shares}


def _label_json(question: LabelQuestion, answer: Answer) -> dict[str, Any]:
    asked, shares = question.asked, answer.probabilities
    body: dict[str, Any] = {"type": question.type}
    if isinstance(asked, Noul):
        body["noul"] = float(shares[0])
    elif isinstance(asked, Number):
        body["value"] = answer.value if asked.fraction else int(answer.value or 0)
        body["uncertainty"] = answer.uncertainty
        body["digits"] = shares.tolist()
    else:
        named = dict(zip(asked.names, shares.tolist(), strict=True))
        if isinstance(asked, Multi):
            body["chosen"] = [name for name, share in named.items() if share >= LIKELY]
        elif isinstance(asked, Score):
            body["score"] = answer.value
            body["level"] = asked.names[answer.best]
        elif isinstance(asked, Choice):
            body["choice"] = asked.names[answer.best]
        body["probabilities"] = named
        if not isinstance(asked, Multi):
            body["confidence"] = float(shares.max())
    body["label_mass"] = answer.mass
    return body
