"""Prompts of exact length: neutral English whose tokens are counted by the server that is measured."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from ignis_desktop.bench.client import LoadClient
from ignis_desktop.bench.words import FILLERS, PATTERN, WORDS
from ignis_desktop.cli.errors import CommandError

TRIES = 8
SHORTEST = "a"
"""One token of every byte-level tokenizer, also at the beginning of a text."""
Message = dict[str, str]


class PromptMaker:
    """Makes texts and conversations with a given number of tokens. The same random state gives the same text."""

    def __init__(self, client: LoadClient, tokens: dict[str, int]) -> None:
        """``tokens``: how many a word takes in the middle of a sentence."""
        self._client = client
        self._tokens = tokens
        self._fillers = [word for word in (*FILLERS, *WORDS) if tokens[word] == 1]
        if not self._fillers:
            raise CommandError("This model's tokenizer has no token for any common word; prompts cannot be sized.")

    @classmethod
    async def create(cls, client: LoadClient) -> PromptMaker:
        text = " " + " ".join(WORDS)
        answer = await client.post("/v1/tokenize", {"prompt": text, "return_token_strs": True})
        return cls(client, _tokens_of_words(answer["token_strs"]))

    async def text(self, rng: random.Random, tokens: int) -> str:
        """A text of exactly so many tokens. Raises ``CommandError`` when there is none."""
        return await self._fit(rng, tokens, self._count_text)

    async def chat(self, rng: random.Random, tokens: int, before: Sequence[Message] = ()) -> list[Message]:
        """A conversation that ends with a new user message, as long as the whole prompt has to be.

        ``before`` are its earlier messages: conversations with the same ones share their beginning.
        """

        async def count(content: str) -> int:
            return await self.count([*before, {"role": "user", "content": content}])

        return [*before, {"role": "user", "content": await self._fit(rng, tokens, count)}]

    async def count(self, messages: Sequence[Message]) -> int:
        """Tokens of the whole prompt, template included."""
        return int((await self._client.post("/v1/tokenize", {"messages": list(messages)}))["count"])

    async def shared(self, one: Sequence[Message], other: Sequence[Message]) -> int:
        """How many tokens two prompts have in common from the beginning."""
        first, second = [
            (await self._client.post("/v1/tokenize", {"messages": list(messages)}))["tokens"]
            for messages in (one, other)
        ]
        same = 0
        while same < min(len(first), len(second)) and first[same] == second[same]:
            same += 1
        return same

    async def _count_text(self, content: str) -> int:
        return int((await self._client.post("/v1/tokenize", {"prompt": content}))["count"])

    async def _fit(self, rng: random.Random, tokens: int, count: Callable[[str], Awaitable[int]]) -> str:
        """Words until ``count`` gives ``tokens``: the table says nearly how many, the server says exactly."""
        words = self._sentences(rng, tokens) or [SHORTEST]
        for _ in range(TRIES):
            text = " ".join(words)
            missing = tokens - await count(text)
            if missing == 0:
                return text
            while missing < 0 and words:
                missing += self._cost(words.pop())
            if not words:
                words.append(SHORTEST)
                missing -= 1
            if missing < 0:
                break
            words += [rng.choice(self._fillers) for _ in range(missing)]
        raise CommandError(f"A prompt of {tokens} tokens cannot be made for this model; its template may be longer.")

    def _sentences(self, rng: random.Random, tokens: int) -> list[str]:
        """Sentences, the last one maybe cut off, of at most ``tokens`` tokens by the table."""
        words: list[str] = []
        while True:
            for place, choices in enumerate(PATTERN):
                word = rng.choice(choices) + ("." if place == len(PATTERN) - 1 else "")
                tokens -= self._cost(word)
                if tokens < 0:
                    return words
                words.append(word)

    def _cost(self, word: str) -> int:
        return self._tokens[word.removesuffix(".")] + word.endswith(".")


def _tokens_of_words(pieces: Sequence[Any]) -> dict[str, int]:
    """Tokens of each of ``WORDS`` after a blank, from the pieces of all of them in a row."""
    counts: dict[str, int] = {}
    rest = list(pieces)[::-1]
    for word in WORDS:
        held, count = "", 0
        while len(held) < len(word) + 1 and rest:
            held += str(rest.pop())
            count += 1
        if held != f" {word}":
            raise CommandError("This model's tokenizer does not cut text at blanks; prompts cannot be sized for it.")
        counts[word] = count
    return counts
