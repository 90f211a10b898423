"""Request bodies: read, parsed and checked without holding up the event loop."""

from __future__ import annotations

import json
import logging
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.messages import RequestClass
from ignis_desktop.server.classes import as_class
from ignis_desktop.server.errors import ApiError, bad_request, describe_validation
from ignis_desktop.server.state import state_of

logger = logging.getLogger(__name__)

INLINE_BYTES = 16 * 2**10
"""Up to this size parsing takes well under a millisecond and is done on the loop."""


class Body(BaseModel):
    """A JSON body. Unknown keys are kept aside, not refused: clients send more than any one server knows."""

    model_config = ConfigDict(strict=True, extra="allow")


class ClassedBody(Body):
    """A body that may say how urgent its work is."""

    request_class: str | None = Field(None, alias="class", description="interactive (default) or agent")

    def class_of(self, http: Request, suffix: RequestClass | None = None) -> RequestClass:
        """The body's ``class``, else the model name's suffix, else the ``X-Ignis-Class`` header, else interactive.

        The first of them that is there counts, also when it holds a word that means nothing here.
        """
        return as_class(self.request_class or suffix or http.headers.get("x-ignis-class", ""))


B = TypeVar("B", bound=Body)


async def read_body(http: Request, kind: type[B], status: int = 400) -> B:
    """The request's body as ``kind``; raises ``ApiError`` 400 when it is not JSON, ``status`` when it does not fit."""
    raw = await http.body()
    if len(raw) <= INLINE_BYTES:
        return _parse(raw, kind, status)
    return await state_of(http).workers.prepare(_parse, raw, kind, status)


def _parse(raw: bytes, kind: type[B], status: int) -> B:
    try:
        body = kind.model_validate_json(raw)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=False, include_input=False)
        message, param = describe_validation(errors)
        if errors[0]["type"] == "json_invalid":
            raise bad_request(f"The body is not valid JSON: {message.removeprefix('Invalid JSON: ')}.") from None
        raise ApiError(status, message, code="invalid_value", param=param) from None
    if body.model_extra:
        names = ", ".join(sorted(name[:40] for name in body.model_extra)[:20])
        logger.info("Parameters that %s does not know are ignored: %r", kind.__name__, names)
    return body


def documented(kind: type[Body]) -> dict[str, Any]:
    """The ``openapi_extra`` of a route that reads its body through ``read_body``."""
    return {
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{kind.__name__}"}}},
        }
    }


def schemas(kinds: list[type[Body]]) -> dict[str, Any]:
    """OpenAPI component schemas of the given bodies and of what they contain."""
    found: dict[str, Any] = {}
    for kind in kinds:
        schema = json.loads(json.dumps(kind.model_json_schema(ref_template="#/components/schemas/{model}")))
        found.update(schema.pop("$defs", {}))
        found[kind.__name__] = schema
    return found
