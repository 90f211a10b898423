"""Pictures against transformers: the tower, positions, prompts with pictures, text after them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.messages import RequestError
from engine.model.rope import prompt_positions
from tests.engine.model.oracle import IMAGE, Pair, greedy, make_pair, picture, text, tokens_of
from tests.engine.model.test_text_parity import assert_close

TWO_PICTURES = [*text(1, 9), *tokens_of(3, 5), *text(2, 40), *tokens_of(7, 2), *text(3, 21)]


@pytest.fixture
def pictures() -> list[np.ndarray]:
    return [picture(1, 3, 5), picture(2, 7, 2)]


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 6), (5, 1), (3, 4), (9, 8)])
def test_tower(pair: Pair, rows: int, columns: int) -> None:
    """Grids smaller and larger than the 5 × 5 position table."""
    pixels = picture(5, rows, columns)
    assert pair.network.vision is not None
    inputs = pair.hf_inputs(tokens_of(rows, columns), [pixels])
    with torch.no_grad():
        reference = pair.hf.model.get_image_features(inputs["pixel_values"], inputs["image_grid_thw"])
        ours = pair.network.vision.encode(pixels)
    assert ours.shape == (rows * columns, pair.config.text.hidden_size)
    assert_close(ours, reference.pooler_output[0], 2e-5)


def test_tower_by_the_cards_kernel(grouped: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """In Triton's interpreter."""
    assert grouped.network.vision is not None
    plain = grouped.network.vision.encode(picture(5, 3, 4))
    monkeypatch.setenv("IGNIS_KERNELS", "triton")
    assert_close(grouped.network.vision.encode(picture(5, 3, 4)), plain, 1e-3)


def test_tower_piece_by_piece(grouped: Pair) -> None:
    assert grouped.network.vision is not None
    steps = list(grouped.network.vision.steps(picture(5, 3, 4)))
    assert [step is None for step in steps] == [True, True, True, False]
    assert torch.equal(steps[-1], grouped.network.vision.encode(picture(5, 3, 4)))


def test_prefill(pair: Pair) -> None:
    ids = [*tokens_of(6, 4), *text(1, 11)]
    assert_close(pair.prefill(ids, [picture(3, 6, 4)]), pair.reference(ids, [picture(3, 6, 4)]))


def test_pictures_are_seen(grouped: Pair, pictures: list[np.ndarray]) -> None:
    other = [pictures[0], picture(9, 7, 2)]
    difference = grouped.prefill(TWO_PICTURES, pictures) - grouped.prefill(TWO_PICTURES, other)
    assert difference[:67].abs().max() == 0
    assert difference[-1].abs().max() > 0.01


@pytest.mark.parametrize("cuts", [(), (9,), (10,), (17,), (25, 26), (12, 70, 75, 81), (64,), (65, 66)], ids=str)
def test_text_picture_text_picture_text(pair: Pair, pictures: list[np.ndarray], cuts: tuple[int, ...]) -> None:
    """Also cut before, inside and after either picture."""
    assert_close(pair.prefill(TWO_PICTURES, pictures, cuts=cuts), pair.reference(TWO_PICTURES, pictures))


def test_decode_after_pictures(pair: Pair, pictures: list[np.ndarray]) -> None:
    """A picture's tokens use fewer positions than there are tokens: decode goes on from the position."""
    answer, plain = text(7, 12), text(8, 30)
    ids = [*TWO_PICTURES, *answer]
    _, delta = prompt_positions(TWO_PICTURES, pair.grids(pictures), IMAGE)
    assert delta < 0
    pages = [range(20), range(20, 40)]
    pair.prefill(TWO_PICTURES, pictures, slot=0, pages=pages[0])
    pair.prefill(plain[:18], slot=1, pages=pages[1])
    rounds = [
        pair.round([answer[step], plain[18 + step]], [len(TWO_PICTURES) + step, 18 + step], [0, 1], pages, [delta, 0])
        for step in range(12)
    ]
    assert_close(torch.stack([r[0] for r in rounds]), pair.reference(ids, pictures)[-12:])
    assert_close(torch.stack([r[1] for r in rounds]), pair.reference(plain)[-12:])


def test_greedy_text_after_a_picture(pair: Pair) -> None:
    reference, ours = greedy(pair, [*text(1, 6), *tokens_of(4, 4), *text(2, 6)], [picture(6, 4, 4)], 24)
    assert ours == reference
    assert len(set(ours)) > 8


@pytest.fixture(scope="module")
def oracle() -> Pair:
    return make_pair()


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 7), st.integers(1, 7)), max_size=4), st.integers(0, 5))
def test_positions(oracle: Pair, parts: list[tuple[int, int, int]], tail: int) -> None:
    ids, grids = [], []
    for lead, rows, columns in parts:
        ids += [*text(lead, lead), *tokens_of(rows, columns)]
        grids.append((rows, columns))
    ids += text(tail, tail + 1)
    ours, delta = prompt_positions(ids, grids, IMAGE)
    tokens = torch.tensor([ids])
    reference, reference_delta = oracle.hf.model.get_rope_index(
        tokens,
        (tokens == IMAGE).int(),
        image_grid_thw=torch.tensor([[1, 2 * rows, 2 * columns] for rows, columns in grids]) if grids else None,
        attention_mask=torch.ones_like(tokens),
    )
    assert torch.equal(ours, reference[:, 0])
    assert delta == reference_delta.item()


@pytest.mark.parametrize(
    ("ids", "grids", "said"),
    [
        ([1, IMAGE, 2], [], "no image"),
        ([1, IMAGE, IMAGE, 2], [(1, 3)], "do not match"),
        ([1, IMAGE, IMAGE, 2], [(1, 1)], "do not match"),
        ([1, 2], [(1, 1)], "do not match"),
        ([IMAGE, 5, IMAGE], [(1, 2)], "stand together"),
    ],
)
def test_pictures_that_do_not_fit_their_tokens(ids: list[int], grids: list[tuple[int, int]], said: str) -> None:
    with pytest.raises(RequestError, match=said):
        prompt_positions(ids, grids, IMAGE)
