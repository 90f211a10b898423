"""The FastAPI application around one engine."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.middleware.cors import CORSMiddleware

from ignis_desktop.server import bodies, errors, response_body
from ignis_desktop.server.feed import EngineFeed
from ignis_desktop.server.guard import BodyLimit, HostGuard, KeyGuard, Recorder
from ignis_desktop.server.metrics import ServerMetrics
from ignis_desktop.server.request_log import RequestLog
from ignis_desktop.server.routes import (
    chat,
    completions,
    decide,
    engine,
    files,
    messages,
    models,
    responses,
    screens,
    tokens,
)
from ignis_desktop.server.screens import ScreenStore
from ignis_desktop.server.settings import Settings
from ignis_desktop.server.state import ServerState
from ignis_desktop.server.workers import Workers
from ignis_desktop.store.files import FileDatabase
from ignis_desktop.store.paths import data_path
from ignis_desktop.store.responses import ResponseDatabase

if TYPE_CHECKING:
    from engine import Engine

TITLE = "Ignis Desktop"
BODIES: list[type[bodies.Body]] = [
    chat.ChatBody,
    completions.CompletionBody,
    response_body.ResponseBody,
    response_body.ResponseInputBody,
    messages.MessagesBody,
    messages.MessagesCountBody,
    tokens.TokenizeBody,
    tokens.DetokenizeBody,
    decide.DecideBody,
    screens.ScreenBody,
    screens.PointBody,
]


def create_app(
    engine_: Engine, settings: Settings, *, log: RequestLog | None = None, token: str | None = None
) -> FastAPI:
    """The application for ``engine_``, which may still be loading.

    ``log`` receives every request; ``token`` is accepted as a key besides ``settings.api_key``.
    """
    kept = settings.data_directory or data_path()
    state = ServerState(
        engine=engine_,
        settings=settings,
        log=log or RequestLog(settings.request_log_size),
        metrics=ServerMetrics(engine_.snapshot),
        workers=Workers(),
        screens=ScreenStore(settings.max_screens),
        files=FileDatabase(kept / "uploads.sqlite", settings.max_files_bytes),
        responses=ResponseDatabase(kept / "responses.sqlite"),
        feed=EngineFeed(engine_.snapshot),
    )

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        state.attach(asyncio.get_running_loop())
        yield
        state.end_work()
        state.screens.close()
        state.files.close()
        state.responses.close()

    app = FastAPI(title=TITLE, redoc_url=None, lifespan=lifespan, separate_input_output_schemas=False)
    app.state.ignis = state
    for family in (chat, completions, responses, messages, models, tokens, files, decide, screens, engine):
        app.include_router(family.router)
    errors.install(app)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]

    # From the inside out. CORS stands outside the key: a browser's preflight carries none.
    app.add_middleware(BodyLimit, limit=settings.max_body_bytes, seconds=settings.body_seconds)
    keys = [key for key in (settings.api_key, token) if key] if settings.api_key else []
    app.add_middleware(KeyGuard, keys=keys)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=list(settings.cors_origins), allow_methods=["*"], allow_headers=["*"]
        )
    app.add_middleware(HostGuard, settings=settings)
    app.add_middleware(Recorder, log=state.log, metrics=state.metrics)
    return app


def _openapi(app: FastAPI) -> dict[str, Any]:
    """The schema, with the bodies that routes read themselves."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
        schema.setdefault("components", {}).setdefault("schemas", {}).update(bodies.schemas(BODIES))
        app.openapi_schema = schema
    return app.openapi_schema
