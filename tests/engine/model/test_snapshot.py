"""Going on from a kept prefix: bit for bit what a cold run cut at the same place computes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from engine.model.rope import prompt_positions
from tests.engine.model.oracle import IMAGE, PAGE, Pair, picture, text, tokens_of

KEPT = 6
"""The slot of the kept state."""
HELD = [60, 61, 59, 20, 25, 24, 90, 91]
"""The pages of the lane that made the prefix."""

PICTURES = [picture(1, 3, 5), picture(2, 4, 4)]
PROMPT = [*text(1, 30), *tokens_of(3, 5), *text(2, 20), *tokens_of(4, 4), *text(3, 30)]
ANSWER = text(4, 10)


def fork(pair: Pair, tokens: int, slot: int, own: list[int]) -> list[int]:
    """Put a lane after the kept prefix: whole pages shared, the page in progress copied. Returns its pages."""
    whole, rest = divmod(tokens, PAGE)
    if rest:
        pair.network.kv.copy_page(HELD[whole], own[0])
    pair.network.state.copy_to(KEPT, pair.network.state, slot)
    return HELD[:whole] + own


def answer(pair: Pair, slot: int, pages: list[int]) -> Tensor:
    """Logits of a decoded answer."""
    _, delta = prompt_positions(PROMPT, pair.grids(PICTURES), IMAGE)
    context = len(PROMPT)
    return torch.cat([pair.round([token], [context + n], [slot], [pages], [delta]) for n, token in enumerate(ANSWER)])


@pytest.mark.parametrize("cut", [1, 16, 30, 40, 48, 64, 75, 101], ids="after {}".format)
def test_a_fork_equals_the_cold_run(pair: Pair, cut: int) -> None:
    """On and off page edges, in text, inside a picture and after pictures."""
    pages = list(range(10))
    cold = pair.prefill(PROMPT, PICTURES, slot=0, pages=pages, cuts=(cut,))[cut:]
    cold_answer = answer(pair, 0, pages)

    pair.prefill(PROMPT, PICTURES, slot=1, pages=HELD, stop=cut)
    pair.network.state.copy_to(1, pair.network.state, KEPT)
    # The lane that made the prefix goes its own way; what it adds to the page in progress lies behind the prefix.
    for n, token in enumerate(text(5, 20)):
        pair.round([token], [cut + n], [1], [HELD])

    for slot, own in ((2, [70, 71, 72, 100, 101, 102, 103, 104, 105]), (4, list(range(110, 119)))):
        pages = fork(pair, cut, slot, own)
        assert torch.equal(pair.prefill(PROMPT, PICTURES, slot=slot, pages=pages, start=cut), cold)
        assert torch.equal(answer(pair, slot, pages), cold_answer)
