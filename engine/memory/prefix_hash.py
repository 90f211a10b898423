"""Names of prompt prefixes: a 128-bit hash after each whole block of tokens, chained on the one before.

Two prompts share the name of a prefix exactly when they share its tokens and its pictures. No tensor is touched: the
chain of a prompt is computed in the thread that submits it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import TypeVar

import numpy as np

Pictures = Sequence[tuple[int, bytes]]
"""(position of the first image token, digest of content and grid) of each picture, ascending."""

Candidate = TypeVar("Candidate")

_BYTES = 16
_ROOT = blake2b(b"prefix of no tokens", digest_size=_BYTES).digest()
_TOKEN = np.dtype("<i8")


def prefix_chain(ids: Sequence[int], block: int, pictures: Pictures = ()) -> tuple[bytes, ...]:
    """The names of a prompt's prefixes that end on a block's edge: entry i is of ``(i + 1) · block`` tokens."""
    packed = np.asarray(ids, _TOKEN)
    chain: list[bytes] = []
    last = _ROOT
    first = 0
    for start in range(0, len(ids) - block + 1, block):
        inside = first
        while inside < len(pictures) and pictures[inside][0] < start + block:
            inside += 1
        last = _extend(last, packed[start : start + block], start, pictures[first:inside])
        first = inside
        chain.append(last)
    return tuple(chain)


def tail_hash(chain: Sequence[bytes], ids: Sequence[int], tokens: int, block: int, pictures: Pictures = ()) -> bytes:
    """The name of the prefix of ``tokens`` tokens, on a block's edge or off it.

    Args:
        chain: :func:`prefix_chain` of a prompt that has these tokens.

    Raises:
        ValueError: the prompt or the chain is shorter than the prefix.
    """
    whole, rest = divmod(tokens, block)
    if not 0 < tokens <= len(ids) or whole > len(chain):
        raise ValueError(f"a prompt of {len(ids)} tokens and {len(chain)} blocks has no prefix of {tokens}")
    last = chain[whole - 1] if whole else _ROOT
    if not rest:
        return last
    start = whole * block
    inside = [picture for picture in pictures if start <= picture[0] < tokens]
    return _extend(last, np.asarray(ids[start:tokens], _TOKEN), start, inside)


def longest_match(
    candidates: Iterable[tuple[int, bytes, bool, Candidate]],
    ids: Sequence[int],
    chain: Sequence[bytes],
    block: int,
    pictures: Pictures,
    limit: int,
) -> Candidate | None:
    """The first candidate that is a prefix of the prompt.

    Args:
        candidates: (tokens, name, whether its last column's residual is there, what is returned), longest first.
        limit: most tokens that a match may have. All of the prompt matches only where the last column's residual is
            there: without it no first token could be drawn.
    """
    names: dict[int, bytes] = {}
    for tokens, key, complete, candidate in candidates:
        if tokens > min(limit, len(ids)) or (tokens == len(ids) and not complete):
            continue
        if tokens not in names:
            names[tokens] = tail_hash(chain, ids, tokens, block, pictures)
        if names[tokens] == key:
            return candidate
    return None


def _extend(last: bytes, ids: np.ndarray, start: int, pictures: Pictures) -> bytes:
    """The next link. Lengths stand before what they count, so that no two inputs read alike."""
    link = blake2b(last, digest_size=_BYTES)
    link.update(struct.pack("<qq", len(ids), len(pictures)))
    link.update(ids.tobytes())
    for place, digest in pictures:
        link.update(struct.pack("<qq", place - start, len(digest)) + digest)
    return link.digest()
