"""Parameters that models write as text become JSON of the types that schemas say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text.tool_arguments import UnfinishedError, argument_json, argument_types, read_call

TYPES = ["string", "integer", "number", "boolean", "array", "object", "null"]


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({"type": "integer"}, {"integer"}),
        ({"type": ["string", "null"]}, {"string", "null"}),
        ({"anyOf": [{"type": "array"}, {"oneOf": [{"type": "null"}, {"const": 5}]}]}, {"array", "null", "integer"}),
        ({"allOf": [{"$ref": "#/$defs/a~1b"}]}, {"object"}),
        ({"enum": ["x", 1, 1.5, True, None]}, {"string", "integer", "number", "boolean", "null"}),
        ({"type": "string", "enum": [1]}, {"string"}),
        ({"$ref": "#/$defs/loop"}, {"string"}),
        ({"$ref": "#/nowhere/at/all"}, set()),
        ({"$ref": "https://example.com/schema"}, set()),
        ({"type": 5, "anyOf": "x", "enum": {}}, set()),
        (True, set()),
        (None, set()),
    ],
)
def test_types_of_a_parameter(schema: Any, types: set[str]) -> None:
    definitions = {"a/b": {"type": "object"}, "loop": {"anyOf": [{"$ref": "#/$defs/loop"}, {"type": "string"}]}}
    assert argument_types({"properties": {"p": schema}, "$defs": definitions}, "p") == types


def test_a_schema_without_properties_says_nothing() -> None:
    assert argument_types({}, "p") == argument_types({"properties": []}, "p") == frozenset()


@pytest.mark.parametrize(
    ("text", "types", "expected"),
    [
        ("5", "integer", "5"),
        (" 5 ", "integer", "5"),
        ("5.0", "integer", "5"),
        ("5.5", "integer", '"5.5"'),
        ("05", "integer", '"05"'),
        ("5e3", "integer", '"5e3"'),
        ("1" * 5000, "integer", "1" * 5000),
        ("0.10", "number", "0.10"),
        ("7", "number", "7"),
        ("True", "boolean", "true"),
        ("yes", "boolean", '"yes"'),
        ("None", "null string", "null"),
        ("null", "string", '"null"'),
        ("5", "string integer", '"5"'),
        ('["a"]', "string array", '["a"]'),
        ('["a"', "string array", json.dumps('["a"')),
        ('{"a": 1}', "array string", json.dumps('{"a": 1}')),
        ('{"a": "x\ny"}', "object", '{"a": "x\\ny"}'),
        ('{"a": "\\ud800"}', "object", '{"a": "\\ud800"}'),
        ('{"a": NaN}', "object", json.dumps('{"a": NaN}')),
        ("[" * 100_000, "array", json.dumps("[" * 100_000)),
        (" text ", "", '" text "'),
        ("5", "", '"5"'),
    ],
    ids=lambda value: value[:20],
)
def test_a_text_as_json(text: str, types: str, expected: str) -> None:
    assert argument_json(text, frozenset(types.split())) == expected


@given(st.text(max_size=20), st.sets(st.sampled_from(TYPES)))
def test_any_text_becomes_json_of_its_types_or_stays_a_text(text: str, types: set[str]) -> None:
    value = json.loads(argument_json(text, frozenset(types)))
    kinds = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
    kind = kinds.get(type(value), "null")
    assert kind in types or (kind == "integer" and "number" in types) or value == text


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    )
)
def test_what_templates_write_is_read_back(value: Any) -> None:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    text = value if isinstance(value, str) else json.dumps(value)
    assert json.loads(argument_json(text, frozenset({kinds.get(type(value), "null")}))) == value


def test_half_a_call_may_go_on_and_a_broken_one_may_not() -> None:
    with pytest.raises(UnfinishedError):
        read_call('{"name": "f", "arguments": {"a": "b')
    assert read_call('{"name": "f", "arguments": {"a": }}') is None
    assert read_call('{"name": "f g", "arguments": {}}') is None
