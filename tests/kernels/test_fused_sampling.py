"""Sampling on the card, in Triton's interpreter: the same tokens as the engine's own sampling."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from engine.messages import SamplingParams
from engine.sample.draw import draw
from engine.sample.ranking import Ranking
from kernels.fused.sampling import DIVISOR, MASK, REDUCTION, Chosen, Settings, sample
from tests.kernels.compare import randn


@pytest.fixture(params=["reference", "triton"], autouse=True)
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IGNIS_KERNELS", request.param)


@dataclass
class Row:
    params: SamplingParams
    uniform: float


def settings(rows: list[Row], vocabulary: int, **changed: Tensor) -> Settings:
    numbers = []
    for row in rows:
        params = row.params
        top_k = params.top_k if 0 < params.top_k < vocabulary else vocabulary
        greedy = params.temperature == 0
        numbers.append([params.temperature or 1.0, params.top_p, params.min_p, 1 if greedy else top_k, row.uniform])
    count = len(rows)
    given = {
        "numbers": torch.tensor(numbers, dtype=torch.float64),
        "rows": torch.arange(count, dtype=torch.int32),
        "flags": torch.zeros(count, dtype=torch.int32),
        "divisor": torch.ones(count, vocabulary),
        "reduction": torch.zeros(count, vocabulary),
        "mask": torch.zeros(count, (vocabulary + 31) // 32, dtype=torch.int32),
    }
    changed = {"rows" if name == "lanes" else name: value for name, value in changed.items()}
    return Settings(**(given | changed))


def expected(scores: Tensor, rows: list[Row]) -> list[int]:
    ranking = Ranking(scores)
    best, ids = ranking.best()
    tokens = ids.tolist()
    drawn = [n for n, row in enumerate(rows) if row.params.temperature > 0]
    for n, token in zip(drawn, draw(ranking, best, drawn, [rows[n] for n in drawn]), strict=True):
        tokens[n] = token
    return tokens


def logits_of(count: int, vocabulary: int, seed: int) -> Tensor:
    """Rounded, so that there are ties."""
    return (3 * randn(count, vocabulary, seed=seed)).mul(4).round() / 4


def decided(chosen: Chosen) -> list[bool]:
    return [bool(value) for value in chosen.report[:, 2].tolist()]


@pytest.mark.parametrize("vocabulary", [70, 5000])
def test_the_same_tokens(vocabulary: int) -> None:
    rows = [
        Row(SamplingParams(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p), u)
        for temperature, top_k, top_p, min_p, u in [
            (0.0, 0, 1.0, 0.0, 0.3),
            (1.0, 20, 0.95, 0.0, 0.0),
            (0.7, 20, 0.8, 0.0, 0.999999),
            (1.0, 32, 1.0, 0.0, 0.73),
            (0.2, 0, 0.9, 0.0, 0.4),
            (0.3, 0, 1.0, 0.2, 0.9),
            (2.0, 7, 0.5, 0.1, 0.6),
            (1e-3, 5, 1.0, 0.0, 0.5),
        ]
    ]
    logits = logits_of(len(rows), vocabulary, 1)
    chosen = sample(logits, settings(rows, vocabulary))
    assert decided(chosen) == [True] * len(rows)
    assert chosen.ids.tolist() == expected(logits, rows)
    own = logits.double().log_softmax(-1).gather(1, chosen.ids[:, None])[:, 0]
    assert (chosen.report[:, 1] - own).abs().max() < 1e-5
    assert torch.equal(chosen.report[:, 0], logits.amax(-1))


def test_every_part_of_a_distribution_is_drawn() -> None:
    grid = [n / 16 for n in range(16)]
    rows = [Row(SamplingParams(temperature=1.0, top_k=8, top_p=0.97), u) for u in grid]
    logits = logits_of(1, 300, 4).repeat(len(rows), 1)
    tokens = sample(logits, settings(rows, 300)).ids.tolist()
    assert tokens == expected(logits, rows)
    assert len(set(tokens)) >= 4


def test_more_candidates_and_what_stays_undecided() -> None:
    rows = [
        Row(SamplingParams(temperature=1.0, top_k=100), 0.99),
        Row(SamplingParams(temperature=3.0, top_p=0.99), 0.5),  # keeps more than are looked at
        Row(SamplingParams(temperature=1.0), 0.5),  # nothing bounds it
        Row(SamplingParams(temperature=1.0, top_k=2000), 0.5),
        Row(SamplingParams(temperature=0.0), 0.5),
    ]
    logits = logits_of(len(rows), 5000, 2)
    chosen = sample(logits, settings(rows, 5000), candidates=128)
    assert decided(chosen) == [True, False, False, False, True]
    assert [chosen.ids[0].item(), chosen.ids[4].item()] == [expected(logits, rows)[n] for n in (0, 4)]
    assert chosen.ids[1:4].tolist() == logits[1:4].argmax(-1).tolist()
    few = sample(logits, settings(rows, 5000), candidates=1)
    assert decided(few) == [False, False, False, False, True]
    assert few.ids.tolist() == Ranking(logits).best()[1].tolist()


def test_penalties_and_mask_by_the_lanes_row() -> None:
    vocabulary = 4200
    rows = [Row(SamplingParams(temperature=1.0, top_k=5), u) for u in (0.1, 0.5, 0.9, 0.7)]
    logits = logits_of(4, vocabulary, 3)
    divisor, reduction = torch.ones(6, vocabulary), torch.zeros(6, vocabulary)
    lanes = torch.tensor([5, 0, 3, 2], dtype=torch.int32)
    for row, lane in enumerate(lanes.tolist()):
        top = logits[row].topk(40).indices
        divisor[lane, top[::2]] = 1.3
        divisor[lane, :9] = 1.7
        reduction[lane, top[1::3]] = 1.5
    allowed = torch.rand(4, vocabulary, generator=torch.Generator().manual_seed(1)) < 0.1
    words = torch.zeros(4, (vocabulary + 31) // 32 * 32, dtype=torch.int64)
    words[:, :vocabulary] = allowed
    bits = (words.view(4, -1, 32) << torch.arange(32)).sum(-1)
    bits = torch.where(bits >= 1 << 31, bits - (1 << 32), bits).int()
    flags = torch.tensor([DIVISOR, REDUCTION, DIVISOR | REDUCTION | MASK, MASK], dtype=torch.int32)
    scores = logits.clone()
    for row in (0, 2):
        d = divisor[lanes[row]]
        scores[row] = torch.where(scores[row] > 0, scores[row] / d, scores[row] * d)
    for row in (1, 2):
        scores[row] -= reduction[lanes[row]]
    scores[2:] = scores[2:].masked_fill(~allowed[2:], float("-inf"))
    given = settings(rows, vocabulary, lanes=lanes, flags=flags, divisor=divisor, reduction=reduction, mask=bits)
    before = [logits.clone(), divisor.clone(), reduction.clone()]
    chosen = sample(logits, given)
    assert chosen.ids.tolist() == expected(scores, rows)
    assert torch.equal(chosen.report[:, 0], scores.amax(-1))
    own = logits.double().log_softmax(-1).gather(1, chosen.ids[:, None])[:, 0]
    assert (chosen.report[:, 1] - own).abs().max() < 1e-5
    assert all(torch.equal(a, b) for a, b in zip((logits, divisor, reduction), before, strict=True))


def test_faults_are_seen() -> None:
    rows = [Row(SamplingParams(temperature=1.0, top_k=5), 0.5)] * 3
    logits = logits_of(3, 5000, 3)
    logits[0, 4321] = float("nan")
    logits[1, 17] = float("inf")
    flags = torch.tensor([0, 0, MASK], dtype=torch.int32)
    chosen = sample(logits, settings(rows, 5000, flags=flags))
    assert decided(chosen) == [False] * 3
    assert chosen.report[0, 0].isnan()
    assert chosen.report[1:, 0].tolist() == [float("inf"), float("-inf")]


def test_sizes_that_do_not_fit() -> None:
    rows = [Row(SamplingParams(), 0.5)]
    with pytest.raises(ValueError, match="not 20"):
        sample(torch.zeros(1, 64), settings(rows, 64), candidates=20)
    with pytest.raises(ValueError, match="divisor of 64 logits"):
        sample(torch.zeros(1, 64), settings(rows, 64, divisor=torch.ones(1, 63)))
    with pytest.raises(ValueError, match="mask"):
        sample(torch.zeros(1, 64), settings(rows, 64, mask=torch.zeros(1, 1, dtype=torch.int32)))
