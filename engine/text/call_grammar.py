"""Grammars of tool calls in the forms that ``tool_calls`` reads.

Written as JSON, arguments fit the tool's schema as a whole. Written as parameters in plain text, each parameter fits
its own: texts stand as they are, everything else is JSON. What that form cannot express is refused by its keyword.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from engine.messages import RequestError
from engine.text.lark import Rules, json_value, literal
from engine.text.tool_arguments import argument_types, referred
from engine.text.tool_calls import CALL, CALL_END, FUNCTION, FUNCTION_END, KEY, PARAMETER, PARAMETER_END

CallForm = Literal["json", "xml"]

_VALUE_END = f"\n{PARAMETER_END}\n"
_NO_TAG = r"/(?s:.*)/ & ~/(?s:.*)<\/(parameter|function)>(?s:.*)/"
"""Texts that hold no tag that might end them."""
_NO_JSON = r"~/\s*[\[{](?s:.*)/"
_ROOT = ("anyOf", "oneOf", "allOf", "patternProperties", "minProperties", "maxProperties")
_ANNOTATIONS = {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"}
_DATE, _TIME = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])", r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_NAME = r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?"
_ZONE = r"(\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
_FORMATS = {
    "date": _DATE,
    "time": _TIME + _ZONE,
    "date-time": f"{_DATE}T{_TIME}{_ZONE}",
    "email": rf"[A-Za-z0-9_+-]+(\.[A-Za-z0-9_+-]+)*@{_NAME}(\.{_NAME})+",
    "hostname": rf"{_NAME}(\.{_NAME})*",
    "ipv4": r"((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])",
    "uuid": r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "uri": r"[a-z][a-z0-9+.-]*:[A-Za-z0-9._~:\/?#@!$&'()*+,;=-]+",
}
"""Part of what each format allows: all that it needs to say what a date or an address is."""


def calls(
    rules: Rules,
    tag: Callable[[str], str],
    tools: Mapping[str, Mapping[str, Any]],
    form: CallForm,
    *,
    parallel: bool,
) -> str:
    """A rule for one call or, where ``parallel``, several. ``tag``: a tag's text as a grammar names it."""
    write = _json_call if form == "json" else _xml_call
    one = rules.rule(" | ".join(write(rules, name, schema) for name, schema in tools.items()))
    call = rules.rule(f"{tag(CALL)} {literal(chr(10))} {one} {literal(chr(10))} {tag(CALL_END)}")
    return rules.rule(f"{call} ({literal(chr(10))} {call})*") if parallel else call


def _json_call(rules: Rules, name: str, schema: Mapping[str, Any]) -> str:
    arguments = schema or {"properties": {}, "additionalProperties": False}
    head = f'{{"name": {json.dumps(name)}, "arguments": '
    return rules.rule(f"{literal(head)} {json_value({**arguments, 'type': 'object'})} {literal('}')}")


def _xml_call(rules: Rules, name: str, schema: Mapping[str, Any]) -> str:
    root = _resolved(schema, schema)
    for keyword in _ROOT:
        if keyword in root:
            raise _unsupported(keyword, f"around the parameters of {name}")
    properties = dict(root.get("properties", {}))
    required = set(root.get("required", ()))
    properties |= {key: {} for key in root.get("required", ()) if key not in properties}
    parts = [literal(f"{FUNCTION}{name}>\n")]
    for key, part in properties.items():
        if not re.fullmatch(KEY, key):
            raise _unsupported(f"parameter {key!r}", "in tags")
        value = rules.rule(" | ".join(_values(rules, key, part, {**root, "properties": properties})))
        parameter = f"{literal(f'{PARAMETER}{key}>{chr(10)}')} {value}"
        parts.append(parameter if key in required else f"({parameter})?")
    return rules.rule(" ".join([*parts, literal(FUNCTION_END)]))


def _values(rules: Rules, key: str, schema: Any, root: Mapping[str, Any]) -> Iterator[str]:
    """Alternatives for a parameter's value up to its end tag, such that the type that the reader gives it fits."""
    types = argument_types(root, key)
    definitions = {name: root[name] for name in ("$defs", "definitions") if name in root}
    if types and "string" not in types:
        yield f"{json_value({**definitions, **schema})} {literal(_VALUE_END)}"
        return
    # Where a value may be a text, the reader takes it for one unless it is null or looks like an object or an array.
    structured = bool(types & {"object", "array"})
    for text in _texts(schema, root, key):
        yield _text(rules, text, structured)
    if "null" in types:
        yield literal("null" + _VALUE_END)


def _texts(schema: Any, root: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    """The parts of a schema that are about texts, each with nothing but ``enum`` or a text's own keywords."""
    schema = _resolved(schema, root)
    unions = [word for word in ("anyOf", "oneOf", "allOf") if word in schema]
    if unions:
        others = schema.keys() - {*unions, "type", "discriminator"} - _ANNOTATIONS
        if len(unions) > 1 or others or (unions == ["allOf"] and len(schema["allOf"]) > 1):
            raise _unsupported(unions[-1], f"among the parameter {key}'s other keywords")
        for branch in schema[unions[0]]:
            yield from _texts(branch, root, key)
        return
    named = schema.get("type", "string")
    if "string" not in ([named] if isinstance(named, str) else named):
        return
    if "const" in schema or "enum" in schema:
        values = [schema["const"]] if "const" in schema else schema["enum"]
        yield {"enum": [value for value in values if isinstance(value, str)]}
        return
    yield {word: schema[word] for word in ("minLength", "maxLength", "pattern", "format") if word in schema}


def _text(rules: Rules, schema: Mapping[str, Any], structured: bool) -> str:
    if "enum" in schema:
        for value in schema["enum"]:
            if PARAMETER_END in value or FUNCTION_END in value:
                raise _unsupported(f"enum {value!r}", "in parameters that are plain text")
        return rules.rule(" | ".join(literal(value + _VALUE_END) for value in schema["enum"]))
    body = rules.terminal(_NO_TAG)
    limits = [_NO_JSON] if structured else []
    if "minLength" in schema or "maxLength" in schema:
        limits.append(f"/(?s:.{{{schema.get('minLength', 0)},{schema.get('maxLength', '')}}})/")
    if "pattern" in schema:
        limits.append(_found(schema["pattern"]))
    if "format" in schema:
        if schema["format"] not in _FORMATS:
            raise _unsupported(f"format {schema['format']!r}", "in parameters that are plain text")
        limits.append(f"/{_FORMATS[schema['format']]}/")
    if limits:
        body = rules.terminal(" & ".join([body, *limits]))
    return rules.rule(rules.terminal(f"{body} {literal(_VALUE_END)}"), lazy=True)


def _found(pattern: str) -> str:
    """Texts in which a pattern is found. Anchors are understood at its ends alone."""
    start, end = pattern.startswith("^"), pattern.endswith("$") and not pattern.endswith(r"\$")
    inside = pattern[start : len(pattern) - end]
    bare = inside.replace(r"\^", "").replace(r"\$", "").replace("[^", "")
    if "^" in bare or "$" in bare or ((start or end) and "|" in bare):
        raise _unsupported(f"pattern {pattern!r}", "in parameters that are plain text")
    inside = _ascii_classes(inside).replace(r"\/", "/").replace("/", r"\/")
    return f"/{'' if start else '(?s:.*)'}({inside}){'' if end else '(?s:.*)'}/"


def _ascii_classes(pattern: str) -> str:
    """A pattern of JSON schema's, whose digits and words are those of ASCII, for an engine whose are Unicode's."""
    classes = {"d": "0-9", "w": "0-9A-Za-z_"}
    out, inside = "", False
    for piece in re.findall(r"\\.|.", pattern, re.DOTALL):
        letter = piece[1:]
        if letter in classes:
            piece = classes[letter] if inside else f"[{classes[letter]}]"
        elif letter.lower() in classes and not inside:
            piece = f"[^{classes[letter.lower()]}]"
        elif piece in "[]":
            inside = piece == "["
        out += piece
    return out


def _resolved(schema: Any, root: Mapping[str, Any]) -> dict[str, Any]:
    """A schema with its references followed; one that leads nowhere is an empty schema."""
    seen: set[str] = set()
    found = dict(schema) if isinstance(schema, Mapping) else {}
    while isinstance(reference := found.pop("$ref", None), str) and reference not in seen:
        seen.add(reference)
        target = referred(root, reference)
        found = {**(target if isinstance(target, Mapping) else {}), **found}
    return found


def _unsupported(keyword: str, where: str) -> RequestError:
    return RequestError(
        f"a call cannot be held to the schema's {keyword} {where}; leave it out.", code="unsupported_schema"
    )
