"""What the panels show, for scripts and monitors: ``/v1/engine``, ``/health``, ``/metrics``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from engine.messages import EngineSnapshot, LaneSnapshot, MemoryPlan
from ignis_desktop.server.state import state_of

router = APIRouter(tags=["Engine"])


@router.get("/v1/engine")
async def engine(http: Request) -> dict[str, Any]:
    """State, lanes, queue, memory plan and rates."""
    return engine_json(state_of(http).engine.snapshot())


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


def engine_json(now: EngineSnapshot) -> dict[str, Any]:
    """A snapshot in the shape of `GET /v1/engine`."""
    return {
        "state": now.state,
        "reason": now.reason,
        "progress": now.progress,
        "model": now.model,
        "model_id": now.model_id,
        "device": now.device,
        "context_length": now.context_length,
        "lanes": [_lane_json(lane) for lane in now.lanes],
        "queue": {
            "interactive": now.queued_interactive,
            "agent": now.queued_agent,
            "total": now.queued_interactive + now.queued_agent,
        },
        "memory_plan": None if now.memory_plan is None else _plan_json(now.memory_plan),
        "pages": {"total": now.pages_total, "free": now.pages_free},
        "retained": now.retained,
        "rates": {
            "decode_tokens_per_second": now.decode_tokens_per_second,
            "prefill_tokens_per_second": now.prefill_tokens_per_second,
        },
        "counters": {
            "rounds": now.rounds,
            "tokens_generated": now.tokens_generated,
            "tokens_prefilled": now.tokens_prefilled,
            "requests_finished": now.requests_finished,
            "requests_failed": now.requests_failed,
            "requests_cancelled": now.requests_cancelled,
        },
        "resident_bytes": now.resident_bytes,
    }


def _lane_json(lane: LaneSnapshot) -> dict[str, Any]:
    body = asdict(lane)
    body["class"] = body.pop("request_class")
    return body


def _plan_json(plan: MemoryPlan) -> dict[str, Any]:
    return asdict(plan)
