"""Prompts have exactly the length that is asked for, as the server counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ignis_desktop.bench.prompts import PromptMaker, _tokens_of_words
from ignis_desktop.bench.scenarios.base import Bench
from ignis_desktop.bench.words import WORDS
from ignis_desktop.cli.errors import CommandError


def test_texts_and_chats(with_bench: Callable[..., Any]) -> None:
    async def check(bench: Bench) -> None:
        rng = bench.rng("test")
        for tokens in (1, 2, 7, 40, 501):
            text = await bench.maker.text(rng, tokens)
            answer = await bench.client.post("/v1/tokenize", {"prompt": text})
            assert answer["count"] == tokens, text
        system = {"role": "system", "content": await bench.maker.text(rng, 150)}
        for tokens in (250, 251, 999):
            messages = await bench.maker.chat(rng, tokens, [system])
            assert messages[0] == system
            answer = await bench.client.post("/v1/tokenize", {"messages": messages})
            assert answer["count"] == tokens
            assert await bench.maker.count(messages) == tokens

    with_bench(check)


def test_the_same_seed_makes_the_same(with_bench: Callable[..., Any]) -> None:
    async def texts(bench: Bench) -> list[str]:
        return [await bench.maker.text(bench.rng("a", number), 60) for number in range(3)]

    first = with_bench(texts)
    assert first == with_bench(texts)
    assert len(set(first)) == 3
    assert first != with_bench(texts, seed=1)


def test_what_prompts_share(with_bench: Callable[..., Any]) -> None:
    async def check(bench: Bench) -> None:
        rng = bench.rng("shared")
        system = {"role": "system", "content": await bench.maker.text(rng, 200)}
        one, other = [await bench.maker.chat(rng, 300, [system]) for _ in range(2)]
        shared = await bench.maker.shared(one, other)
        assert 200 < shared < 240
        assert await bench.maker.shared(one, one) == 300

    with_bench(check)


def test_a_prompt_that_is_shorter_than_the_template(with_bench: Callable[..., Any]) -> None:
    async def check(bench: Bench) -> None:
        with pytest.raises(CommandError, match="3 tokens cannot be made"):
            await bench.maker.chat(bench.rng("short"), 3)

    with_bench(check)


def test_tokenizers_that_do_not_cut_at_blanks() -> None:
    text = " " + " ".join(WORDS)
    assert set(_tokens_of_words([text[i : i + 1] for i in range(len(text))])) == set(WORDS)
    with pytest.raises(CommandError, match="does not cut text at blanks"):
        _tokens_of_words([text[i : i + 3] for i in range(0, len(text), 3)])
    with pytest.raises(CommandError, match="no token for any common word"):
        PromptMaker(None, dict.fromkeys(WORDS, 2))  # type: ignore[arg-type]
