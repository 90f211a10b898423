"""Lookahead over the card's decoder, its kernels in their plain forms. There a lane that ended still has a column in
the round, which stays as wide as it was."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine import compute
from engine.memory.sizes import round_bytes
from engine.model.fused_decoder import FusedDecoder
from engine.sample.sampler import Sampler
from engine.schedule import scheduler
from engine.schedule.round import Round
from tests.engine.requests import generation
from tests.engine.schedule.both_ways import DIVERSE, PENALISED, Stepped, assert_same, both_ways, ended_by_ids, kept
from tests.tiny import write_tiny


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model of a shape that the kernels serve."""
    return write_tiny(tmp_path_factory.mktemp("served"), gdn_dim=16)


@pytest.fixture(autouse=True)
def fused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compute, "choice", lambda: "triton")


@pytest.mark.parametrize("on_card", [False, True])
def test_one_lane_and_what_is_kept_of_it(served: Path, monkeypatch: pytest.MonkeyPatch, on_card: bool) -> None:
    """With no neighbours to change it, bit for bit; ``on_card``: tokens are chosen by the card's kernel."""
    if on_card:
        sampler = partial(Sampler, on_card=True)
        monkeypatch.setattr(scheduler, "Sampler", sampler)
    options = {**PENALISED, "repetition_penalty": 1.5, "logprobs": 2}
    (request,) = ended_by_ids(served, [kept(70)], options, [6], dtype="bfloat16")
    plain, ahead = both_ways(served, [request], dtype="bfloat16")
    assert isinstance(ahead.scheduler._network.decoder, FusedDecoder)
    assert_same(plain, ahead)
    assert len(ahead.kept()) == 2
    assert ahead.ahead[-1] == ("r0",)
    written = len(ahead.told["r0"].ids)
    assert len(ahead.ahead) == written, "the last of them was in vain"


def test_a_lane_that_ended_is_no_matter_to_its_neighbours(served: Path) -> None:
    prompts = [kept(66 + n, n) for n in range(3)]
    requests = ended_by_ids(served, prompts, PENALISED, [4, 7, 9], dtype="bfloat16")
    plain, ahead = both_ways(served, requests, dtype="bfloat16")
    assert ahead.told == plain.told
    assert plain.kept().keys() == ahead.kept().keys()
    for key, state in plain.kept().items():
        other = ahead.kept()[key]
        for name, tensor in state.tensors.items():
            assert relative(other.tensors[name], tensor) < 2e-2, name


def test_the_column_of_a_lane_that_ended_leaves_nothing_behind(served: Path) -> None:
    """Not in the lane, which all are held by, nor anywhere in the pool."""
    (request,) = ended_by_ids(served, [kept(70)], DIVERSE, [5], dtype="bfloat16", lanes=1)
    found = []
    for lookahead in (False, True):
        world = Stepped(served, lookahead, dtype="bfloat16", lanes=1)
        network = world.scheduler._network
        network.kv._rows.zero_()
        world.ask(request)
        world.run()
        found.append((*network.state.buffers, network.kv._rows, len(world.ahead)))
    *plain, _ = found[0]
    *ahead, launched = found[1]
    assert launched == len(world.told["r0"].ids), "the last of them was in vain"
    assert all(torch.equal(one, other) for one, other in zip(plain, ahead, strict=True))


def test_where_it_cannot_be_done_rounds_wait_for_their_tokens(
    served: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = Stepped(served, True, dtype="bfloat16")
    world.scheduler._rehearse()
    assert world.scheduler._lookahead
    assert not caplog.records

    def refused(self: Round) -> None:
        raise RuntimeError("no event is to be had")

    monkeypatch.setattr(Round, "rehearse", refused)
    world.scheduler._rehearse()
    assert "no event is to be had" in caplog.text
    world.ask(generation(kept(70), name="r", max_tokens=6, **DIVERSE))
    world.run()
    assert len(world.told["r"].ids) == 6
    assert not world.ahead


@pytest.mark.parametrize("lanes", [3, 8, 16])
def test_a_rounds_buffers_are_planned(served: Path, lanes: int) -> None:
    world = Stepped(served, True, dtype="bfloat16", lanes=lanes)
    pages = world.scheduler.lanes.pages_each
    assert world.scheduler._round_buffers.nbytes <= round_bytes(lanes, pages, 1)


def relative(found: Tensor, wanted: Tensor) -> float:
    return float((found.float() - wanted.float()).norm() / wanted.float().norm())
