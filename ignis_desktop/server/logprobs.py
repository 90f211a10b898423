"""Log probabilities in OpenAI's two shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.messages import TokenLogprob

FLOOR = -9999.0
"""What OpenAI's API says for a probability of zero: JSON has no infinity."""

TokenBytes = Callable[[int], bytes]
"""The bytes a token id stands for."""


def _value(logprob: float) -> float:
    return max(logprob, FLOOR)


def _entry(token: bytes, logprob: float) -> dict[str, Any]:
    return {"token": token.decode("utf-8", "replace"), "logprob": _value(logprob), "bytes": list(token)}


def chat_logprobs(tokens: Sequence[TokenLogprob], token_bytes: TokenBytes) -> dict[str, Any]:
    """``choices[].logprobs`` of a chat completion."""
    content = [
        {
            **_entry(token_bytes(token.token_id), token.logprob),
            "top_logprobs": [_entry(token_bytes(token_id), logprob) for token_id, logprob in token.top],
        }
        for token in tokens
    ]
    return {"content": content, "refusal": None}


def completion_logprobs(
    ids: Sequence[int], tokens: Sequence[TokenLogprob | None], token_bytes: TokenBytes, offset: int = 0
) -> dict[str, Any]:
    """``choices[].logprobs`` of a text completion. None stands for a prompt's first token, which nothing precedes.

    ``ids`` are the tokens' ids; ``offset`` is where the first token begins, in characters of the choice's text.
    """
    pieces = [token_bytes(token_id).decode("utf-8", "replace") for token_id in ids]
    offsets = []
    for piece in pieces:
        offsets.append(offset)
        offset += len(piece)
    return {
        "tokens": pieces,
        "token_logprobs": [None if token is None else _value(token.logprob) for token in tokens],
        "top_logprobs": [None if token is None else _top(token, token_bytes) for token in tokens],
        "text_offset": offsets,
    }


def _top(token: TokenLogprob, token_bytes: TokenBytes) -> dict[str, float]:
    """By text; of tokens that look the same the likeliest stays. The chosen token is always among them."""
    top: dict[str, float] = {}
    for token_id, logprob in (*token.top, (token.token_id, token.logprob)):
        top.setdefault(token_bytes(token_id).decode("utf-8", "replace"), _value(logprob))
    return top
