"""A snapshot of the engine as JSON: the body of ``GET /v1/engine`` and of every event of ``/v1/engine/events``."""

from __future__ import annotations

import base64
import json
from typing import Any

from engine.messages import EngineSnapshot, LaneSnapshot, MemoryPlan, WaitingSnapshot


def snapshot_bytes(now: EngineSnapshot) -> bytes:
    """The body in UTF-8, on one line. The same content gives the same bytes."""
    return json.dumps(engine_json(now), ensure_ascii=False, separators=(",", ":")).encode()


def engine_json(now: EngineSnapshot) -> dict[str, Any]:
    """Keys may be added, none is ever renamed. ``EngineSnapshot.time`` is left out: its clock is this process's own."""
    return {
        "state": now.state,
        "reason": now.reason,
        "progress": now.progress,
        "model": now.model,
        "model_id": now.model_id,
        "device": now.device,
        "context_length": now.context_length,
        "lanes": [_request_json(lane) for lane in now.lanes],
        "parked": [_request_json(lane) for lane in now.parked],
        "queue": {
            "interactive": now.queued_interactive,
            "agent": now.queued_agent,
            "total": now.queued_interactive + now.queued_agent,
        },
        "waiting": [_request_json(waiting) for waiting in now.waiting],
        "memory_plan": None if now.memory_plan is None else _plan_json(now.memory_plan),
        "pages": {
            "total": now.pages_total,
            "free": now.pages_free,
            "map": base64.b64encode(now.page_map).decode(),
        },
        "retained": now.retained,
        "reuse": vars(now.reuse),
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


def _request_json(request: LaneSnapshot | WaitingSnapshot) -> dict[str, Any]:
    body = dict(vars(request))
    body["class"] = body.pop("request_class")
    return body


def _plan_json(plan: MemoryPlan) -> dict[str, Any]:
    return {**vars(plan), "lines": [vars(line) for line in plan.lines]}
