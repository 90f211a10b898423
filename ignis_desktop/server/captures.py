"""Screenshots that the server takes itself, and who may have them taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request

from ignis_desktop.capture.grabbing import CaptureError, Shot, choose_grabber, target_of
from ignis_desktop.server.errors import ApiError
from ignis_desktop.server.guard import header
from ignis_desktop.server.state import ServerState

_STATUS = {
    "invalid_value": 400,
    "monitor_not_found": 404,
    "window_not_found": 404,
    "outside_the_desktop": 400,
    "capture_refused": 403,
}
"""Others are the machine's fault: it cannot be captured now (503)."""


def require_capture(state: ServerState, http: Request) -> None:
    """Raises ``ApiError`` 403 unless this client may see the screen.

    Programs on this machine may, since they could capture it themselves, and whoever has the key. A web page could
    not: one that CORS lets in needs the key too.
    """
    settings = state.settings
    if not settings.capture:
        raise _refused("Captures are switched off on this server (Server panel, or serve --capture); send an image.")
    origin = header(http.scope, b"origin")
    foreign = origin is not None and urlsplit(origin).netloc != header(http.scope, b"host")
    if settings.api_key is None and (foreign or not settings.is_loopback):
        raise _refused("A web page may have the screen captured only with an API key; set one for this server.")


def capture(raw: Mapping[str, Any], stop: Callable[[], bool]) -> Shot:
    """Capture what a request names. Takes a while: call it off the event loop. Raises ``ApiError``."""
    try:
        return choose_grabber(cancelled=stop).grab(target_of(raw))
    except CaptureError as error:
        status = _STATUS.get(error.code, 503)
        raise ApiError(status, error.message, code=error.code, param="capture") from error


def _refused(message: str) -> ApiError:
    return ApiError(403, message, code="capture_not_allowed", param="capture")
