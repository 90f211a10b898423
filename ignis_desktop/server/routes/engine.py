"""What the panels show and do, for scripts and monitors: ``/v1/engine``, ``/health``, ``/metrics``."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from ignis_desktop.server.errors import ApiError
from ignis_desktop.server.snapshot_json import snapshot_bytes
from ignis_desktop.server.sse import EventStreamResponse
from ignis_desktop.server.state import ServerState, state_of

router = APIRouter(tags=["Engine"])


@router.get("/v1/engine")
async def engine(http: Request) -> Response:
    """State, lanes, what waits and what is parked, pages, reuse, memory plan and rates."""
    return Response(snapshot_bytes(state_of(http).engine.snapshot()), media_type="application/json")


@router.get("/v1/engine/events")
async def events(http: Request) -> Response:
    """The same as server-sent events: `snapshot` now and whenever something has changed, at most 30 a second."""
    listener = state_of(http).feed.listen(http)
    return EventStreamResponse(listener.frames(), listener)


@router.post("/v1/engine/requests/{request_id}/cancel")
async def cancel(request_id: str, http: Request) -> dict[str, Any]:
    """End a request that waits, runs or is parked; it ends within one round."""
    state = state_of(http)
    _require_known(state, request_id)
    state.engine.cancel(request_id)
    return {"id": request_id, "object": "engine.request", "cancelled": True}


@router.post("/v1/engine/requests/{request_id}/park")
async def park(request_id: str, http: Request) -> dict[str, Any]:
    """Make a running request of class agent give up its lane to whoever waits; it goes on by itself later."""
    state = state_of(http)
    _require_known(state, request_id)
    state.engine.park(request_id)
    return {"id": request_id, "object": "engine.request", "parked": True}


def _require_known(state: ServerState, request_id: str) -> None:
    """Raises ``ApiError`` 404 unless the engine's newest snapshot shows the request."""
    now = state.engine.snapshot()
    known = {request.request_id for request in (*now.lanes, *now.parked)} | {one.request_id for one in now.waiting}
    if request_id not in known:
        raise ApiError(
            404,
            f"There is no request {request_id[:80]!r}: it has ended, or never was. GET /v1/engine shows all there are.",
            code="request_not_found",
            param="id",
        )


@router.get("/health")
async def health(http: Request) -> Response:
    """200 when requests are served; 503 with the state when not (yet)."""
    now = state_of(http).engine.snapshot()
    body: dict[str, Any] = {"status": "ok" if now.state == "ready" else "unavailable", "state": now.state}
    if now.state == "ready":
        return JSONResponse({**body, "model": now.model_id})
    body |= {"reason": now.reason, "progress": now.progress}
    return JSONResponse(body, 503, {"retry-after": "2"} if now.state in ("empty", "planning", "loading") else None)


@router.get("/metrics")
async def metrics(http: Request) -> Response:
    """Prometheus text format."""
    state = state_of(http)
    return Response(state.metrics.render(), headers={"content-type": state.metrics.content_type})
