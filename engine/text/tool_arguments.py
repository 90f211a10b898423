"""Arguments of tool calls as JSON: texts typed by the tool's schema, calls written as one JSON object."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NAME = r"[A-Za-z0-9_.:-]{1,128}"
"""What a tool may be called."""

_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_WORDS = {"boolean": {"true": "true", "false": "false"}, "null": {"null": "null", "none": "null"}}
_JSON_TYPES: dict[type, str] = {
    str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object", type(None): "null",
}  # fmt: skip


class UnfinishedError(Exception):
    """The text ends inside a JSON string: more of it may follow."""


@dataclass(frozen=True)
class JsonCall:
    name: str
    arguments: str
    """A JSON object."""


def argument_types(schema: Mapping[str, Any], key: str) -> frozenset[str]:
    """JSON types that a tool's schema lets a parameter have; none when the schema does not say.

    Read are ``type``, ``enum``, ``const``, ``anyOf``, ``oneOf``, ``allOf`` and references within the schema.
    """
    properties = schema.get("properties")
    left: list[object] = [properties.get(key)] if isinstance(properties, Mapping) else []
    found: set[str] = set()
    followed: set[str] = set()
    while left:
        part = left.pop()
        if not isinstance(part, Mapping):
            continue
        found |= _named(part)
        left += [branch for word in ("anyOf", "oneOf", "allOf") for branch in _listed(part.get(word))]
        if isinstance(reference := part.get("$ref"), str) and reference not in followed:
            followed.add(reference)
            left.append(referred(schema, reference))
    return frozenset(found)


def _named(schema: Mapping[str, Any]) -> set[str]:
    """The types that ``type`` names, else those of the values that ``const`` and ``enum`` list."""
    named = schema.get("type")
    types = {name for name in ([named] if isinstance(named, str) else _listed(named)) if isinstance(name, str)}
    choices = [schema["const"]] if "const" in schema else _listed(schema.get("enum"))
    return types or {_JSON_TYPES[type(choice)] for choice in choices}


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def referred(root: Mapping[str, Any], reference: str) -> object:
    place: object = root
    for step in reference.removeprefix("#").split("/")[1:]:
        place = place.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(place, Mapping) else None
    return place


def argument_json(text: str, types: frozenset[str]) -> str:
    """A parameter's text as JSON of the first of ``types`` that it fits: null, object or array, text, boolean, number.

    A text that fits none stays a text: the tool can say what is wrong with it. Numbers keep their digits.
    """
    bare = text.strip()
    if "null" in types and (word := _WORDS["null"].get(bare.lower())):
        return word
    if types & {"object", "array"} and bare[:1] in ("{", "["):
        wanted = tuple(kind for kind, name in ((dict, "object"), (list, "array")) if name in types)
        if isinstance(value := _whole(bare), wanted):
            return dump(value)
    if "string" in types:
        return dump(text)
    if "boolean" in types and (word := _WORDS["boolean"].get(bare.lower())):
        return word
    if types & {"integer", "number"} and (number := _NUMBER.fullmatch(bare)):
        if "number" in types or not (number[1] or number[2]):
            return bare
        if number[1] and not number[2] and not number[1].strip(".0"):
            return bare.split(".")[0]  # an integer written as 5.0
    return dump(text)


def read_call(text: str) -> JsonCall | None:
    """The call that ``{"name": …, "arguments": {…}}`` makes; None when it is not one.

    Raises:
        UnfinishedError: it may be the beginning of one.
    """
    call = _loaded(text)
    if not isinstance(call, dict) or not isinstance(name := call.get("name"), str) or not re.fullmatch(NAME, name):
        return None
    arguments = call.get("arguments", call.get("parameters", {}))
    if isinstance(arguments, str):
        arguments = _whole(arguments)
    return JsonCall(name, dump(arguments)) if isinstance(arguments, dict) else None


_CUT = re.compile(rf'\s*\{{\s*"name"\s*:\s*"({NAME})"(?:\s*,\s*"(?:arguments|parameters)"\s*:\s*(\{{.*)?)?', re.DOTALL)


def read_cut_call(text: str) -> JsonCall | None:
    """What a call that was cut off had come to: its name, and its arguments' first part; None before its name."""
    found = _CUT.match(text)
    return JsonCall(found[1], found[2] or "") if found else None


def dump(value: object) -> str:
    """JSON text that can be sent: half a surrogate pair, which JSON may name, stays escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return re.sub(r"[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text)


def _whole(text: str) -> object:
    """The JSON value, else None."""
    try:
        return _loaded(text)
    except UnfinishedError:
        return None


def _loaded(text: str) -> object:
    """The JSON value, else None. Raw line breaks in strings are let through: models write them.

    Raises ``UnfinishedError`` inside a string.
    """
    try:
        return json.loads(text, strict=False, parse_constant=_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        if error.msg.startswith("Unterminated string"):
            raise UnfinishedError from None
        return None
    except (ValueError, RecursionError):  # a number of thousands of digits, a depth of thousands
        return None


def _finite(text: str) -> float:
    """A number beyond what programs can hold is the largest that they can."""
    return max(-sys.float_info.max, min(float(text), sys.float_info.max))


def _constant(text: str) -> float:
    raise ValueError(f"{text} is no JSON")
