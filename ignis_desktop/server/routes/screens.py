"""Screenshots: encoded once, asked many times."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from engine.answers.point import Screen
from engine.messages import RequestClass
from ignis_desktop.capture.coordinates import CoordinateError, CoordinateMap
from ignis_desktop.server.bodies import ClassedBody, documented, read_body
from ignis_desktop.server.captures import capture, require_capture
from ignis_desktop.server.errors import ApiError, bad_request
from ignis_desktop.server.guard import client_name
from ignis_desktop.server.images import decode_image
from ignis_desktop.server.screens import StoredScreen
from ignis_desktop.server.state import ServerState, state_of

router = APIRouter(tags=["Screens"])

MAX_QUESTIONS = 256

Question = Annotated[str, Field(min_length=1, max_length=4096)]


class ScreenBody(ClassedBody):
    model: str | None = None
    image: str | None = Field(None, description="the screenshot as a data URI")
    capture: dict[str, Any] | None = Field(
        None,
        description='take the screenshot here: {"monitor": 1} (0 is all), {"region": [x, y, width, height]} in desktop '
        'pixels, or {"window": "part of its title"}',
    )
    coordinate_map: dict[str, Any] | None = Field(
        None, description="where the image lies on the desktop, as returned by this route; default: at its origin"
    )


class PointBody(ClassedBody):
    model: str | None = None
    question: Question | None = None
    questions: Annotated[list[Question], Field(min_length=1, max_length=MAX_QUESTIONS)] | None = None
    box: bool = False


@dataclass(frozen=True)
class Asker:
    """Who asks, for the engine's queue and panels."""

    client: str
    request_class: RequestClass

    @classmethod
    def of(cls, http: Request, body: ClassedBody, suffix: RequestClass | None) -> Asker:
        asker = cls(client_name(http.scope), body.class_of(http, suffix))
        http.scope["ignis.record"].note(request_class=asker.request_class)
        return asker


@router.post("/v1/screens", status_code=201, openapi_extra=documented(ScreenBody))
async def add_screen(http: Request) -> Response:
    """Encode a screenshot and keep it."""
    state = state_of(http)
    body = await read_body(http, ScreenBody)
    _, suffix = state.model_for(body.model)
    if (body.image is None) == (body.capture is None):
        raise bad_request(
            "image: send the screenshot as a data URI (data:image/png;base64,…), or let the server take it (capture), "
            "one of the two.",
            "image",
        )
    if body.capture is not None:
        require_capture(state, http)
    require_pointing(state)
    asker = Asker.of(http, body, suffix)
    stored = await state.workers.answer(http, lambda stop: _encode(state, body, asker, stop), state.settings.deadline)
    return JSONResponse(_screen_json(stored), 201)


@router.get("/v1/screens/{screen_id}")
async def screen(screen_id: str, http: Request) -> dict[str, Any]:
    """A screenshot that is kept."""
    return _screen_json(state_of(http).screens.get(screen_id))


@router.delete("/v1/screens/{screen_id}")
async def delete_screen(screen_id: str, http: Request) -> dict[str, Any]:
    """Drop a screenshot and free its memory."""
    state_of(http).screens.remove(screen_id)
    return {"id": screen_id, "object": "screen", "deleted": True}


@router.post("/v1/screens/{screen_id}/point", openapi_extra=documented(PointBody))
async def point(screen_id: str, http: Request) -> Response:
    """Where something is on a screenshot."""
    state = state_of(http)
    body = await read_body(http, PointBody)
    if (body.question is None) == (body.questions is None):
        raise bad_request("Send either question (a text) or questions (a list).", "question")
    if body.box:
        raise bad_request("box: this version answers with points only; leave box out.", "box", "box_not_supported")
    _, suffix = state.model_for(body.model)
    stored = state.screens.get(screen_id)
    questions = body.questions or [body.question or ""]
    asker = Asker.of(http, body, suffix)

    def ask(stop: Callable[[], bool]) -> list[dict[str, Any]]:
        return [_point(state, stored, question, asker, stop) for question in questions]

    answers = await state.workers.answer(http, ask, state.settings.deadline)
    return JSONResponse(answers[0] if body.questions is None else {"answers": answers})


def require_pointing(state: ServerState) -> None:
    """Raises ``ApiError`` 400 when the loaded model cannot point."""
    if not state.engine.info.point:
        message = f"{state.engine.info.name} has no pointing heads, so it cannot find things on screens."
        raise ApiError(400, message, code="pointing_not_supported", param="model")


def _encode(state: ServerState, body: ScreenBody, asker: Asker, stop: Callable[[], bool]) -> StoredScreen:
    if body.capture is not None:
        shot = capture(body.capture)
        picture, coordinates = state.engine.prepare_image(shot.image), shot.coordinates
    else:
        picture = decode_image(state.engine, body.image or "", "image")
        coordinates = CoordinateMap.identity(*picture.original_size)
    width, height = picture.original_size
    if body.coordinate_map is not None:
        try:
            coordinates = CoordinateMap.from_json(body.coordinate_map)
        except CoordinateError as error:
            raise bad_request(f"coordinate_map: {error}", "coordinate_map") from None
        if (coordinates.width, coordinates.height) != (width, height):
            raise bad_request(
                f"coordinate_map: it is for {coordinates.width}×{coordinates.height} pixels, the image has "
                f"{width}×{height}.",
                "coordinate_map",
            )
    opened = Screen.open(state.engine, picture, request_class=asker.request_class, client=asker.client, cancelled=stop)
    stored = StoredScreen(opened, coordinates)
    state.screens.add(stored)
    return stored


def _screen_json(stored: StoredScreen) -> dict[str, Any]:
    screen = stored.screen
    return {
        "id": screen.id,
        "object": "screen",
        "created": int(stored.created),
        "width": screen.width,
        "height": screen.height,
        "coordinate_map": stored.coordinates.to_json(),
        "encode_ms": round(screen.encode_ms, 3),
        "questions": stored.questions,
    }


def _point(
    state: ServerState, stored: StoredScreen, question: str, asker: Asker, stop: Callable[[], bool]
) -> dict[str, Any]:
    began = time.perf_counter()
    answer = stored.screen.point(question, request_class=asker.request_class, client=asker.client, cancelled=stop)
    stored.questions += 1
    state.metrics.observe_answer("point", answer.found, time.perf_counter() - began)
    coordinates = stored.coordinates
    x, y = answer.pixels
    return {
        "found": answer.found,
        # The pixel that covers the point; a point on the far edge belongs to the last one.
        "pixels": [min(int(x), coordinates.width - 1), min(int(y), coordinates.height - 1)],
        "desktop": list(coordinates.desktop_pixel(x, y)),
        "normalized": [round(part, 6) for part in answer.normalized],
        "confidence": answer.confidence,
        "uncertainty": answer.uncertainty,
        "ms": round(answer.ms, 3),
    }
