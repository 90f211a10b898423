"""The text model against transformers: prefill, chunks, decode, rounds, greedy text."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.model.decoder import Run
from tests.engine.model.oracle import PAGES, Pair, greedy, text

TOLERANCE = 1e-4
LENGTH = 200


@pytest.fixture
def ids() -> list[int]:
    return text(1, LENGTH)


def assert_close(ours: Tensor, reference: Tensor, tolerance: float = TOLERANCE) -> None:
    assert ours.shape == reference.shape
    difference = (ours - reference).abs().max().item()
    assert difference <= tolerance


@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 127, 128, 129, LENGTH])
def test_prefill(pair: Pair, ids: list[int], length: int) -> None:
    reference = pair.reference(ids[:length])
    assert reference.abs().max() > 1.0, "logits this small could hide a mistake below the tolerance"
    assert_close(pair.prefill(ids[:length]), reference)


@pytest.mark.parametrize(
    "cuts",
    [(1,), (63,), (64,), (65,), (127,), (128,), (129,), (1, 2, 3, 67, 68), (63, 64, 65, 128, 191), (50, 51, 180, 199)],
    ids=str,
)
def test_chunked_prefill(pair: Pair, ids: list[int], cuts: tuple[int, ...]) -> None:
    assert_close(pair.prefill(ids, cuts=cuts), pair.reference(ids))


@pytest.mark.parametrize("prompt", [0, 1, 66])
def test_decode_token_by_token(pair: Pair, ids: list[int], prompt: int) -> None:
    stop = prompt + 80
    assert_close(pair.prefill(ids[:stop], cuts=range(max(prompt, 1), stop)), pair.reference(ids[:stop]))


def pages_of(lanes: int) -> list[list[int]]:
    """Pages for each lane, nowhere in order."""
    shuffled = np.random.default_rng(0).permutation(PAGES).tolist()
    return [shuffled[lane::lanes] for lane in range(lanes)]


@pytest.mark.parametrize("slots", [(0, 1, 2, 3), (6, 1, 3, 0)], ids=["side by side", "scattered"])
def test_rounds_of_lanes_of_different_lengths(pair: Pair, slots: tuple[int, ...]) -> None:
    lengths, steps = (5, 64, 100, 17), 6
    prompts = [text(10 + lane, length + steps) for lane, length in enumerate(lengths)]
    pages = pages_of(4)
    for slot, own, prompt, length in zip(slots, pages, prompts, lengths, strict=True):
        pair.prefill(prompt[:length], slot=slot, pages=own)
    rounds = [
        pair.round(
            [prompt[n + step] for prompt, n in zip(prompts, lengths, strict=True)],
            [n + step for n in lengths],
            slots,
            pages,
        )
        for step in range(steps)
    ]
    for lane, (prompt, length) in enumerate(zip(prompts, lengths, strict=True)):
        ours = torch.stack([logits[lane] for logits in rounds])
        assert_close(ours, pair.reference(prompt)[length:])
        alone = pair.prefill(prompt, slot=7, cuts=range(length, length + steps))[length:]
        assert_close(ours, alone)


def test_a_round_of_one_lane_leaves_the_others_alone(grouped: Pair) -> None:
    pages = pages_of(3)
    prompts = [text(20 + lane, 40) for lane in range(3)]
    for lane in range(3):
        grouped.prefill(prompts[lane][:30], slot=lane, pages=pages[lane])
    for step in range(30, 40):
        grouped.round([prompts[1][step]], [step], [1], [pages[1]])
    for lane in (0, 2):
        logits = grouped.prefill(prompts[lane], slot=lane, pages=pages[lane], start=30)
        assert_close(logits, grouped.reference(prompts[lane])[30:])


def test_several_runs_in_one_pass(pair: Pair) -> None:
    """Short prompts packed into one pass, beside a lane that goes on and one that decodes."""
    prompts = [text(30, 70), text(31, 1), text(32, 129), text(33, 21)]
    past = [0, 0, 100, 20]
    pages = pages_of(4)
    for slot in range(4):
        pair.network.state.clear(slot)
        if past[slot]:
            pair.prefill(prompts[slot][: past[slot]], slot=slot, pages=pages[slot])
    decoder = pair.network.decoder
    runs, columns, positions = [], [], []
    for slot, prompt in enumerate(prompts):
        runs.append(Run(slot, len(columns), len(prompt) - past[slot], past[slot], pages[slot]))
        columns += prompt[past[slot] :]
        positions += range(past[slot], len(prompt))
    with torch.inference_mode():
        x = decoder.embed(torch.tensor(columns))
        logits = decoder.logits(decoder.forward(x, torch.tensor(positions).expand(3, -1), runs))
    for run, prompt in zip(runs, prompts, strict=True):
        assert_close(logits[run.start : run.start + run.length], pair.reference(prompt)[run.past :])


def test_where_pages_stand_changes_nothing(pair: Pair, ids: list[int]) -> None:
    cuts = (65, 150, 151, 152)
    in_order = pair.prefill(ids, cuts=cuts, pages=range(20, 40))
    assert torch.equal(pair.prefill(ids, cuts=cuts, pages=pages_of(2)[0]), in_order)
    assert torch.equal(pair.prefill(ids, cuts=cuts, pages=[3, 4, 5, 6, *range(90, 110)]), in_order)


def test_a_used_slot_and_used_pages_start_clean(grouped: Pair, ids: list[int]) -> None:
    first = grouped.prefill(ids[:100])
    grouped.prefill(text(2, 180))
    assert torch.equal(grouped.prefill(ids[:100]), first)


def test_greedy_text(pair: Pair) -> None:
    reference, ours = greedy(pair, text(3, 37), [], 64)
    assert ours == reference
    assert len(set(ours)) > 15
