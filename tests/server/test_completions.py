"""Text completions: every shape of prompt, logprobs, echo, streaming."""

from __future__ import annotations

import openai
import pytest

from engine import Engine

TEXT = "The quick brown fox jumps over the"


def test_the_four_shapes_of_a_prompt_agree(client: openai.OpenAI, engine: Engine, model: str) -> None:
    ids = engine.tokenizer.encode(TEXT)

    def ask(prompt: object) -> list[str]:
        answer = client.completions.create(model=model, prompt=prompt, max_tokens=8, temperature=0)  # type: ignore[arg-type]
        assert [choice.index for choice in answer.choices] == list(range(len(answer.choices)))
        return [choice.text for choice in answer.choices]

    (text,) = ask(TEXT)
    assert text
    assert ask([TEXT]) == [text]
    assert ask(ids) == [text]
    assert ask([ids]) == [text]
    assert ask([TEXT, "Once upon", TEXT])[::2] == [text, text]
    assert ask([ids, ids[:2]])[0] == text


def test_sixteen_tokens_are_the_default(client: openai.OpenAI, model: str) -> None:
    answer = client.completions.create(model=model, prompt=TEXT, extra_body={"ignore_eos": True})
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 16
    assert answer.choices[0].finish_reason == "length"


def test_usage_counts_all_prompts(client: openai.OpenAI, engine: Engine, model: str) -> None:
    answer = client.completions.create(
        model=model, prompt=[TEXT, "Once"], max_tokens=3, extra_body={"ignore_eos": True}
    )
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == len(engine.tokenizer.encode(TEXT)) + len(engine.tokenizer.encode("Once"))
    assert answer.usage.completion_tokens == 6


def test_stream_of_several_prompts(client: openai.OpenAI, model: str) -> None:
    prompts = [TEXT, "Once upon a time", "1 2 3 4"]
    plain = client.completions.create(model=model, prompt=prompts, max_tokens=8, temperature=0)
    texts, reasons = [""] * 3, [None] * 3
    for chunk in client.completions.create(model=model, prompt=prompts, max_tokens=8, temperature=0, stream=True):
        for choice in chunk.choices:
            texts[choice.index] += choice.text
            reasons[choice.index] = choice.finish_reason or reasons[choice.index]
    assert texts == [choice.text for choice in plain.choices]
    assert reasons == [choice.finish_reason for choice in plain.choices]


@pytest.mark.parametrize("stream", [False, True])
def test_echo_with_logprobs_scores_the_prompt(client: openai.OpenAI, engine: Engine, model: str, stream: bool) -> None:
    ids = engine.tokenizer.encode(TEXT)
    options = {"model": model, "prompt": TEXT, "max_tokens": 4, "temperature": 0, "logprobs": 2, "echo": True}
    text, tokens, values, tops, offsets = "", [], [], [], []
    answers = client.completions.create(**options, stream=True) if stream else [client.completions.create(**options)]
    for answer in answers:
        for choice in answer.choices:
            text += choice.text
            if choice.logprobs:
                tokens += choice.logprobs.tokens or []
                values += choice.logprobs.token_logprobs or []
                tops += choice.logprobs.top_logprobs or []
                offsets += choice.logprobs.text_offset or []
    assert text.startswith(TEXT)
    assert len(tokens) == len(values) == len(tops) == len(offsets) > len(ids)
    assert "".join(tokens).startswith(TEXT)
    assert values[0] is None
    assert tops[0] is None
    assert all(value <= 0 for value in values[1:])
    assert all(2 <= len(top) <= 3 for top in tops[1:])
    assert offsets == [len("".join(tokens[:n])) for n in range(len(tokens))]


def test_echo_without_logprobs(client: openai.OpenAI, model: str) -> None:
    plain = client.completions.create(model=model, prompt=TEXT, max_tokens=4, temperature=0)
    echoed = client.completions.create(model=model, prompt=TEXT, max_tokens=4, temperature=0, echo=True)
    assert echoed.choices[0].text == TEXT + plain.choices[0].text
    assert echoed.choices[0].logprobs is None


def test_scoring_a_prompt_without_generating(client: openai.OpenAI, engine: Engine, model: str) -> None:
    answer = client.completions.create(model=model, prompt=TEXT, max_tokens=0, echo=True, logprobs=1)
    (choice,) = answer.choices
    assert choice.text == TEXT
    assert choice.logprobs is not None
    assert len(choice.logprobs.tokens or []) == len(engine.tokenizer.encode(TEXT))
    assert choice.finish_reason == "length"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 0


def test_twenty_logprobs_at_most(client: openai.OpenAI, model: str) -> None:
    answer = client.completions.create(model=model, prompt=TEXT, max_tokens=1, temperature=0, logprobs=20)
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.top_logprobs is not None
    assert 15 <= len(logprobs.top_logprobs[0]) <= 21  # tokens that look the same share an entry
    with pytest.raises(openai.BadRequestError) as refused:
        client.completions.create(model=model, prompt=TEXT, logprobs=21)
    assert refused.value.param == "logprobs"


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"suffix": "end"}, "suffix"),
        ({"best_of": 2}, "best_of"),
        ({"n": 9}, "n"),
        ({"prompt": [1, 999_999_999]}, "prompt.0"),
        ({"prompt": ["x"] * 129}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [[]]}, "prompt"),
    ],
)
def test_what_cannot_be_done_is_said(client: openai.OpenAI, model: str, options: dict, param: str) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.completions.create(**{"model": model, "prompt": TEXT, "max_tokens": 1, **options})
    assert (refused.value.param or "").startswith(param)
