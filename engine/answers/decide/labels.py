"""Labels: names for options that are one token each, so that one logit stands for one option."""

from __future__ import annotations

import string
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, product

from engine.messages import EngineError
from engine.text.tokenizer import Tokenizer

MOST = 256
"""Options of one question."""


@lru_cache(maxsize=8)
def labels(tokenizer: Tokenizer, count: int) -> tuple[tuple[str, int], ...]:
    """(label, token id) for so many options: A–Z, a–z, 0–9, then pairs of letters.

    Raises ``EngineError`` when the tokenizer has too few that are single tokens.
    """
    found = tuple(islice(_single(tokenizer), count))
    if len(found) < count:
        raise EngineError(f"The tokenizer has only {len(found)} labels of one token; {count} options were given.")
    return found


def words(tokenizer: Tokenizer, *texts: str) -> tuple[int, ...] | None:
    """Token ids of words that are one token each; None when one is not."""
    ids = [tokenizer.encode(text) for text in texts]
    return tuple(token for (token,) in ids) if all(len(tokens) == 1 for tokens in ids) else None


def _single(tokenizer: Tokenizer) -> Iterator[tuple[str, int]]:
    pairs = ("".join(pair) for pair in product(string.ascii_uppercase + string.ascii_lowercase, repeat=2))
    for label in (*string.ascii_uppercase, *string.ascii_lowercase, *string.digits, *pairs):
        ids = tokenizer.encode(label)
        if len(ids) == 1:
            yield label, ids[0]
