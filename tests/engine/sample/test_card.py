"""Choosing on a card gives the tokens that choosing elsewhere gives (its kernel in its plain form here)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.messages import SamplingParams
from engine.sample.card import MOST
from engine.sample.logprobs import token_logprobs
from engine.sample.sampler import Sampler
from kernels.fused.sampling import CANDIDATES
from tests.engine.sample.test_sampler import PARAMS, logits_like_a_model


def both(lanes: int, vocabulary: int) -> tuple[Sampler, Sampler]:
    return Sampler(lanes, vocabulary, "cpu", on_card=True), Sampler(lanes, vocabulary, "cpu", on_card=False)


ANY = st.builds(
    SamplingParams,
    temperature=st.sampled_from([0.0, 0.2, 1.0, 2.0]),
    top_k=st.sampled_from([0, 1, 5, 60, 300]),
    top_p=st.sampled_from([1.0, 0.97, 0.5, 0.05]),
    min_p=st.sampled_from([0.0, 0.001, 0.3]),
    presence_penalty=st.sampled_from([0.0, 1.5]),
    repetition_penalty=st.sampled_from([1.0, 1.3]),
    logit_bias=st.sampled_from([(), ((3, 4.0), (7, -5.0))]),
    logprobs=st.sampled_from([None, 2]),
)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 1000), st.integers(8, 700), st.lists(ANY, min_size=1, max_size=6))
def test_any_mixture_of_lanes(seed: int, vocabulary: int, mixture: list[SamplingParams]) -> None:
    samplers = both(8, vocabulary)
    lanes = list(range(8))[-len(mixture) :][::-1]
    for sampler in samplers:
        for lane, params in zip(lanes, mixture, strict=True):
            sampler.begin(lane, params, [1, 2, 5], seed + lane)
    for step in range(4):
        logits = logits_like_a_model(seed + step, len(mixture), vocabulary)
        card, plain = (sampler.sample(logits, lanes) for sampler in samplers)
        assert card.ids == plain.ids
        assert card.logprobs == plain.logprobs


@pytest.mark.parametrize("name", PARAMS)
def test_a_large_vocabulary(name: str) -> None:
    logits = logits_like_a_model(4, 4, 20_000)
    found = []
    for sampler in both(4, 20_000):
        for lane in range(4):
            sampler.begin(lane, PARAMS[name], [], seed=lane)
        found.append([sampler.sample(logits, range(4)).ids for _ in range(3)])
    assert found[0] == found[1]


def test_rows_that_cannot_be_sampled_are_faults_of_their_own() -> None:
    logits = torch.randn(4, 300)
    logits[1, 7] = float("nan")
    logits[2] = float("-inf")
    logits[3, 5] = float("inf")
    found = []
    for sampler in both(4, 300):
        for lane in range(4):
            sampler.begin(lane, SamplingParams(temperature=0.0 if lane % 2 else 1.0, logprobs=2), [], seed=1)
        sampled = sampler.sample(logits, range(4))
        assert [logprob is None for logprob in sampled.logprobs] == [False, True, True, True]
        found.append((sampled.ids, {row: error.message for row, error in sampled.faults.items()}))
    assert found[0] == found[1]
    assert list(found[0][1]) == [1, 2, 3]


def test_a_mask_from_outside_is_taken_too() -> None:
    allowed = torch.from_numpy(np.arange(200) % 50 == 3)[None]
    for sampler in both(1, 200):
        sampler.begin(0, SamplingParams(temperature=1.5), [], seed=9)
        assert {sampler.sample(torch.randn(1, 200), [0], mask=allowed).ids[0] % 50 for _ in range(20)} == {3}


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 1000), st.integers(8, 700), st.lists(ANY, min_size=1, max_size=6))
def test_what_is_certain_is_there_before_anybody_waits(
    seed: int, vocabulary: int, mixture: list[SamplingParams]
) -> None:
    """And every greedy lane, and every one with few candidates, is certain."""
    lanes = list(range(len(mixture)))
    for sampler in both(8, vocabulary):
        for lane, params in zip(lanes, mixture, strict=True):
            sampler.begin(lane, params, [1, 2, 5], seed + lane)
        certain = [sampler.certain(lane) for lane in lanes]
        for params, sure in zip(mixture, certain, strict=True):
            few = params.temperature == 0.0 or 0 < params.top_k < min(vocabulary, MOST + 1)
            assert sure == few
        for step in range(3):
            draw = sampler.start(logits_like_a_model(seed + step, len(mixture), vocabulary), lanes)
            tokens = draw.tokens.tolist()
            if all(certain):
                draw.logits.fill_(float("nan"))  # the next round may overwrite them
            sampled = sampler.finish(draw)
            assert [t for t, sure in zip(tokens, certain, strict=True) if sure] == [
                t for t, sure in zip(sampled.ids, certain, strict=True) if sure
            ]
            logits = logits_like_a_model(seed + step, len(mixture), vocabulary)
            for row, params in enumerate(mixture):
                if params.logprobs is None:
                    assert sampled.logprobs[row] is None
                else:
                    expected = token_logprobs(logits[row : row + 1], [sampled.ids[row]], [params.logprobs])
                    assert [sampled.logprobs[row]] == expected


def test_the_card_looks_at_as_many_candidates_as_are_said_to_be_certain() -> None:
    assert CANDIDATES[-1] == MOST
