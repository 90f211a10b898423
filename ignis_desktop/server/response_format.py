"""``response_format``: what an answer's text must be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ignis_desktop.server.errors import bad_request

JSON_OBJECT: Mapping[str, Any] = {"type": "object"}


def asked_schema(form: Mapping[str, Any] | None, where: str = "response_format") -> Mapping[str, Any] | None:
    """The JSON schema that the text fits; None leaves it free.

    Raises ``ApiError`` 400 for a format that means nothing.
    """
    kind = "text" if form is None else form.get("type")
    if form is None or kind == "text":
        return None
    if kind == "json_object":
        return JSON_OBJECT
    if kind != "json_schema":
        raise bad_request(f"{where}.type: text, json_object or json_schema, not {kind!r}.", f"{where}.type")
    holder = form.get("json_schema")
    schema = holder.get("schema") if isinstance(holder, dict) else None
    if not isinstance(schema, dict):
        place = f"{where}.json_schema.schema"
        raise bad_request(f"{place}: a format of type json_schema has a schema, an object.", place)
    return schema
