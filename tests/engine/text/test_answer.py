"""Reasoning, text and tool calls of an answer, whatever pieces it comes in."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.text.answer import AnswerParser, Reasoning
from engine.text.stream import TextStream
from engine.text.tool_calls import CallArguments, CallBegun, Text

TOOLS: dict[str, dict[str, Any]] = {
    "read": {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "lines": {"type": "array", "items": {"type": "integer"}},
            "limit": {"type": "integer"},
            "ratio": {"type": "number"},
            "deep": {"type": "boolean"},
            "options": {"anyOf": [{"$ref": "#/$defs/Options"}, {"type": "null"}]},
        },
        "$defs": {"Options": {"type": "object"}},
    },
    "write": {"type": "object", "properties": {"path": {"type": "string"}, "text": {"type": "string"}}},
    "now": {"type": "object", "properties": {}},
}


def parse(text: str, cuts: Iterable[int] = (), **options: Any) -> dict[str, Any]:
    """What the answer comes to when it is fed in the pieces that the cuts make."""
    cut = options.pop("cut", False)
    parser = AnswerParser(TOOLS, **options)
    edges = sorted({0, *(min(c, len(text)) for c in cuts), len(text)})
    events = [event for a, b in pairwise(edges) for event in parser.push(text[a:b])]
    events += parser.finish(cut=cut)
    calls: list[list[str]] = []
    for event in events:
        if isinstance(event, CallBegun):
            assert event.index == len(calls)
            calls.append([event.name, ""])
        elif isinstance(event, CallArguments):
            assert event.index == len(calls) - 1
            assert event.piece
            calls[-1][1] += event.piece
    assert parser.calls == len(calls)
    return {
        "reasoning": "".join(event.text for event in events if isinstance(event, Reasoning)),
        "text": "".join(event.text for event in events if isinstance(event, Text)),
        "calls": calls,
        "cut_off": parser.cut_off,
    }


def xml(name: str, **parameters: str) -> str:
    inside = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in parameters.items())
    return f"<tool_call>\n<function={name}>\n{inside}</function>\n</tool_call>"


def js(name: str, arguments: object) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


READ = xml("read", path="a.txt")
READ_ARGUMENTS = {"path": "a.txt"}
NOW = js("now", {})

# name: (answer, options, reasoning, text, [(tool, arguments)])
CORPUS: dict[str, tuple[str, dict[str, Any], str, str, list[tuple[str, Any]]]] = {
    "text alone": ("  a < b, <tool> \n", {}, "", "  a < b, <tool> \n", []),
    "xml": (READ, {}, "", "", [("read", READ_ARGUMENTS)]),
    "json": (js("read", {"path": "ü"}), {}, "", "", [("read", {"path": "ü"})]),
    "no arguments": (xml("now") + NOW, {}, "", "", [("now", {}), ("now", {})]),
    "text before": (f"I look.\n\n{READ}\n", {}, "", "I look.", [("read", READ_ARGUMENTS)]),
    "text all around": (
        f"One.\n{READ}\nTwo. \n\n{NOW}\n Three.\n",
        {},
        "",
        "One.\n\nTwo.\n\nThree.\n",
        [("read", READ_ARGUMENTS), ("now", {})],
    ),
    "both forms": (f"{NOW}{READ}\n{NOW}", {}, "", "", [("now", {}), ("read", READ_ARGUMENTS), ("now", {})]),
    "the first alone": (f"{READ}\n{NOW}\nx", {"most": 1}, "", "x", [("read", READ_ARGUMENTS)]),
    "two functions in a tag": (
        "<tool_call>\n<function=now>\n</function>\n<function=now></function></tool_call>",
        {}, "", "", [("now", {}), ("now", {})],
    ),
    "thinking before": (f"<think>\nhm\n</think>\n\n{READ}", {}, "hm", "", [("read", READ_ARGUMENTS)]),
    "thinking opened": (f"hm\n</think>\n\nSo:\n{READ}", {"opened": True}, "hm", "So:", [("read", READ_ARGUMENTS)]),
    "thinking between": (
        f"<think>a</think>{READ}\n<think>\nb\n</think>\n\n{NOW}<think></think>\nDone.",
        {},
        "a\n\nb",
        "Done.",
        [("read", READ_ARGUMENTS), ("now", {})],
    ),
    "a stray end of thinking": (f"{READ}\n</think>\nDone.", {}, "", "Done.", [("read", READ_ARGUMENTS)]),
    "thinking never closed": ("hm\n<think> < ", {"opened": True}, "hm\n<think> <", "", []),
    "a call thought of": (
        f"I could {READ} or {NOW}\n</think>\nNo.", {"opened": True}, f"I could {READ} or {NOW}", "No.", [],
    ),
    "a call that thinking ends with": (
        f"hm\n\n{READ}\n{NOW}\n", {"opened": True}, "hm", "", [("read", READ_ARGUMENTS), ("now", {})],
    ),
    "a call within thinking": (
        f"hm {READ}. <tool_call> x\n{NOW}", {"opened": True}, f"hm {READ}. <tool_call> x", "", [("now", {})],
    ),
    "types": (
        xml("read", lines="[1, 2]", limit="-3", ratio="1e3", deep="True", options='{"a": "é"}'),
        {}, "", "", [("read", {"lines": [1, 2], "limit": -3, "ratio": 1e3, "deep": True, "options": {"a": "é"}})],
    ),
    "types that do not fit": (
        xml("read", path="5", lines="[1", limit="two", ratio="NaN", deep="maybe", options="None", other="7"),
        {}, "", "",
        [("read", {
            "path": "5", "lines": "[1", "limit": "two", "ratio": "NaN", "deep": "maybe", "options": None, "other": "7",
        })],
    ),
    "a value's own lines": (
        xml("write", path="x", text='\n  if a < b:\n\t"q" \\ é\n'), {}, "", "",
        [("write", {"path": "x", "text": '\n  if a < b:\n\t"q" \\ é\n'})],
    ),
    "a value about tags": (
        xml("write", text="<think>\n</parameter> and <parameter=a>\n</function>\n<tool_call></tool_call>"), {}, "", "",
        [("write", {"text": "<think>\n</parameter> and <parameter=a>\n</function>\n<tool_call></tool_call>"})],
    ),
    "json about tags": (
        js("write", {"text": '</tool_call> "\n<tool_call>\\'}), {}, "", "",
        [("write", {"text": '</tool_call> "\n<tool_call>\\'})],
    ),
    "values on one line": (
        "<tool_call><function=write><parameter=path>a</parameter><parameter=text></parameter></function></tool_call>",
        {}, "", "", [("write", {"path": "a", "text": ""})],
    ),
    "end tags left out": (
        "<tool_call>\n<function=write>\n<parameter=text>\na\n</function>\n</tool_call>\nb", {}, "", "b",
        [("write", {"text": "a"})],
    ),
    "no end of the function": (
        "<tool_call>\n<function=write>\n<parameter=text>\na\n</parameter>\n</tool_call>\nb", {}, "", "b",
        [("write", {"text": "a"})],
    ),
    "ends inside a value": (
        "<tool_call>\n<function=write>\n<parameter=text>\na\n", {}, "", "", [("write", {"text": "a"})],
    ),
    "ends after a value": (
        "<tool_call>\n<function=write>\n<parameter=text>\na\n</parameter>\n", {}, "", "", [("write", {"text": "a"})],
    ),
    "json ends without its tag": ('<tool_call>{"name": "now", "arguments": {}}', {}, "", "", [("now", {})]),
    "json in other words": (
        r'<tool_call>{"name": "read", "parameters": "{\"path\": \"a.txt\"}"}</tool_call>'
        '<tool_call>{"name": "now"}</tool_call>',
        {}, "", "", [("read", READ_ARGUMENTS), ("now", {})],
    ),
    "json with raw lines": (
        '<tool_call>{"name": "write", "arguments": {"text": "a\nb"}}</tool_call>', {}, "", "",
        [("write", {"text": "a\nb"})],
    ),
    "a tool that is not there": (xml("fly", to="5"), {}, "", "", [("fly", {"to": "5"})]),
    "no tag around": (
        "So:\n<function=read>\n<parameter=path>\na.txt\n</parameter>\n</function>\n</tool_call>\nDone.",
        {}, "", "So:\n\nDone.", [("read", READ_ARGUMENTS)],
    ),
    "a tag in a sentence": ("<a> <function=read>\n<function=fly>", {}, "", "<a> <function=read>\n<function=fly>", []),
    "text inside a call": (
        "<tool_call><function=write> so  be\n<parameter=path>\na\n</parameter>\n</function></tool_call> yes",
        {}, "", "so  be\n\nyes", [("write", {"path": "a"})],
    ),
    "no json": ('a\n<tool_call>\n{"name": "now", "arguments": {"a": "b"c"}}\n</tool_call>\n' + NOW, {}, "",
        'a\n<tool_call>\n{"name": "now", "arguments": {"a": "b"c"}}\n</tool_call>', [("now", {})],
    ),
    "json of something else": (
        '<tool_call>{"nom": 1}</tool_call><tool_call>{"name": "now", "arguments": [1]}</tool_call>', {}, "",
        '<tool_call>{"nom": 1}</tool_call><tool_call>{"name": "now", "arguments": [1]}</tool_call>', [],
    ),
    "characters of several bytes": (
        "<think>\nnaïve 深\n</think>\n\n🙂 été\n"
        + xml("write", path="深/é", text="🙂\n¿\n") + js("write", {"text": "深"}),
        {}, "naïve 深", "🙂 été", [("write", {"path": "深/é", "text": "🙂\n¿\n"}), ("write", {"text": "深"})],
    ),
    "numbers that are none": (
        '<tool_call>{"name": "now", "arguments": {"a": NaN}}</tool_call>', {}, "",
        '<tool_call>{"name": "now", "arguments": {"a": NaN}}</tool_call>', [],
    ),
    "numbers too large to hold": (
        '<tool_call>{"name": "now", "arguments": {"a": -1e999}}</tool_call>', {}, "",
        "", [("now", {"a": -1.7976931348623157e308})],
    ),
    "json never ends": ('<tool_call>{"name": "now", "arguments": {"a": "b\n', {}, "",
        '<tool_call>{"name": "now", "arguments": {"a": "b\n', [],
    ),
    "a tag and a word": ("The tag <tool_call> opens a call.\n", {}, "", "The tag <tool_call> opens a call.\n", []),
    "a bad name": (
        "<tool_call>\n<function=a b>\n</function>\n</tool_call>", {}, "",
        "<tool_call>\n<function=a b>\n</function>\n</tool_call>", [],
    ),
    "ends with a tag": ("a\n<tool_call>\n", {}, "", "a\n<tool_call>\n", []),
    "ends in a tag": ("a\n<tool_ca", {}, "", "a\n<tool_ca", []),
}  # fmt: skip


def expected(name: str) -> dict[str, Any]:
    _, _, reasoning, text, calls = CORPUS[name]
    return {"reasoning": reasoning, "text": text, "calls": calls, "cut_off": False}


def loaded(result: dict[str, Any]) -> dict[str, Any]:
    return {**result, "calls": [(name, json.loads(arguments)) for name, arguments in result["calls"]]}


@pytest.mark.parametrize("name", CORPUS)
def test_what_an_answer_comes_to(name: str) -> None:
    text, options, *_ = CORPUS[name]
    assert loaded(parse(text, **options)) == expected(name)


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("name", CORPUS)
def test_every_place_to_split(name: str, cut: bool) -> None:
    text, options, *_ = CORPUS[name]
    whole = parse(text, cut=cut, **options)
    assert parse(text, range(len(text)), cut=cut, **options) == whole
    for at in range(1, len(text)):
        assert parse(text, (at,), cut=cut, **options) == whole, at
        assert parse(text, (at, at + 3), cut=cut, **options) == whole, at


class Bytes:
    """A tokenizer whose tokens are the pieces of one answer: numbers are their places."""

    def __init__(self, *pieces: bytes) -> None:
        self.token_bytes = list(pieces)


@pytest.mark.parametrize("name", CORPUS)
def test_every_byte_to_split_tokens_at(name: str) -> None:
    """Tokens end inside characters too."""
    text, options, *_ = CORPUS[name]
    options = {**options}
    whole, data = parse(text, **options), text.encode()
    splits = [tuple(data[at : at + 1] for at in range(len(data)))]
    splits += [(data[:at], data[at:]) for at in range(1, len(data))]
    for pieces in splits:
        stream = TextStream(Bytes(*pieces))  # type: ignore[arg-type]
        texts = [stream.push(token) for token in range(len(pieces))]
        texts.append(stream.flush())
        assert "".join(texts) == text
        ends = list(accumulate(map(len, texts)))
        assert parse(text, ends[:-1], **options) == whole, pieces[0][-10:]


@pytest.mark.parametrize("name", ["text all around", "types", "a value about tags", "json about tags", "both forms"])
def test_every_place_to_cut_off(name: str) -> None:
    """Part of a call is never text, and what was there is the beginning of what would have been."""
    text, options, *_ = CORPUS[name]
    whole = parse(text, **options)
    for end in range(len(text)):
        part = parse(text[:end], range(0, end, 5), cut=True, **options)
        assert "parameter" not in part["text"]
        assert "arguments" not in part["text"]
        for (tool, arguments), (full_tool, full_arguments) in zip(part["calls"], whole["calls"], strict=False):
            assert tool == full_tool
            # Values that are no text come as the model wrote them.
            assert full_arguments.lower().startswith(arguments.lower())
        ended = part["calls"][:-1] if part["cut_off"] else part["calls"]
        assert loaded({"calls": ended})["calls"] == expected(name)["calls"][: len(ended)]


def test_a_call_that_is_cut_off() -> None:
    for text, name, arguments in (
        ("<tool_call>\n<function=write>\n<parameter=text>\na\nb\n</para", "write", '{"text": "a\\nb'),
        ("<tool_call>\n<function=read>\n<parameter=lines>\n[1, 2", "read", '{"lines": [1, 2'),
        ('<tool_call>\n{"name": "write", "arguments": {"text": "a', "write", '{"text": "a'),
        ('<tool_call>\n{"name": "write", ', "write", ""),
    ):
        expected = {"reasoning": "", "text": "So:", "calls": [[name, arguments]], "cut_off": True}
        assert parse(f"So:\n{text}", cut=True) == expected
    for text in ("<tool_call>", '<tool_call>\n{"na', "<tool_call>\n<function=wr"):
        assert parse(f"So:\n{text}", cut=True) == {"reasoning": "", "text": "So:", "calls": [], "cut_off": False}


def test_a_long_text_is_given_out_as_it_comes() -> None:
    parser = AnswerParser(TOOLS)
    parser.push("<tool_call>\n<function=write>\n")
    assert parser.push("<parameter=text>\n") == [CallArguments(0, '{"text": '), CallArguments(0, '"')]
    assert parser.push("def f():") == [CallArguments(0, "def f():")]
    assert parser.push("\n  return") == [CallArguments(0, "\\n  return")]


def test_a_text_that_excludes_calls() -> None:
    for text in (f'{{"a": "{READ}"}}', f" x {NOW}", f"<tool {NOW}"):
        for cuts in ((), range(len(text))):
            result = parse(text, cuts, exclusive=True)
            assert (result["text"].strip(), result["calls"]) == (text.strip(), [])
    for cuts in ((), range(200)):
        result = parse(f"<think>so</think>\n{READ}\n{NOW}", cuts, exclusive=True)
        assert (result["text"], [name for name, _ in result["calls"]]) == ("", ["read", "now"])


def test_without_tools_calls_are_text() -> None:
    parser = AnswerParser()
    events = [*parser.push(f"<think>a {READ}</think>b {READ}\n"), *parser.finish()]
    assert events == [Reasoning(f"a {READ}"), Text(f"b {READ}\n")]


PIECES = [
    "<think>", "</think>", "<tool_call>", "</tool_call>", "<function=write>", "<function=now>", "</function>",
    "<parameter=text>", "<parameter=lines>", "</parameter>", '{"name": "now", "arguments": {}}', '{"name": "now", "arg',
    '"}}', "<", "</", "\n", " ", "a", "[1]", "é", '"', "\\",
]  # fmt: skip


@settings(max_examples=400)
@given(
    text=st.lists(st.sampled_from(PIECES), max_size=16).map("".join),
    cuts=st.lists(st.integers(0, 120), max_size=8),
    opened=st.booleans(),
    cut=st.booleans(),
    most=st.sampled_from([None, 1]),
    exclusive=st.booleans(),
)
def test_the_split_never_matters(
    text: str, cuts: list[int], opened: bool, cut: bool, most: int | None, exclusive: bool
) -> None:
    options: dict[str, Any] = {"opened": opened, "cut": cut, "most": most, "exclusive": exclusive}
    whole = parse(text, **options)
    assert parse(text, cuts, **options) == whole
    assert parse(text, range(len(text)), **options) == whole
    finished = whole["calls"][:-1] if whole["cut_off"] else whole["calls"]
    assert all(isinstance(json.loads(arguments), dict) for _, arguments in finished)
    assert not (whole["cut_off"] and not cut)


@given(value=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<"), max_size=30))
def test_any_text_is_read_back_as_it_was_written(value: str) -> None:
    for text in (xml("write", text=value), js("write", {"text": value})):
        ((_, arguments),) = parse(text, (20, 40, 50))["calls"]
        assert json.loads(arguments) == {"text": value}


@given(
    st.lists(st.sampled_from(["<tool_call>", "</tool_call>", "<function=", "fly>", "{", "<", " ", "\n", "a"])).map(
        "".join
    )
)
def test_nothing_is_lost_without_calls(value: str) -> None:
    result = parse(value, range(len(value)))
    if not result["calls"]:
        assert result["text"] == value
