"""What the routes share: one object a server."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.requests import Request

from engine.messages import RequestClass
from ignis_desktop.server.bridge import Doorbell, EventReader, require_ready
from ignis_desktop.server.classes import split_model
from ignis_desktop.server.errors import ApiError
from ignis_desktop.server.feed import EngineFeed
from ignis_desktop.server.metrics import ServerMetrics
from ignis_desktop.server.request_log import RequestLog
from ignis_desktop.server.screens import ScreenStore
from ignis_desktop.server.settings import Settings
from ignis_desktop.server.workers import Workers
from ignis_desktop.store.files import FileDatabase
from ignis_desktop.store.responses import ResponseDatabase

if TYPE_CHECKING:
    from engine import Engine
    from ignis_desktop.server.response_reply import LiveResponse


@dataclass
class ServerState:
    engine: Engine
    settings: Settings
    log: RequestLog
    metrics: ServerMetrics
    workers: Workers
    screens: ScreenStore
    files: FileDatabase
    responses: ResponseDatabase
    feed: EngineFeed
    started: float = field(default_factory=time.time)
    readers: set[EventReader] = field(default_factory=set)
    """Of the generations that run now; touched on the loop only."""
    live_responses: dict[str, LiveResponse] = field(default_factory=dict)
    """Responses that stream now, by id; touched on the loop only."""
    doorbell: Doorbell = field(init=False)

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Bind to the loop that serves."""
        self.doorbell = Doorbell(loop)

    def end_work(self) -> None:
        """The server stops: end what runs, so that every client gets an end instead of a broken connection."""
        self.workers.close()
        self.feed.close()
        for reader in tuple(self.readers):
            reader.cancel()

    def model_for(self, name: str | None, *, any_name: bool = False) -> tuple[str, RequestClass | None]:
        """(loaded model's id, class asked for by a suffix such as ``@agent``) for the ``model`` of a request.

        Raises ``ApiError`` 503 while nothing is loaded and 404 when ``name`` is another model's, unless ``any_name``
        will do.
        """
        require_ready(self.engine)
        info = self.engine.info
        known = (info.id.casefold(), info.name.casefold())
        base, request_class = split_model(name or info.id, known)
        if any_name or self.settings.accept_any_model or base.casefold() in known:
            return info.id, request_class
        message = f"The model {base!r} is not loaded; the loaded one is {info.id!r}."
        raise ApiError(404, message, code="model_not_found", param="model")

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes a token stands for; none for ids that pad the vocabulary."""
        table = self.engine.tokenizer.token_bytes
        return table[token_id] if token_id < len(table) else b""

    @property
    def fingerprint(self) -> str:
        """Changes with the weights."""
        return f"fp_{self.engine.info.content_hash[:12]}"


def state_of(http: Request) -> ServerState:
    return http.app.state.ignis
