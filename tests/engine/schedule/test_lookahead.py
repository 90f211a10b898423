"""Looking ahead changes when things are computed, and nothing else: the same requests both ways."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from engine.messages import Guidance, Prompt
from engine.model.decoder import Decoder
from engine.schedule.round import END_IDS
from engine.text.grammar import answer_grammar
from tests.engine.requests import GREEDY, generation
from tests.engine.schedule.both_ways import (
    DIVERSE,
    PENALISED,
    At,
    Stepped,
    assert_same,
    assert_same_kept,
    both_ways,
    ended_by_ids,
    ids,
    kept,
    masks_are_never_late,
)


@pytest.fixture(scope="module")
def folder(tiny_folder: Path) -> Path:
    return tiny_folder


def test_greedy_answers_of_many_lengths(folder: Path) -> None:
    requests = [generation(ids(9 + n, n), name=f"r{n}", max_tokens=4 + 5 * n, **GREEDY) for n in range(4)]
    plain, ahead = both_ways(folder, requests)
    assert_same(plain, ahead)
    assert [len(told.ids) for told in ahead.told.values()] == [4, 9, 14, 19]


@pytest.mark.parametrize("logprobs", [None, 3])
@pytest.mark.parametrize("others", [{"top_k": 0}, {"top_k": 0, "top_p": 0.9}, {"temperature": 0.0}])
def test_what_the_sampler_counts(folder: Path, others: dict[str, Any], logprobs: int | None) -> None:
    options = [PENALISED, {**PENALISED, "seed": 6}, {**PENALISED, **others}]
    requests = [
        generation(ids(20, n), name=f"r{n}", max_tokens=30, logprobs=logprobs, **option)
        for n, option in enumerate(options)
    ]
    plain, ahead = both_ways(folder, requests)
    assert_same(plain, ahead)
    # One that the host may have to draw holds back its neighbours too.
    assert bool(ahead.ahead) == (others == {"temperature": 0.0})


@pytest.mark.parametrize("options", [DIVERSE, PENALISED])
@pytest.mark.parametrize("lanes", [3, 4])
def test_end_tokens_come_unforeseen_and_what_is_kept_ends_before_them(
    folder: Path, options: dict[str, Any], lanes: int
) -> None:
    """On all lanes, and with one to spare."""
    prompts = [kept(70 + n, n) for n in range(3)]
    requests = ended_by_ids(folder, prompts, options, [5, 9, 14])
    plain, ahead = both_ways(folder, requests, lanes=lanes)
    assert_same(plain, ahead)
    assert all(told.end[0] == "stop" for told in plain.told.values())  # type: ignore[index]
    everybody = ("r0", "r1", "r2")
    assert everybody in ahead.ahead
    assert any(0 < len(names) < 3 for names in ahead.ahead)
    tokens = sorted(state.tokens for state in ahead.kept().values())
    assert len(tokens) == 6
    written = [len(told.ids) for told in ahead.told.values()]
    assert all(p + n in tokens for p, n in zip((70, 71, 72), written, strict=True))


def test_the_next_turn_starts_from_what_was_kept(folder: Path) -> None:
    (request,) = ended_by_ids(folder, [kept(80)], DIVERSE, [12])
    worlds = both_ways(folder, [request])
    for world in worlds:
        answer = tuple(world.told["r0"].ids)
        turn = Prompt((*request.prompt.ids, *answer, *ids(20, 9)), marks=(80, 100))
        world.ask(generation(turn, name="next", max_tokens=20, logprobs=2, **GREEDY))
        world.run()
        assert world.told["next"].end[2].cached_tokens == 80 + len(answer)  # type: ignore[index]
    assert_same(*worlds)


@pytest.mark.parametrize("prompt", [Prompt(ids(30)), kept(70)])
def test_stop_strings(folder: Path, prompt: Prompt) -> None:
    dry = Stepped(folder, False)
    dry.ask(generation(prompt, name="dry", max_tokens=20, **GREEDY))
    dry.run()
    text = "".join(dry.told["dry"].pieces)
    stop = text[len(text) // 2 :][:3]
    requests = [
        generation(prompt, name="stopped", max_tokens=40, stop=(stop,), **GREEDY),
        generation(ids(11, 3), name="free", max_tokens=30, **GREEDY),
    ]
    plain, ahead = both_ways(folder, requests)
    assert_same(plain, ahead)
    assert plain.told["stopped"].end[:2] == ("stop", stop)  # type: ignore[index]
    # Only the host sees them, and a state that is kept must not have gone beyond them.
    assert any("stopped" in names for names in ahead.ahead) == (not prompt.marks)
    assert ("free",) in ahead.ahead


def test_answers_held_to_something_beside_free_ones(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    masks_are_never_late(monkeypatch)
    tokenizer = Stepped(folder, False).engine.tokenizer
    held = Guidance(answer_grammar(tokenizer, schema={"type": "array", "items": {"enum": list(range(50))}}))
    hot = {"temperature": 1.4, "top_k": 30, "seed": 2, "max_tokens": 60}
    requests = [
        generation(ids(10, 1), name="held", guidance=held, **hot),
        generation(kept(70, 2), name="held and kept", guidance=held, **hot),
        generation(ids(10, 3), name="budget", guidance=Guidance(thinking_budget=6), **hot),
        generation(ids(12, 4), name="free", **{**hot, "ignore_eos": True}),
    ]
    plain, ahead = both_ways(folder, requests)
    assert_same(plain, ahead)
    assert ("held", "held and kept", "budget", "free") in ahead.ahead


def happening(name: str, tokens: int, what: str) -> At:
    return name, tokens, lambda world: getattr(world.scheduler, what)(name)


@pytest.mark.parametrize("tokens", [1, 2, 7])
def test_a_cancel_ends_with_the_token_that_was_told_last(folder: Path, tokens: int) -> None:
    """Its neighbour's rounds are wider by one, so probabilities may differ in their last bits."""
    requests = [
        generation(kept(70, 1), name="gone", max_tokens=30, **GREEDY),
        generation(kept(75, 2), name="stays", max_tokens=30, **GREEDY),
    ]
    plain, ahead = both_ways(folder, requests, [happening("gone", tokens, "cancel")])
    assert ahead.told == plain.told
    assert len(ahead.told["gone"].ids) == tokens
    assert len(ahead.told["stays"].ids) == 30
    assert plain.kept().keys() == ahead.kept().keys()


@pytest.mark.parametrize("tokens", [1, 2, 9])
def test_a_parked_agent_goes_on_bit_for_bit(folder: Path, tokens: int) -> None:
    agent = generation(kept(70, 1), name="agent", request_class="agent", max_tokens=25, logprobs=2, **PENALISED)
    for request in (agent, replace(agent, sampling=replace(agent.sampling, logprobs=None))):
        plain, ahead = both_ways(folder, [request], [happening("agent", tokens, "park")], lanes=2)
        assert_same(plain, ahead)
        assert ahead.ahead
        reuse = ahead.scheduler.lanes.keeper.figures()
        assert (reuse.parks, reuse.resumes) == (1, 1)


@pytest.mark.parametrize("logprobs", [None, 2])
@pytest.mark.parametrize("tokens", [1, 2, 9])
def test_who_makes_room_takes_the_round_under_way_along(folder: Path, tokens: int, logprobs: int | None) -> None:
    """Its token is chosen when it has a lane again, long after."""

    def person(world: Stepped) -> None:
        world.ask(generation(kept(90, 3), name="person", max_tokens=15, **GREEDY))

    options = {**PENALISED, "request_class": "agent", "max_tokens": 25, "logprobs": logprobs}
    agent = generation(kept(70, 1), name="agent", **options)
    plain, ahead = both_ways(folder, [agent], [("agent", tokens, person)], lanes=1)
    assert_same(plain, ahead)
    assert [len(told.ids) for told in ahead.told.values()] == [25, 15]
    reuse = ahead.scheduler.lanes.keeper.figures()
    assert (reuse.parks, reuse.resumes) == (1, 1)


def test_lanes_are_left_and_taken_between_rounds(folder: Path) -> None:
    requests = [generation(ids(9 + n, n), name=f"r{n}", max_tokens=3 + 4 * n, **PENALISED) for n in range(6)]
    plain, ahead = both_ways(folder, requests, lanes=2)
    assert {name: told.ids for name, told in ahead.told.items()} == {
        name: told.ids for name, told in plain.told.items()
    }


def test_prompts_are_read_between_rounds(folder: Path) -> None:
    def more(world: Stepped) -> None:
        world.ask(generation(kept(300, 8), name="late", max_tokens=12, **GREEDY))

    requests = [generation(kept(70, n), name=f"r{n}", max_tokens=30, **GREEDY) for n in range(2)]
    plain, ahead = both_ways(folder, requests, [("r0", 6, more)], prefill_chunk=128)
    assert ahead.told == plain.told
    assert len(ahead.told["late"].ids) == 12
    assert plain.kept().keys() == ahead.kept().keys()


def test_who_needs_no_prompt_read_begins_beside_a_round_under_way(folder: Path) -> None:
    def again(world: Stepped) -> None:
        world.ask(generation(kept(70), name="again", max_tokens=12, **DIVERSE))

    requests = [generation(kept(70), name="first", max_tokens=20, **DIVERSE)]
    plain, ahead = both_ways(folder, requests, [("first", 5, again)])
    assert ahead.told == plain.told
    assert ahead.told["again"].ids == ahead.told["first"].ids[:12]
    assert ahead.told["again"].end[2].cached_tokens == 70  # type: ignore[index]


def test_a_context_is_filled_to_its_last_token(folder: Path) -> None:
    plain, ahead = both_ways(folder, [generation(ids(250), name="full", **GREEDY)], max_context=256)
    assert_same(plain, ahead)
    assert len(ahead.told["full"].ids) == 6


def test_rounds_follow_one_another_without_a_step_between(folder: Path) -> None:
    """Once it decodes, every step leaves a round under way, launched before the tokens are known; what its last round
    would give is known to be unwanted."""
    _, ahead = both_ways(folder, [generation(ids(9), name="one", max_tokens=12, **GREEDY)])
    assert ahead.flights == [(), *[("one",)] * 11, ()]
    assert ahead.ahead == [("one",)] * 10


def test_states_in_the_air_are_not_kept(folder: Path) -> None:
    """What is asked between two rounds finds everything as if none were under way."""
    seen: list[tuple[int, int]] = []

    def look(world: Stepped) -> None:
        sequence = world.running("r")
        seen.append((len(sequence.generated), sequence.snapshot(0.0).context))

    both_ways(folder, [generation(ids(9), name="r", max_tokens=12, **GREEDY)], [("r", 4, look)])
    assert seen == [(4, 12), (4, 12)]
    plain, ahead = both_ways(folder, [generation(kept(66), name="r", max_tokens=12, **GREEDY)])
    assert_same_kept(plain, ahead)


def test_more_end_tokens_than_the_device_looks_for(folder: Path) -> None:
    many = tuple(range(240, 240 + END_IDS + 1))
    requests = [generation(kept(70), name="many", max_tokens=12, stop_ids=many, **DIVERSE)]
    plain, ahead = both_ways(folder, requests)
    assert_same(plain, ahead)
    assert not ahead.ahead
    requests = [generation(ids(70), name="many", max_tokens=12, stop_ids=many, **DIVERSE)]
    plain, ahead = both_ways(folder, requests)
    assert_same(plain, ahead)
    assert ahead.ahead, "nobody wants the state"


def test_logits_that_are_no_numbers_end_their_own_request(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logits = Decoder.logits

    def poisoned(decoder: Decoder, hidden: Tensor) -> Tensor:
        found = logits(decoder, hidden)
        if len(found) == 2:
            found[1] = float("nan")
        return found

    monkeypatch.setattr(Decoder, "logits", poisoned)

    def second(world: Stepped) -> None:
        world.ask(generation(kept(80), name="poisoned", max_tokens=12, **GREEDY))

    requests = [generation(kept(70), name="healthy", max_tokens=20, **GREEDY)]
    plain, ahead = both_ways(folder, requests, [("healthy", 4, second)])
    assert ahead.told == plain.told
    assert "NaN" in str(ahead.told["poisoned"].end)
    assert len(ahead.told["healthy"].ids) == 20


def test_a_round_that_fails_ends_those_in_it_after_their_tokens(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault comes a token later than it is computed: what was chosen before is told."""
    forward = Decoder.forward

    def failing(decoder: Decoder, x: Tensor, positions: Tensor, runs: Any, **options: Any) -> Tensor:
        if runs[0].length == 1 and runs[0].past == 15:
            raise RuntimeError("no luck")
        return forward(decoder, x, positions, runs, **options)

    monkeypatch.setattr(Decoder, "forward", failing)
    requests = [generation(ids(9, n), name=f"r{n}", max_tokens=20, **GREEDY) for n in range(2)]
    plain, ahead = both_ways(folder, requests)
    assert_same(plain, ahead)
    assert {len(told.ids) for told in ahead.told.values()} == {7}
    assert "no luck" in str(ahead.told["r0"].end)
    for world in (plain, ahead):
        world.ask(generation(ids(20), name="after", max_tokens=4, **GREEDY))
        world.run()
    assert_same(plain, ahead)
    assert len(ahead.told["after"].ids) == 4
