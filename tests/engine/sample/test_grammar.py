"""Answers drawn at random within a grammar: what comes to its end is what was asked for, whatever the logits."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.messages import EngineError, RequestError, SamplingParams
from engine.sample.grammar import Grammars
from engine.sample.guide import Guide, ThinkingBudget
from engine.sample.sampler import Sampler
from engine.text.answer import AnswerParser, Reasoning
from engine.text.grammar import answer_grammar
from engine.text.thinking import CLOSING
from engine.text.tokenizer import Tokenizer, end_token_ids
from engine.text.tool_calls import CallArguments, CallBegun, Text
from tests.engine.sample.schemas import random_object, random_schema
from tests.tiny import write_tiny

LANES = 32
HOT = SamplingParams(temperature=1.5)
MOST = 250
"""Tokens of an answer."""


@dataclass
class Vocabulary:
    tokenizer: Tokenizer
    ends: frozenset[int]
    size: int
    """Logits of a row: more than there are tokens, as in published models."""
    grammars: Grammars


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    folder: Path = write_tiny(tmp_path_factory.mktemp("tiny"))
    tokenizer, ends = Tokenizer(folder), end_token_ids(folder, Tokenizer(folder))
    size = len(tokenizer.token_bytes) + 37
    return Vocabulary(tokenizer, ends, size, Grammars(tokenizer, ends, size))


@dataclass
class Draw:
    """One answer to be drawn, and what must hold of it when it came to its end."""

    grammar: str
    check: Callable[[str], None]
    ids: list[int] = field(default_factory=list)


def draw_all(words: Vocabulary, draws: Iterator[Draw]) -> tuple[int, int]:
    """(answers that came to their end, each checked; answers that were cut off)."""
    sampler = Sampler(LANES, words.size, "cpu")
    noise = torch.Generator().manual_seed(0)
    running: dict[int, Draw] = {}
    ended = cut = begun = 0
    while True:
        for lane in set(range(LANES)) - running.keys():
            if (draw := next(draws, None)) is None:
                break
            sampler.begin(lane, HOT, [], begun)
            sampler.guide(lane, Guide(words.size, words.grammars.matcher(draw.grammar)))
            running[lane] = draw
            begun += 1
        if not running:
            return ended, cut
        lanes = sorted(running)
        sampled = sampler.sample(2 * torch.randn(len(lanes), words.size, generator=noise), lanes)
        assert not sampled.faults
        for lane, token in zip(lanes, sampled.ids, strict=True):
            draw = running[lane]
            draw.ids.append(token)
            if token in words.ends:
                draw.check(words.tokenizer.decode(draw.ids[:-1]))
                ended += 1
                del running[lane]
            elif len(draw.ids) == MOST:
                cut += 1
                del running[lane]


def test_500_schemas(words: Vocabulary) -> None:
    def draws() -> Iterator[Draw]:
        for number in range(500):
            schema, opened = random_schema(random.Random(number)), number % 5 == 0

            def check(text: str, schema: Any = schema, opened: bool = opened) -> None:
                parser = AnswerParser(opened=opened)
                events = parser.push(text) + parser.finish()
                content = "".join(event.text for event in events if isinstance(event, Text))
                jsonschema.validate(json.loads(content), schema)

            words.grammars.check_schema(schema)
            yield Draw(answer_grammar(words.tokenizer, schema=schema, opened=opened), check)

    ended, cut = draw_all(words, draws())
    assert ended + cut == 500
    assert ended > 400


@pytest.mark.parametrize("form", ["json", "xml"])
def test_calls_of_tools(words: Vocabulary, form: Any) -> None:
    def draws() -> Iterator[Draw]:
        for number in range(80):
            rng, opened = random.Random(number), number % 5 == 0
            tools = {"read": random_object(rng), "mcp.a:b-c": random_object(rng)}

            def check(text: str, tools: Any = tools, opened: bool = opened, several: bool = number % 2 == 0) -> None:
                found = calls_of(text, tools, opened)
                assert len(found) == 1 or (several and found)
                for name, arguments in found:
                    jsonschema.validate(json.loads(arguments), tools[name])

            yield Draw(
                answer_grammar(words.tokenizer, tools=tools, form=form, parallel=number % 2 == 0, opened=opened), check
            )

    ended, _ = draw_all(words, draws())
    assert ended > 55


def calls_of(text: str, tools: Any, opened: bool = False) -> list[tuple[str, str]]:
    """(name, arguments) of an answer that is nothing but calls, after its reasoning."""
    parser = AnswerParser(tools, opened=opened)
    calls: list[tuple[str, str]] = []
    for event in parser.push(text) + parser.finish():
        if isinstance(event, CallBegun):
            calls.append((event.name, ""))
        elif isinstance(event, CallArguments):
            calls[-1] = (calls[-1][0], calls[-1][1] + event.piece)
        else:
            assert isinstance(event, Reasoning)
    return calls


TEXT = {"type": "string"}
OPTIONAL = {"anyOf": [{"type": "string", "maxLength": 2}, {"type": "null"}, {"type": "array", "items": TEXT}]}


def xml(*parameters: tuple[str, str]) -> str:
    inside = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in parameters)
    return f"<tool_call>\n<function=f>\n{inside}</function>\n</tool_call>"


def parameters(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


@pytest.mark.parametrize(
    ("schema", "text", "fits"),
    [
        (parameters(a=TEXT), xml(("a", "x < y && </p>\n\n<b>")), True),
        (parameters(a=TEXT), xml(("a", "")), True),
        (parameters(a=TEXT), xml(("a", "one</parameter>two")), False),
        (parameters(a=TEXT), xml(("b", "x")), False),
        (parameters(a=TEXT), xml(), False),
        ({"properties": {"a": TEXT}}, xml(), True),
        ({"required": ["a"]}, xml(("a", "anything")), True),
        (parameters(a={"type": "integer"}), xml(("a", "12")), True),
        (parameters(a={"type": "integer"}), xml(("a", "twelve")), False),
        (parameters(a={"enum": ["x", "y", 3]}), xml(("a", "x")), True),
        (parameters(a={"enum": ["x", "y", 3]}), xml(("a", "3")), False),  # would be read as a text
        (parameters(a={"enum": [1, 3]}), xml(("a", "3")), True),
        (parameters(a=OPTIONAL), xml(("a", "ab")), True),
        (parameters(a=OPTIONAL), xml(("a", "abc")), False),
        (parameters(a=OPTIONAL), xml(("a", "[1")), False),
        (parameters(a=OPTIONAL), xml(("a", "null")), True),
        (parameters(a={"type": "string", "pattern": r"^v\d+$"}), xml(("a", "v12")), True),
        (parameters(a={"type": "string", "pattern": r"^v\d+$"}), xml(("a", "v١")), False),
        (parameters(a={"type": "string", "pattern": r"[/.]x"}), xml(("a", "a/xb")), True),
        (parameters(a={"type": "string", "format": "uri"}), xml(("a", "https://example.com/?a=b")), True),
        (parameters(a={"type": "string", "format": "uri"}), xml(("a", "example")), False),
        ({**parameters(a={"$ref": "#/$defs/n"}), "$defs": {"n": {"type": "integer"}}}, xml(("a", "5")), True),
        ({**parameters(a={"$ref": "#/$defs/n"}), "$defs": {"n": {"enum": ["on"]}}}, xml(("a", "off")), False),
    ],
    ids=str,
)
def test_parameters_in_plain_text(words: Vocabulary, schema: Any, text: str, fits: bool) -> None:
    matcher = words.grammars.matcher(answer_grammar(words.tokenizer, tools={"f": schema}, form="xml"))
    assert accepts(words, matcher, text) is fits


@given(value=st.text(st.characters(codec="utf-8", exclude_characters="\u2028"), max_size=20))
def test_any_text_may_be_a_parameter_and_is_read_back(words: Vocabulary, value: str) -> None:
    schema = parameters(a=TEXT)
    tokens = words.tokenizer.encode(xml(("a", value)), allow_special=False)
    text = words.tokenizer.decode(tokens)  # this vocabulary lacks rare characters
    inside = text.removesuffix("\n</parameter>\n</function>\n</tool_call>")
    assume("</parameter>" not in inside and "</function>" not in inside)  # what may end a value is never in one
    matcher = words.grammars.matcher(answer_grammar(words.tokenizer, tools={"f": schema}, form="xml"))
    assert accepts(words, matcher, text)
    ((_, arguments),) = calls_of(text, {"f": schema})
    assert xml(("a", json.loads(arguments)["a"])) == text


def accepts(words: Vocabulary, matcher: Any, text: str) -> bool:
    """Whether the tokens of a text and the end after it are all allowed."""
    bits = torch.empty(-(-words.size // 32), dtype=torch.int32)
    end = min(words.ends)
    for token in [*words.tokenizer.encode(text, allow_special=True), end]:
        matcher.fill(bits)
        if not (int(bits[token // 32]) >> token % 32) & 1:
            return False
        if token != end:
            matcher.accept(token)
    return True


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"not": {"type": "string"}}, "not"),
        (parameters(a={"type": "array", "uniqueItems": True}), "uniqueItems"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "oneOf"),
        ({"type": "string", "format": "shoe-size"}, "format 'shoe-size'"),
        ({"type": "string", "pattern": "(?=a)b"}, "pattern: .*look-around"),
        ({"$ref": "#/$defs/none"}, "/\\$defs/none"),
        ({"type": "integer", "minimum": 5, "maximum": 3}, "minimum"),
        ({"x-guidance": {"lenient": True}, "not": {}}, "not"),
    ],
)
def test_schemas_that_cannot_be_held_to(words: Vocabulary, schema: Any, named: str) -> None:
    with pytest.raises(RequestError, match=f"cannot be held to .*{named}") as refused:
        words.grammars.check_schema(schema)
    assert refused.value.code == "unsupported_schema"


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"anyOf": [parameters(a=TEXT)]}, "anyOf"),
        (parameters(a={"type": "string", "format": "ipv6"}), "format 'ipv6'"),
        (parameters(**{"a<b": TEXT}), "parameter 'a<b'"),
        (parameters(a={"enum": ["x</parameter>"]}), "enum"),
        (parameters(a={"type": "string", "pattern": "^a$|b"}), "pattern"),
        (parameters(a={"type": "string", "minLength": 1, "anyOf": [TEXT, {"type": "null"}]}), "anyOf"),
    ],
)
def test_what_plain_text_cannot_express(words: Vocabulary, schema: Any, named: str) -> None:
    with pytest.raises(RequestError, match=named):
        answer_grammar(words.tokenizer, tools={"f": schema}, form="xml")


def test_a_grammar_that_does_not_compile(words: Vocabulary) -> None:
    with pytest.raises(RequestError, match="cannot be held to") as refused:
        words.grammars.matcher("start: (")
    assert refused.value.code == "invalid_grammar"


def test_without_the_library_nothing_but_grammars_is_missing(
    words: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "llguidance", None)
    grammars = Grammars(words.tokenizer, words.ends, words.size)
    for ask in (lambda: grammars.check_schema({}), lambda: grammars.matcher("start: /a/")):
        with pytest.raises(EngineError, match="pip install llguidance"):
            ask()
    sampler = Sampler(1, words.size, "cpu")
    sampler.begin(0, HOT, [], 0)
    assert not sampler.sample(torch.zeros(1, words.size), [0]).faults


def test_text_in_added_tokens_is_no_text(words: Vocabulary) -> None:
    matcher = words.grammars.matcher(answer_grammar(words.tokenizer, schema=TEXT))
    bits = torch.empty(-(-words.size // 32), dtype=torch.int32)
    matcher.accept(words.tokenizer.encode('"')[0])
    matcher.fill(bits)
    allowed = {t for t in range(words.size) if (int(bits[t // 32]) >> t % 32) & 1}
    assert words.tokenizer.encode("a")[0] in allowed
    assert not allowed & {words.tokenizer.token_id(added) for added in words.tokenizer.added_tokens}
    assert max(allowed) < len(words.tokenizer.token_bytes)


@pytest.mark.parametrize("budget", [0, 1, 30])
def test_a_budget_closes_the_reasoning_and_the_grammar_goes_on(words: Vocabulary, budget: int) -> None:
    sampler = Sampler(1, words.size, "cpu")
    closing = words.tokenizer.encode(CLOSING, allow_special=True)
    grammar = answer_grammar(words.tokenizer, schema={"type": "boolean"}, opened=True)
    sampler.begin(0, HOT, [], 1)
    sampler.guide(
        0,
        Guide(
            words.size,
            words.grammars.matcher(grammar),
            ThinkingBudget(budget, closing, words.tokenizer.token_bytes),
        ),
    )
    close = words.tokenizer.token_id("</think>")
    ids: list[int] = []
    noise = torch.Generator().manual_seed(1)
    while not ids or ids[-1] not in words.ends:
        logits = torch.randn(1, words.size, generator=noise)
        logits[0, close] = -100.0  # this model never stops thinking
        ids += sampler.sample(logits, [0]).ids
        assert len(ids) < 100
    assert ids[budget : budget + len(closing)] == closing
    assert words.tokenizer.decode(ids[budget + len(closing) : -1]).strip() in ("true", "false")


def test_a_budget_lets_the_model_close_by_itself(words: Vocabulary) -> None:
    spelled = words.tokenizer.encode("a </th") + words.tokenizer.encode("ink> b")
    budget = ThinkingBudget(
        len(spelled), words.tokenizer.encode(CLOSING, allow_special=True), words.tokenizer.token_bytes
    )
    for token in spelled:
        assert budget.forced is None
        budget.accept(token)
    assert budget.forced is None
