"""Looking ahead while every lane is held by a conversation: the end of each answer is kept, it comes with a token that
nobody foresaw, and others wait for the lane."""

from __future__ import annotations

from collections.abc import Sequence as Many
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine import compute
from engine.messages import GenerateRequest, Prompt
from tests.engine.requests import GREEDY, generation
from tests.engine.schedule.both_ways import (
    DIVERSE,
    PENALISED,
    At,
    Stepped,
    assert_same,
    both_ways,
    ended_by_ids,
    ids,
    kept,
)
from tests.tiny import write_tiny

LANES = 3
ENDS = [4, 11, 6, 9, 2, 13]


@pytest.fixture(scope="module")
def folder(tiny_folder: Path) -> Path:
    return tiny_folder


def conversations(folder: Path, options: dict[str, Any], **config: Any) -> list[GenerateRequest]:
    """Twice as many as there are lanes."""
    return ended_by_ids(folder, [kept(66 + 5 * n, n) for n in range(2 * LANES)], options, ENDS, **config)


def expire(name: str) -> At:
    """Its time is up after three tokens."""

    def happens(world: Stepped) -> None:
        sequence = world.running(name)
        sequence.request = replace(sequence.request, deadline=0.0)

    return name, 3, happens


def asked(what: str, name: str, tokens: int) -> At:
    return name, tokens, lambda world: getattr(world.scheduler, what)(name)


@pytest.mark.parametrize("logprobs", [None, 2])
@pytest.mark.parametrize("options", [DIVERSE, PENALISED])
def test_lanes_that_ended_are_taken_at_once(folder: Path, options: dict[str, Any], logprobs: int | None) -> None:
    requests = conversations(folder, {**options, "logprobs": logprobs}, lanes=1)
    plain, ahead = both_ways(folder, requests, lanes=1)
    assert_same(plain, ahead)
    assert all(told.end[0] == "stop" for told in ahead.told.values())  # type: ignore[index]
    assert len(ahead.kept()) == 2 * len(requests)
    # Each round but an answer's first, and one in vain.
    assert len(ahead.ahead) == sum(len(told.ids) for told in ahead.told.values())


@pytest.mark.parametrize(
    "happenings",
    [
        [asked("cancel", "r1", 5)],
        [asked("park", "r1", 5), asked("park", "r0", 2)],
        [expire("r1")],
        [asked("park", "r1", 2), asked("cancel", "r3", 4), expire("r5")],
    ],
)
def test_what_happens_between_rounds(folder: Path, happenings: list[At]) -> None:
    """Who ran ahead in vain stays a neighbour for a round, so states may differ in their last bits."""
    requests = [replace(r, request_class="agent") for r in conversations(folder, DIVERSE)]
    plain, ahead = both_ways(folder, requests, happenings, lanes=LANES)
    assert ahead.told == plain.told
    assert any(len(names) == LANES for names in ahead.ahead)
    before, after = plain.kept(), ahead.kept()
    assert before.keys() == after.keys()
    for key, state in before.items():
        for name, tensor in state.tensors.items():
            torch.testing.assert_close(after[key].tensors[name], tensor, rtol=1e-3, atol=1e-4, msg=name)


def test_what_is_parked_at_full_load_goes_on_bit_for_bit(folder: Path) -> None:
    """A person takes the only lane, the round of whose holder is under way, and both are conversations."""

    def person(world: Stepped) -> None:
        world.ask(replace(requests[1], id="person", request_class="interactive"))

    requests = conversations(folder, PENALISED, lanes=1)
    agent = replace(requests[5], request_class="agent")
    plain, ahead = both_ways(folder, [agent], [(agent.id, 6, person)], lanes=1)
    assert_same(plain, ahead)
    reuse = ahead.scheduler.lanes.keeper.figures()
    assert (reuse.parks, reuse.resumes) == (1, 1)
    assert len(ahead.kept()) == 4
    assert {("person",), (agent.id,)} <= set(ahead.ahead)


def next_turns(worlds: Many[Stepped], requests: list[GenerateRequest]) -> dict[str, int]:
    """Ask all what follows the answers of the first world. Returns how many tokens each turn goes on from."""
    ends: dict[str, int] = {}
    for request in requests:
        before = (*request.prompt.ids, *worlds[0].told[request.id].ids)
        ends[f"next {request.id}"] = len(before)
        turn = Prompt((*before, *ids(20, 9)), marks=(len(before),))
        for world in worlds:
            world.ask(generation(turn, name=f"next {request.id}", max_tokens=8, logprobs=2, **GREEDY))
    for world in worlds:
        world.run()
    return ends


def test_next_turns_go_on_where_answers_ended(folder: Path) -> None:
    """Bit for bit as without lookahead, and as where nothing was kept but for the order of sums."""
    requests = conversations(folder, DIVERSE, lanes=1)
    plain, ahead = both_ways(folder, requests, lanes=1)
    cold = Stepped(folder, False, lanes=1)
    ends = next_turns([plain, ahead, cold], requests)
    assert_same(plain, ahead)
    for name, tokens in ends.items():
        warm, alone = ahead.told[name], cold.told[name]
        assert (warm.end[2].cached_tokens, alone.end[2].cached_tokens) == (tokens, 0)  # type: ignore[index]
        assert warm.ids == alone.ids
        assert [p.logprob for p in warm.logprobs] == pytest.approx([p.logprob for p in alone.logprobs], abs=1e-4)


def test_next_turns_of_the_cards_decoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one lane, since there one that ended is a neighbour for a round more."""
    monkeypatch.setattr(compute, "choice", lambda: "triton")
    served = write_tiny(tmp_path / "served", gdn_dim=16)
    config: dict[str, Any] = {"lanes": 1, "dtype": "bfloat16"}
    requests = conversations(served, PENALISED, **config)
    plain, ahead = both_ways(served, requests, **config)
    ends = next_turns([plain, ahead], requests)
    assert_same(plain, ahead)
    assert {name: ahead.told[name].end[2].cached_tokens for name in ends} == ends  # type: ignore[index]
