"""The network in bfloat16: every path runs in that type, no further from float32 than transformers' own bfloat16."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from engine.model.rope import prompt_positions
from tests.engine.model.oracle import IMAGE, SHAPES, Pair, make_pair, picture, text, tokens_of

PICTURES = [picture(1, 3, 5)]
PROMPT = [*text(1, 20), *tokens_of(3, 5), *text(2, 60)]
ANSWER = text(3, 6)


@pytest.fixture(scope="module", params=SHAPES)
def low(request: pytest.FixtureRequest) -> Pair:
    """The oracle stays float32."""
    return make_pair(request.param, dtype=torch.bfloat16)


def error(logits: Tensor, exact: Tensor) -> float:
    assert logits.shape == exact.shape
    return ((logits - exact).std() / exact.std()).item()


def test_prefill_and_rounds(low: Pair) -> None:
    ids = [*PROMPT, *ANSWER]
    exact = low.reference(ids, PICTURES)
    rounded = Pair(copy.deepcopy(low.hf).bfloat16(), low.network).reference(ids, PICTURES).float()
    pages = [list(range(10)), list(range(20, 30))]
    _, delta = prompt_positions(PROMPT, low.grids(PICTURES), IMAGE)
    read = [low.prefill(PROMPT, PICTURES, slot=n, pages=pages[n], cuts=(1, 30, 65)) for n in range(2)]
    rounds = [
        low.round([token] * 2, [len(PROMPT) + n] * 2, [0, 1], pages, [delta] * 2) for n, token in enumerate(ANSWER)
    ]
    for lane in range(2):
        ours = torch.cat([read[lane], torch.stack([logits[lane] for logits in rounds])])
        assert ours.dtype == torch.float32
        for part in (slice(None), slice(len(PROMPT), None)):
            assert error(ours[part], exact[part]) <= 1.15 * error(rounded[part], exact[part])
