"""``GET /v1/models``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request

from ignis_desktop.server.errors import is_anthropic
from ignis_desktop.server.state import ServerState, state_of

router = APIRouter(tags=["OpenAI"])


@router.get("/v1/models")
async def models(http: Request) -> dict[str, Any]:
    """The loaded model."""
    state = state_of(http)
    model, _ = state.model_for(None)
    ends = {"has_more": False, "first_id": model, "last_id": model}
    return {"object": "list", "data": [_model_json(http, state, model)], **ends}


@router.get("/v1/models/{model_id:path}")
async def model(model_id: str, http: Request) -> dict[str, Any]:
    """One model, also by its name or with a class suffix (`ember@agent`)."""
    state = state_of(http)
    state.model_for(model_id)
    return _model_json(http, state, model_id)


def _model_json(http: Request, state: ServerState, model_id: str) -> dict[str, Any]:
    """The model as the client's kind of API describes it."""
    info = state.engine.info
    if is_anthropic(http.scope):
        return {
            "id": model_id,
            "type": "model",
            "display_name": info.name,
            "created_at": datetime.fromtimestamp(int(state.started), UTC).isoformat(),
            "max_input_tokens": info.context_length,
            "max_tokens": info.context_length,
        }
    return {
        "id": model_id,
        "object": "model",
        "created": int(state.started),
        "owned_by": "ignis",
        "name": info.name,
        "context_length": info.context_length,
        "max_model_len": info.context_length,
        "parameters": info.parameters,
        "capabilities": {
            "vision": info.vision,
            "thinking": info.thinking,
            "locate": info.locate,
            "point": info.point,
            "tools": state.engine.loaded.template.takes_tools,
        },
        "formats": dict(info.formats),
    }
