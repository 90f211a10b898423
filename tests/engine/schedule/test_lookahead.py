"""Looking ahead changes when things are computed, and nothing else: the same requests both ways."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.messages import GenerateRequest, Guidance, Prompt
from engine.text.grammar import answer_grammar
from tests.engine.requests import GREEDY, generation
from tests.engine.schedule.both_ways import (
    At,
    Stepped,
    assert_same,
    assert_same_kept,
    both_ways,
    masks_are_never_late,
)

PENALISED: dict[str, Any] = {
    "temperature": 1.1,
    "top_k": 20,
    "seed": 5,
    "repetition_penalty": 1.3,
    "presence_penalty": 0.7,
    "frequency_penalty": 0.2,
    "logit_bias": ((3, 4.0), (9, -3.0)),
    "ignore_eos": True,
}
"""All that the sampler counts, with a cut that bounds what is looked at."""


def ids(length: int, start: int = 0) -> tuple[int, ...]:
    return tuple((start * 31 + n * 7 + n * n * 3) % 250 for n in range(length))


def kept(length: int, start: int = 0) -> Prompt:
    """A prompt of a conversation: the state at its end is kept, and that after the answer."""
    return Prompt(ids(length, start), marks=(length,))


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
    assert_same(*both_ways(folder, requests))


DIVERSE: dict[str, Any] = {**GREEDY, "repetition_penalty": 1.5}
"""The most likely token, but hardly one twice."""


def ended_by_ids(folder: Path, prompts: list[Prompt], options: dict[str, Any], at: list[int]) -> list[GenerateRequest]:
    """Requests whose answers end with about their ``at``-th token, which nobody knows before."""
    dry = Stepped(folder, False)
    dry.ask(*[generation(p, name=f"d{n}", max_tokens=max(at) + 30, **options) for n, p in enumerate(prompts)])
    dry.run()
    requests = []
    for number, (prompt, told) in enumerate(zip(prompts, dry.told.values(), strict=True)):
        end = next(
            token for place, token in enumerate(told.ids) if place >= at[number] and token not in told.ids[:place]
        )
        requests.append(generation(prompt, name=f"r{number}", max_tokens=60, stop_ids=(end,), **options))
    return requests


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
    assert_same(*both_ways(folder, requests))


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


def test_a_context_is_filled_to_its_last_token(folder: Path) -> None:
    plain, ahead = both_ways(folder, [generation(ids(250), name="full", **GREEDY)], max_context=256)
    assert_same(plain, ahead)
    assert len(ahead.told["full"].ids) == 6


def test_rounds_follow_one_another_without_a_step_between(folder: Path) -> None:
    """Once it decodes alone, every step but the last leaves a round under way."""
    _, ahead = both_ways(folder, [generation(ids(9), name="one", max_tokens=12, **GREEDY)])
    assert ahead.flights == [(), *[("one",)] * 11, ()]


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
