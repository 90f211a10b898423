"""Log probabilities of chosen and likely tokens."""

from __future__ import annotations

import pytest
import torch

from engine.messages import SamplingParams
from engine.sample.logprobs import token_logprobs
from engine.sample.sampler import Sampler


def test_token_and_tops_are_the_log_softmax() -> None:
    logits = torch.randn(3, 5000, generator=torch.Generator().manual_seed(1)) * 4
    truth = logits.double().log_softmax(-1)
    scored = token_logprobs(logits, [17, 4999, 0], [0, 1, 20])
    for row, (entry, token, top) in enumerate(zip(scored, [17, 4999, 0], [0, 1, 20], strict=True)):
        assert entry.token_id == token
        assert entry.logprob == pytest.approx(truth[row, token].item(), abs=2e-5)
        values, ids = truth[row].topk(top)
        assert [i for i, _ in entry.top] == ids.tolist()
        assert [p for _, p in entry.top] == pytest.approx(values.tolist(), abs=2e-5)


def test_more_tops_than_tokens_are_all_tokens() -> None:
    (entry,) = token_logprobs(torch.tensor([[0.0, 1.0, 1.0]]), [1], [20])
    assert [token for token, _ in entry.top] == [1, 2, 0]


def test_no_rows_no_logprobs() -> None:
    assert token_logprobs(torch.empty(0, 10), [], []) == []


def test_lanes_that_ask_get_raw_log_probabilities() -> None:
    """Neither penalties nor temperature nor cuts show in them."""
    logits = torch.randn(3, 800, generator=torch.Generator().manual_seed(2)) * 3
    truth = logits.double().log_softmax(-1)
    sampler = Sampler(3, 800, "cpu")
    bent = {"temperature": 0.4, "top_k": 5, "repetition_penalty": 1.8, "presence_penalty": 1.0}
    sampler.begin(0, SamplingParams(logprobs=0, **bent), range(400), seed=1)
    sampler.begin(1, SamplingParams(**bent), [], seed=2)
    sampler.begin(2, SamplingParams(logprobs=4), [], seed=3)
    for _ in range(4):
        sampled = sampler.sample(logits, [0, 1, 2])
        first, silent, last = sampled.logprobs
        assert silent is None
        assert first is not None
        assert (first.token_id, first.top) == (sampled.ids[0], ())
        assert first.logprob == pytest.approx(truth[0, sampled.ids[0]].item(), abs=2e-5)
        assert last is not None
        assert last.token_id == sampled.ids[2]
        assert [token for token, _ in last.top] == truth[2].topk(4).indices.tolist()
