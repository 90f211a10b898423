"""Screenshots: encoded once, asked many times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from engine.answers.point import PointAnswer, Screen
from engine.messages import EngineError, RequestClass
from ignis_desktop.capture.coordinates import CoordinateError, CoordinateMap
from ignis_desktop.server.bodies import ClassedBody, documented, read_body
from ignis_desktop.server.captures import capture, require_capture
from ignis_desktop.server.errors import ApiError, bad_request
from ignis_desktop.server.guard import client_name
from ignis_desktop.server.images import Picture, decode_picture
from ignis_desktop.server.places import box_pixels, desktop_box, place_json
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
    box: bool = Field(False, description="also how far the thing goes")


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
    _, suffix = state.model_for(body.model)
    stored = state.screens.get(screen_id)
    questions = body.questions or [body.question or ""]
    asker = Asker.of(http, body, suffix)

    def ask(stop: Callable[[], bool]) -> list[dict[str, Any]]:
        return _points(state, stored, questions, body.box, asker, stop)

    answers = await state.workers.answer(http, ask, state.settings.deadline)
    return JSONResponse(answers[0] if body.questions is None else {"answers": answers})


def require_pointing(state: ServerState) -> None:
    """Raises ``ApiError`` 400 when the loaded model cannot point."""
    if not state.engine.info.point:
        message = f"{state.engine.info.name} has no pointing heads, so it cannot find things on screens."
        raise ApiError(400, message, code="pointing_not_supported", param="model")


def _encode(state: ServerState, body: ScreenBody, asker: Asker, stop: Callable[[], bool]) -> StoredScreen:
    if body.capture is not None:
        shot = capture(body.capture, stop)
        picture, coordinates = Picture(shot.image, state.engine.prepare_image(shot.image)), shot.coordinates
    else:
        picture = decode_picture(state.engine, body.image or "", "image")
        coordinates = CoordinateMap.identity(*picture.source.size)
    width, height = picture.source.size
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
    opened = Screen.open(
        state.engine,
        picture.image,
        source=picture.source,
        request_class=asker.request_class,
        client=asker.client,
        cancelled=stop,
    )
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


def _points(
    state: ServerState,
    stored: StoredScreen,
    questions: list[str],
    box: bool,
    asker: Asker,
    stop: Callable[[], bool],
) -> list[dict[str, Any]]:
    """A fault is its question's answer where there are others that have none."""
    screen = stored.screen
    found = screen.points(questions, request_class=asker.request_class, client=asker.client, cancelled=stop)
    faults = [answer for answer in found if isinstance(answer, EngineError)]
    if len(faults) == len(found):
        raise faults[0]
    stored.questions += len(found)
    return [
        ApiError.of(answer).body() if isinstance(answer, EngineError) else _answer_json(state, stored, answer, box)
        for answer in found
    ]


def _answer_json(state: ServerState, stored: StoredScreen, answer: PointAnswer, box: bool) -> dict[str, Any]:
    state.metrics.observe_answer("point", answer.found, answer.ms / 1000)
    coordinates, screen = stored.coordinates, stored.screen
    body = place_json(answer, screen.width, screen.height)
    body["desktop"] = list(coordinates.desktop_pixel(*answer.pixels))
    if box:
        body["box"] = box_pixels(answer, screen.width, screen.height)
        body["desktop_box"] = desktop_box(body["box"], coordinates)
    return body
