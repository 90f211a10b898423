"""Sampling against transformers' logits processors, row by row."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from engine.memory.sizes import sampling_bytes
from engine.messages import EngineError, SamplingParams
from engine.sample.random import uniform
from engine.sample.sampler import Sampler


def warpers(params: SamplingParams) -> LogitsProcessorList:
    chain = LogitsProcessorList()
    chain.append(TemperatureLogitsWarper(params.temperature))
    if params.top_k:
        chain.append(TopKLogitsWarper(params.top_k))
    if params.top_p < 1.0:
        chain.append(TopPLogitsWarper(params.top_p))
    if params.min_p > 0.0:
        chain.append(MinPLogitsWarper(params.min_p))
    return chain


def distribution(logits: Tensor, params: SamplingParams, prompt: list[int] = (), answer: list[int] = ()) -> Tensor:
    """float64 [V]: what the token is drawn from."""
    scores = logits.double()[None].clone()
    if params.repetition_penalty != 1.0:
        context = torch.tensor([[*prompt, *answer]])
        scores = RepetitionPenaltyLogitsProcessor(params.repetition_penalty)(context, scores)
    for token, count in Counter(answer).items():
        scores[0, token] -= params.presence_penalty + params.frequency_penalty * count
    if params.temperature == 0.0:
        return torch.nn.functional.one_hot(scores[0].argmax(), len(logits)).double()
    return warpers(params)(None, scores)[0].softmax(-1)


def look_up(probabilities: Tensor, u: float, *, by_id: bool) -> int:
    """Inverse cumulative distribution, a token at a time."""
    values = probabilities.tolist()
    order = range(len(values)) if by_id else sorted(range(len(values)), key=lambda i: (-values[i], i))
    total = 0.0
    for token in order:
        total += values[token]
        if total > u:
            return token
    raise AssertionError("probabilities do not reach 1")


def expected(logits: Tensor, params: SamplingParams, u: float) -> int:
    unbounded = params.top_p == 1.0 and params.min_p == 0.0 and not 0 < params.top_k < len(logits)
    return look_up(distribution(logits, params), u, by_id=unbounded and params.temperature > 0)


def logits_like_a_model(seed: int, rows: int, vocabulary: int) -> Tensor:
    """A few likely tokens over a long tail."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, vocabulary, generator=generator)
    likely = torch.randint(vocabulary, (rows, 30), generator=generator)
    return x.scatter_add(1, likely, torch.rand(rows, 30, generator=generator) * 9)


PARAMS = {
    "greedy": SamplingParams(temperature=0.0),
    "as given": SamplingParams(),
    "cold": SamplingParams(temperature=0.3),
    "hot": SamplingParams(temperature=1.7),
    "top-k": SamplingParams(top_k=20),
    "top-k 1": SamplingParams(top_k=1),
    "top-k of many": SamplingParams(top_k=90),
    "top-k over the vocabulary": SamplingParams(top_k=10**9),
    "top-p": SamplingParams(top_p=0.9),
    "top-p of almost all": SamplingParams(top_p=0.999),
    "top-p of one": SamplingParams(top_p=0.01),
    "min-p": SamplingParams(min_p=0.05),
    "min-p wide": SamplingParams(min_p=1e-5),
    "model default": SamplingParams(temperature=0.7, top_p=0.8, top_k=20),
    "all cuts": SamplingParams(temperature=1.2, top_p=0.95, top_k=50, min_p=0.02),
    "top-p and min-p": SamplingParams(temperature=1.3, top_p=0.9, min_p=0.01),
}


@pytest.mark.parametrize("vocabulary", [96, 1000, 20_000])
@pytest.mark.parametrize("name", PARAMS)
def test_tokens_are_those_of_the_reference(name: str, vocabulary: int) -> None:
    params = PARAMS[name]
    lanes = 4 if vocabulary > 1000 else 16
    sampler = Sampler(lanes, vocabulary, "cpu")
    logits = logits_like_a_model(vocabulary, lanes, vocabulary)
    for lane in range(lanes):
        sampler.begin(lane, params, [], seed=100 + lane)
    for step in range(3):
        sampled = sampler.sample(logits, range(lanes))
        assert sampled.ids == [expected(logits[lane], params, uniform(100 + lane, step)) for lane in range(lanes)]
        assert not sampled.faults


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 1000),
    st.integers(2, 700),
    st.lists(
        st.builds(
            SamplingParams,
            temperature=st.sampled_from([0.0, 0.2, 1.0, 2.0]),
            top_k=st.sampled_from([0, 1, 5, 300]),
            top_p=st.sampled_from([1.0, 0.97, 0.5, 0.05]),
            min_p=st.sampled_from([0.0, 0.001, 0.3]),
        ),
        min_size=1,
        max_size=6,
    ),
)
def test_lanes_of_any_mixture_draw_as_each_would_alone(
    seed: int, vocabulary: int, mixture: list[SamplingParams]
) -> None:
    logits = logits_like_a_model(seed, len(mixture), vocabulary)
    together = Sampler(len(mixture), vocabulary, "cpu")
    for lane, params in enumerate(mixture):
        together.begin(lane, params, [], seed + lane)
    ids = together.sample(logits, range(len(mixture))).ids
    for lane, params in enumerate(mixture):
        alone = Sampler(1, vocabulary, "cpu")
        alone.begin(0, params, [], seed + lane)
        assert alone.sample(logits[lane : lane + 1], [0]).ids == [ids[lane]]
        assert ids[lane] == expected(logits[lane], params, uniform(seed + lane, 0))


def test_a_stream_depends_on_nothing_but_its_seed_and_logits() -> None:
    vocabulary, steps = 3000, 12
    rounds = [logits_like_a_model(step, 8, vocabulary) for step in range(steps)]
    params = SamplingParams(temperature=1.1, top_p=0.98, presence_penalty=0.7, repetition_penalty=1.2)
    alone = Sampler(8, vocabulary, "cpu")
    alone.begin(3, params, [1, 2, 3], seed=5)
    own = [alone.sample(logits[3:4], [3]).ids[0] for logits in rounds]

    crowd = Sampler(8, vocabulary, "cpu")
    crowd.begin(6, params, [1, 2, 3], seed=5)
    for lane in (0, 1, 2, 3, 4, 5, 7):
        crowd.begin(lane, list(PARAMS.values())[lane], [9], seed=5)
    order = [7, 2, 5, 6, 0, 1, 3, 4]
    found = []
    for step, logits in enumerate(rounds):
        crowded = logits.clone()
        crowded[3] = logits[3]
        width = 8 if step % 2 else 4
        found.append(crowd.sample(crowded[:width], order[:width]).ids[3])
    assert found == own

    again = Sampler(1, vocabulary, "cpu")
    again.begin(0, params, [1, 2, 3], seed=6)
    assert [again.sample(logits[3:4], [0]).ids[0] for logits in rounds] != own


def test_a_lane_begun_again_remembers_nothing() -> None:
    params = SamplingParams(presence_penalty=2.0, frequency_penalty=1.0, repetition_penalty=1.5, top_k=40)
    logits = logits_like_a_model(1, 1, 500)
    sampler = Sampler(2, 500, "cpu")
    runs = []
    for _ in range(2):
        sampler.begin(1, params, [4, 8, 15], seed=11)
        runs.append([sampler.sample(logits, [1]).ids[0] for _ in range(20)])
        sampler.end(1)
    assert runs[0] == runs[1]
    assert len(set(runs[0])) > 5


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(temperature=0.0, presence_penalty=1.5),
        SamplingParams(temperature=0.0, frequency_penalty=0.4),
        SamplingParams(temperature=0.0, frequency_penalty=-0.4, presence_penalty=-0.2),
        SamplingParams(temperature=0.0, repetition_penalty=1.3),
        SamplingParams(temperature=0.0, repetition_penalty=0.8),
        SamplingParams(temperature=0.8, top_p=0.9, repetition_penalty=1.2, presence_penalty=0.5, frequency_penalty=0.3),
    ],
    ids=["presence", "frequency", "rewards", "repetition", "repetition below 1", "all"],
)
def test_penalties_count_what_was_said(params: SamplingParams) -> None:
    vocabulary, prompt = 60, [3, 3, 17, 59]
    generator = torch.Generator().manual_seed(3)
    sampler = Sampler(3, vocabulary, "cpu")
    sampler.begin(1, params, prompt, seed=2)
    sampler.begin(0, SamplingParams(temperature=0.0), prompt, seed=2)
    answer: list[int] = []
    for step in range(40):
        logits = torch.randn(2, vocabulary, generator=generator) * 2
        ids = sampler.sample(logits, [1, 0]).ids
        assert ids[1] == logits[1].argmax().item()
        chances = distribution(logits[0], params, prompt, answer)
        assert ids[0] == look_up(chances, uniform(2, step), by_id=False)
        answer.append(ids[0])


@pytest.mark.parametrize(
    ("params", "left"),
    [
        (SamplingParams(temperature=0.0, presence_penalty=1.5), 3.0 - 1.5),
        (SamplingParams(temperature=0.0, frequency_penalty=0.4), 3.0 - 2 * 0.4),
        (SamplingParams(temperature=0.0, frequency_penalty=0.4, presence_penalty=0.3), 3.0 - 2 * 0.4 - 0.3),
        (SamplingParams(temperature=0.0, repetition_penalty=1.25), 3.0 / 1.25),
        (SamplingParams(temperature=0.0, repetition_penalty=1.25, presence_penalty=0.3), 3.0 / 1.25 - 0.3),
    ],
)
def test_penalties_have_the_size_asked_for(params: SamplingParams, left: float) -> None:
    """Token 5 is said twice; a rival just above or below what is left of its logit tells the penalty's size."""
    for rival, chosen in ((left + 0.01, 9), (left - 0.01, 5)):
        sampler = Sampler(1, 70, "cpu")
        sampler.begin(0, params, [], seed=0)
        logits = torch.zeros(1, 70)
        logits[0, 5] = 100.0
        assert [sampler.sample(logits, [0]).ids[0] for _ in range(2)] == [5, 5]
        logits[0, 5], logits[0, 9] = 3.0, rival
        assert sampler.sample(logits, [0]).ids == [chosen]


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(top_k=7),
        SamplingParams(top_p=0.6),
        SamplingParams(top_p=0.64, top_k=9),
        SamplingParams(top_p=0.9, top_k=5),
        SamplingParams(min_p=0.4),
        SamplingParams(temperature=2.0, min_p=0.4),
        SamplingParams(top_p=0.5, min_p=0.7, top_k=30),
    ],
)
def test_exactly_the_kept_tokens_are_drawn(params: SamplingParams) -> None:
    # A gentle ladder: each token lost or gained shows. Lane 0 asks for more candidates than the others keep.
    lanes, vocabulary = 2000, 70
    ladder = (torch.randperm(vocabulary, generator=torch.Generator().manual_seed(0)) * -0.1)[None]
    sampler = Sampler(lanes, vocabulary, "cpu")
    sampler.begin(0, SamplingParams(top_k=60), [], seed=0)
    for lane in range(1, lanes):
        sampler.begin(lane, params, [], seed=lane)
    drawn = set(sampler.sample(ladder.expand(lanes, -1), range(lanes)).ids[1:])
    assert drawn == set(distribution(ladder[0], params).nonzero()[:, 0].tolist())


@pytest.mark.parametrize("u", [0.0, 1.0 - 2.0**-53])
def test_the_ends_of_the_unit_interval_choose_possible_tokens(monkeypatch: pytest.MonkeyPatch, u: float) -> None:
    monkeypatch.setattr("engine.sample.lane.uniform", lambda seed, step: u)
    logits = torch.full((len(PARAMS), 400), -float("inf"))
    logits[:, 130:133] = torch.tensor([0.0, 0.5, 0.2])
    sampler = Sampler(len(PARAMS), 400, "cpu")
    for lane, params in enumerate(PARAMS.values()):
        sampler.begin(lane, params, [], seed=lane)
    sampled = sampler.sample(logits, range(len(PARAMS)))
    assert set(sampled.ids) <= {130, 131, 132}
    unbounded = list(PARAMS).index("as given")
    assert sampled.ids[unbounded] == (130 if u == 0.0 else 132)


def test_draws_follow_the_distribution() -> None:
    # 200 × 256 draws from each of two distributions; χ² below its 99.9 % quantile (Wilson and Hilferty's formula).
    lanes, rounds, vocabulary = 256, 200, 300
    logits = logits_like_a_model(9, 1, vocabulary).expand(lanes, -1)
    for params in (SamplingParams(temperature=0.9), SamplingParams(temperature=2.0, top_p=0.95, top_k=150)):
        sampler = Sampler(lanes, vocabulary, "cpu")
        for lane in range(lanes):
            sampler.begin(lane, params, [], seed=lane)
        counts = Counter(token for _ in range(rounds) for token in sampler.sample(logits, range(lanes)).ids)
        chances = (distribution(logits[0], params) * lanes * rounds).tolist()
        assert all(chances[token] > 0 for token in counts)
        common = [token for token in range(vocabulary) if chances[token] >= 5]
        rare = sum(chances) - sum(chances[token] for token in common)
        statistic = sum((counts[token] - chances[token]) ** 2 / chances[token] for token in common)
        if rare >= 5:
            statistic += (sum(counts.values()) - sum(counts[token] for token in common) - rare) ** 2 / rare
        freedom = len(common) - (rare < 5)
        assert freedom > 15
        assert statistic < freedom * (1 - 2 / (9 * freedom) + 3.09 * math.sqrt(2 / (9 * freedom))) ** 3


def test_ties_go_to_the_smaller_id() -> None:
    sampler = Sampler(1, 1000, "cpu")
    for params in (SamplingParams(temperature=0.0), SamplingParams(top_k=1), SamplingParams(top_p=1e-6)):
        sampler.begin(0, params, [], seed=1)
        assert sampler.sample(torch.ones(1, 1000), [0]).ids == [0]
    sampler.begin(0, SamplingParams(top_k=3), [], seed=1)
    drawn = {sampler.sample(torch.ones(1, 1000), [0]).ids[0] for _ in range(100)}
    assert drawn == {0, 1, 2}


def test_tiny_temperatures_are_greedy() -> None:
    logits = logits_like_a_model(2, 1, 1000)
    sampler = Sampler(1, 1000, "cpu")
    for temperature in (1e-300, 1e-6, 1e-4):
        for bound in ({}, {"top_p": 0.9}):
            sampler.begin(0, SamplingParams(temperature=temperature, **bound), [], seed=1)
            assert sampler.sample(logits, [0]).ids == [logits.argmax().item()]


@pytest.mark.parametrize("params", [PARAMS["greedy"], PARAMS["as given"], PARAMS["model default"], PARAMS["top-p"]])
@pytest.mark.parametrize(
    ("value", "said"), [(float("nan"), "NaN"), (float("inf"), "\\+∞"), (-float("inf"), "every logit is −∞")]
)
def test_broken_logits_fail_their_own_lane_only(params: SamplingParams, value: float, said: str) -> None:
    logits = logits_like_a_model(4, 3, 700)
    whole = logits.clone()
    if value == -float("inf"):
        logits[1] = value
    else:
        logits[1, 350] = value
    params = replace(params, logprobs=2, presence_penalty=0.1)
    sampler, healthy = Sampler(3, 700, "cpu"), Sampler(3, 700, "cpu")
    for lane in range(3):
        sampler.begin(lane, params, [], seed=lane)
        healthy.begin(lane, params, [], seed=lane)
    got, want = sampler.sample(logits, [0, 1, 2]), healthy.sample(whole, [0, 1, 2])
    assert list(got.faults) == [1]
    assert isinstance(got.faults[1], EngineError)
    with pytest.raises(EngineError, match=said):
        raise got.faults[1]
    assert got.ids == [want.ids[0], -1, want.ids[2]]
    assert got.logprobs == [want.logprobs[0], None, want.logprobs[2]]


def test_a_mask_limits_every_way_of_choosing() -> None:
    vocabulary = 500
    logits = logits_like_a_model(5, len(PARAMS), vocabulary)
    mask = torch.zeros(len(PARAMS), vocabulary, dtype=torch.bool)
    allowed = [7, 100, 499]
    mask[:, allowed] = True
    sampler = Sampler(len(PARAMS), vocabulary, "cpu")
    for lane, params in enumerate(PARAMS.values()):
        sampler.begin(lane, params, [], seed=lane)
    for _ in range(10):
        assert set(sampler.sample(logits, range(len(PARAMS)), mask).ids) <= set(allowed)
    mask[2] = False
    assert list(sampler.sample(logits, range(len(PARAMS)), mask).faults) == [2]


def test_sampling_leaves_the_logits_alone() -> None:
    logits = logits_like_a_model(6, 2, 300)
    before = logits.clone()
    sampler = Sampler(2, 300, "cpu")
    params = SamplingParams(repetition_penalty=1.5, presence_penalty=1.0, top_p=0.99, logprobs=3)
    for lane in range(2):
        sampler.begin(lane, params, [1, 2], seed=lane)
    for _ in range(3):
        sampler.sample(logits, [0, 1])
    assert torch.equal(logits, before)


def test_buffers_are_what_the_plan_counts() -> None:
    assert Sampler(3, 1000, "cpu").nbytes == 3 * sampling_bytes(1000)
