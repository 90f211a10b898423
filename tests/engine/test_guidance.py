"""Answers that are held to something, over the whole engine."""

from __future__ import annotations

import json
import random
import threading
import time
from typing import Any

import jsonschema
import pytest
import torch

from engine import Engine
from engine.messages import EngineError, Failed, Guidance, RequestError
from engine.sample.grammar import Matcher
from engine.text.grammar import answer_grammar
from engine.text.thinking import CLOSING
from tests.conftest import LoadTiny
from tests.engine.requests import GREEDY, Passes, collect, generate, generation, settled, text_ids
from tests.engine.sample.schemas import random_schema

HOT: dict[str, Any] = {"temperature": 1.5, "top_k": 0, "max_tokens": 150}


def grammar(engine: Engine, schema: Any, **options: Any) -> Guidance:
    return Guidance(answer_grammar(engine.tokenizer, schema=schema, **options))


def test_random_schemas_on_all_lanes_beside_free_answers(tiny: Engine) -> None:
    schemas = [random_schema(random.Random(seed), depth=2) for seed in range(24)]
    free = [tiny.submit(generation([seed], seed=seed, **{**HOT, "max_tokens": 40})) for seed in range(8)]
    streams = [
        tiny.submit(generation([1, 2], guidance=grammar(tiny, schema), seed=number, **HOT))
        for number, schema in enumerate(schemas)
    ]
    alone = [collect(stream).ids for stream in free]
    answers = [collect(stream) for stream in streams]
    ended = [(answer, schema) for answer, schema in zip(answers, schemas, strict=True) if answer.end.reason == "stop"]
    for answer, schema in ended:
        jsonschema.validate(json.loads(answer.text), schema)
    assert len(ended) > 16
    assert all(answer.end.reason in ("stop", "length") for answer in answers)
    # Nothing changed for those beside them.
    again = [collect(tiny.submit(generation([seed], seed=seed, **{**HOT, "max_tokens": 40}))).ids for seed in range(8)]
    assert alone == again


def test_the_seed_decides(tiny: Engine) -> None:
    guidance = grammar(tiny, {"type": "array", "items": {"enum": list(range(50))}, "maxItems": 5})

    def ask(seed: int) -> str:
        return collect(tiny.submit(generation([1], guidance=guidance, seed=seed, **HOT))).text

    assert ask(3) == ask(3)
    assert len({ask(seed) for seed in range(3)}) > 1


def test_what_was_there_when_it_was_cut_off(tiny: Engine) -> None:
    long = grammar(tiny, {"type": "string", "minLength": 200})  # no draw of four tokens closes it
    answer = collect(tiny.submit(generation([1], guidance=long, **{**HOT, "max_tokens": 4})))
    assert answer.end.reason == "length"
    assert len(answer.ids) == 4
    assert answer.text.startswith('"')


def test_an_answer_that_may_not_end_ends_with_its_grammar(tiny: Engine) -> None:
    answer = collect(tiny.submit(generation([1], guidance=grammar(tiny, {"const": "yes"}), ignore_eos=True, **HOT)))
    assert (answer.text, answer.end.reason) == ('"yes"', "stop")


class Slow:
    """Masks that take as long as the test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go_on = threading.Event()
        self.fault: Exception | None = None
        fill = Matcher.fill

        def slow(matcher: Matcher, bits: torch.Tensor) -> None:
            assert self.go_on.wait(30)
            if self.fault is not None:
                raise self.fault
            fill(matcher, bits)

        monkeypatch.setattr(Matcher, "fill", slow)


def test_a_late_mask_holds_up_no_other_lane(tiny: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    guidance = grammar(tiny, {"type": "array", "items": {"type": "boolean"}, "minItems": 3, "maxItems": 3})
    expected = collect(tiny.submit(generation([5], guidance=guidance, seed=4, **HOT))).ids
    slow = Slow(monkeypatch)
    held = tiny.submit(generation([5], guidance=guidance, seed=4, **HOT))
    free = collect(tiny.submit(generation([1], max_tokens=60, **GREEDY)))
    assert len(free.ids) == 60
    assert not held.ended
    assert tiny.snapshot().state == "ready"
    slow.go_on.set()
    assert collect(held).ids == expected


def test_a_late_request_can_be_cancelled(tiny: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch)
    held = tiny.submit(generation([5], guidance=grammar(tiny, {"type": "null"}), **HOT))
    time.sleep(0.05)
    held.cancel()
    assert collect(held).end.reason == "cancelled"
    slow.go_on.set()


def test_a_grammar_that_fails_ends_its_own_request(tiny: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch)
    slow.fault = EngineError("too complex")
    slow.go_on.set()
    bad = tiny.submit(generation([5], guidance=grammar(tiny, {"type": "null"}), **HOT))
    good = collect(tiny.submit(generation([1], max_tokens=9, **GREEDY)))
    failed = collect(bad).events[-1]
    assert isinstance(failed, Failed)
    assert failed.error.message == "too complex"
    assert len(good.ids) == 9


@pytest.mark.parametrize(("budget", "most", "free"), [(10, 100, 10), (500, 40, 40 - 10 - 4), (0, 40, 0), (50, 1, 0)])
def test_a_thinking_budget(tiny: Engine, budget: int, most: int, free: int) -> None:
    """A quarter of what may be generated is left to the answer."""
    closing = tiny.tokenizer.encode(CLOSING, allow_special=True)
    free = free if budget < most else most - len(closing) - max(1, most // 4)
    guidance = Guidance(thinking_budget=budget)
    answer = collect(tiny.submit(generation([1], guidance=guidance, **{**GREEDY, "max_tokens": most})))
    assert answer.ids[max(0, free) :][: len(closing)] == closing[:most]
    assert len(answer.ids) == most


def test_a_budget_and_a_grammar_through_parking(load_tiny: LoadTiny, passes: Passes) -> None:
    """What an answer is held to goes with it when it gives its lane up."""
    engine = load_tiny(lanes=1)
    schema = {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9}, "minItems": 10, "maxItems": 10}
    text = answer_grammar(engine.tokenizer, schema=schema, opened=True)
    ids = text_ids(engine, 90)
    options = {**HOT, "seed": 2, "guidance": Guidance(text, thinking_budget=20), "request_class": "agent"}
    alone = generate(engine, ids, **options)
    passes.hold()
    agent = engine.submit(generation(ids, **options))
    for _ in range(8):
        passes.step()
    person = engine.submit(generation([7], max_tokens=3, **GREEDY))
    passes.step_until(lambda: engine.snapshot().parked)
    passes.free()
    collect(person)
    parked = collect(agent)
    assert parked.ids == alone.ids
    assert parked.end.reason == "stop"
    assert settled(engine).reuse.parks == 1


@pytest.mark.parametrize("bias", [((7, 100.0),), ((7, 100.0), (9, -100.0))])
def test_a_bias_is_added_to_its_logit(tiny: Engine, bias: Any) -> None:
    answer = collect(tiny.submit(generation([1], logit_bias=bias, **{**GREEDY, "max_tokens": 5})))
    assert answer.ids == [7] * 5


def test_a_bias_and_penalties_add_up(tiny: Engine) -> None:
    plain = collect(tiny.submit(generation([1], **{**GREEDY, "max_tokens": 12}))).ids
    banned = plain[3]
    options = {**GREEDY, "max_tokens": 12, "logit_bias": ((banned, -100.0),), "presence_penalty": 0.01}
    answer = collect(tiny.submit(generation([1], **options)))
    assert banned not in answer.ids


@pytest.mark.parametrize("bias", [((10**6, 1.0),), ((1, 1.0), (1, 2.0)), ((1, 101.0),), ((1, "x"),)])
def test_biases_that_are_refused(tiny: Engine, bias: Any) -> None:
    with pytest.raises(RequestError) as refused:
        tiny.submit(generation([1], logit_bias=bias))
    assert refused.value.param == "logit_bias"


def test_a_grammar_that_does_not_compile_is_refused(tiny: Engine) -> None:
    with pytest.raises(RequestError, match="cannot be held to"):
        tiny.submit(generation([1], guidance=Guidance("start: nothing")))
