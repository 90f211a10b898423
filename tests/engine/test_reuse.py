"""State outlives its request: a later prompt with the same beginning starts from it, and nobody can tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from engine import Engine
from engine.messages import PAGE_KEPT, PAGE_SHARED, Prompt
from tests.conftest import LoadTiny
from tests.engine.requests import (
    GREEDY,
    Answer,
    Passes,
    collect,
    generate,
    generation,
    read,
    settled,
    text_ids,
)

SCORED = {**GREEDY, "logprobs": 5}


def prompt(engine: Engine, length: int, start: int = 0, *, marks: tuple[int, ...] = ()) -> Prompt:
    return Prompt(text_ids(engine, length, start), marks=marks)


def branch(engine: Engine, trunk: Prompt, length: int, start: int) -> Prompt:
    """Another prompt with the same beginning and the same marks."""
    return replace(trunk, ids=trunk.ids + text_ids(engine, length, start))


def told(answer: Answer) -> tuple[object, ...]:
    return answer.ids, answer.logprobs


@pytest.mark.parametrize("mark", [64, 100, 128, 200])
def test_a_branch_equals_a_cold_run_bit_for_bit(load_tiny: LoadTiny, mark: int) -> None:
    """On and off a page's edge: a cold engine cuts the prompt at the same mark."""
    warm, cold = load_tiny(), load_tiny()
    trunk = prompt(warm, mark, marks=(mark,))
    generate(warm, branch(warm, trunk, 30, 5), max_tokens=3, **SCORED)
    for start in (6, 7):
        wanted = generate(cold, branch(cold, trunk, 40, start), max_tokens=8, **SCORED)
        found = generate(warm, branch(warm, trunk, 40, start), max_tokens=8, **SCORED)
        assert told(found) == told(wanted)
        assert found.end.usage.cached_tokens == mark
        cold.close()
        cold = load_tiny()
    reuse = settled(warm).reuse
    assert (reuse.hits, reuse.misses, reuse.cached_tokens) == (2, 1, 2 * mark)


def test_the_same_prompt_again_is_not_read_at_all(load_tiny: LoadTiny, passes: Passes) -> None:
    engine = load_tiny()
    whole = prompt(engine, 150, marks=(150,))
    first = generate(engine, whole, max_tokens=6, **SCORED)
    passes.runs.clear()
    again = generate(engine, whole, max_tokens=6, **SCORED)
    assert told(again) == told(first)
    assert (again.end.usage.prompt_tokens, again.end.usage.cached_tokens) == (150, 150)
    assert all(run.length == 1 for runs in passes.runs for run in runs)
    assert len(passes.runs) == 5


def test_the_next_turn_goes_on_after_the_answer(load_tiny: LoadTiny) -> None:
    engine = load_tiny()
    first = prompt(engine, 120, marks=(70, 120))
    answer = generate(engine, first, max_tokens=20, **SCORED)
    following = Prompt(first.ids + tuple(answer.ids) + text_ids(engine, 30, 9), marks=(70, 165))
    second = generate(engine, following, max_tokens=4, **SCORED)
    # The last token of an answer is chosen, not read.
    assert second.end.usage.cached_tokens == 120 + 19
    whole = generate(load_tiny(), following, max_tokens=4, **GREEDY)
    assert second.ids == whole.ids


def test_a_chat_marks_its_system_block_and_its_answer(load_tiny: LoadTiny) -> None:
    engine = load_tiny(max_context=512)
    system = {"role": "system", "content": "one two three four five six seven eight nine ten " * 3}
    asked = [system, {"role": "user", "content": "hello there"}]
    first = engine.chat_prompt(asked)
    assert len(first.marks) == 2
    assert first.marks[0] > 64
    answer = generate(engine, first, max_tokens=5, **GREEDY)
    assert answer.end.usage.cached_tokens == 0
    other = generate(
        engine, engine.chat_prompt([system, {"role": "user", "content": "another"}]), max_tokens=2, **GREEDY
    )
    assert other.end.usage.cached_tokens == first.marks[0]
    turn = [*asked, {"role": "assistant", "content": "well"}, {"role": "user", "content": "and?"}]
    second = generate(engine, engine.chat_prompt(turn), max_tokens=2, **GREEDY)
    assert second.end.usage.cached_tokens == first.marks[1]


def test_siblings_hold_a_common_beginning_once(load_tiny: LoadTiny, passes: Passes) -> None:
    engine = load_tiny(lanes=4)
    trunk = prompt(engine, 192, marks=(192,))
    generate(engine, branch(engine, trunk, 10, 1), max_tokens=1, **GREEDY)
    before = settled(engine)
    kept = before.pages_total - before.pages_free
    passes.hold()
    streams = [
        engine.submit(generation(branch(engine, trunk, 20, start), max_tokens=30, **GREEDY)) for start in range(4)
    ]
    passes.step_until(lambda: all(lane.state == "decode" for lane in engine.snapshot().lanes))
    now = engine.snapshot()
    # 192 + 20 + 30 tokens are four pages each, three of which are the trunk's.
    assert now.pages_total - now.pages_free == kept + 4
    assert now.page_map.count(PAGE_SHARED) == 3
    assert [lane.cached for lane in now.lanes] == [192] * 4
    passes.free()
    for stream in streams:
        assert collect(stream).end.usage.cached_tokens == 192
    now = settled(engine)
    assert now.page_map.count(PAGE_KEPT) == now.pages_total - now.pages_free == now.reuse.kept_pages


def picture(engine: Engine, seed: int) -> tuple[tuple[int, ...], object]:
    noise = np.random.default_rng(seed).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    return (engine.loaded.config.image_token_id,) * 64, engine.prepare_image(Image.fromarray(noise))


def test_pictures_are_part_of_the_beginning(load_tiny: LoadTiny) -> None:
    """The same tokens with another picture are another prompt."""
    engine, cold = load_tiny(), load_tiny()

    def seen(asked: Engine, seed: int, start: int) -> Prompt:
        tokens, image = picture(asked, seed)
        ids = (*text_ids(asked, 20), *tokens, *text_ids(asked, 20, 3), *text_ids(asked, 15, start))
        return Prompt(ids, (image,), marks=(104,))

    generate(engine, seen(engine, 0, 1), max_tokens=2, **SCORED)
    other = generate(engine, seen(engine, 1, 2), max_tokens=2, **SCORED)
    assert other.end.usage.cached_tokens == 0
    same = generate(engine, seen(engine, 0, 2), max_tokens=4, **SCORED)
    assert same.end.usage.cached_tokens == 104
    assert told(same) == told(generate(cold, seen(cold, 0, 2), max_tokens=4, **SCORED))


def test_reads_and_scored_prompts(load_tiny: LoadTiny) -> None:
    """A read starts from kept state but reads its last token; scoring a prompt takes reading it."""
    engine = load_tiny()
    whole = prompt(engine, 130, marks=(100, 130))
    generate(engine, whole, max_tokens=1, **GREEDY)
    answer = read(engine, whole, labels=(1, 2))
    assert answer.end.usage.cached_tokens == 100
    scored = generate(engine, whole, max_tokens=1, prompt_logprobs=0, **GREEDY)
    assert scored.end.usage.cached_tokens == 0
    assert len(scored.prompt) == 130


def test_questions_about_one_state_read_it_once(load_tiny: LoadTiny) -> None:
    """Reads of labels leave snapshots at their marks too."""
    engine, cold = load_tiny(), load_tiny()
    state = prompt(engine, 150, marks=(150,))
    read(engine, branch(engine, state, 20, 1), labels=(1, 2))
    second = read(engine, branch(engine, state, 25, 2), labels=(1, 2))
    assert second.end.usage.cached_tokens == 150
    wanted = read(cold, branch(cold, state, 25, 2), labels=(1, 2))
    assert second.scores is not None
    assert wanted.scores is not None
    np.testing.assert_array_equal(second.scores.labels, wanted.scores.labels)


def test_kept_state_gives_way(load_tiny: LoadTiny) -> None:
    """Requests that need the pool get it; agents' state goes first; slots are not exceeded."""
    engine = load_tiny(lanes=2, max_context=512, kv_tokens=512, retained_limit=3, host_tier=0)
    for start, kind in ((1, "interactive"), (2, "agent"), (3, "agent")):
        generate(engine, prompt(engine, 64, start, marks=(64,)), max_tokens=1, request_class=kind, **GREEDY)
    assert settled(engine).reuse.kept == 3
    generate(engine, prompt(engine, 64, 4, marks=(64,)), max_tokens=1, **GREEDY)
    assert generate(engine, prompt(engine, 64, 2, marks=()), max_tokens=1, **GREEDY).end.usage.cached_tokens == 0
    assert generate(engine, prompt(engine, 64, 1, marks=()), max_tokens=1, **GREEDY).end.usage.cached_tokens == 64
    full = generate(engine, prompt(engine, 300, 7), max_tokens=212, **GREEDY)
    assert full.end.usage.prompt_tokens + full.end.usage.output_tokens == 512
    now = settled(engine)
    assert (now.reuse.kept, now.pages_free) == (0, now.pages_total)
    assert now.reuse.evictions == 4


def test_agents_share_a_beginning_beside_any_number_of_people(load_tiny: LoadTiny) -> None:
    """Interactive states fill all slots; an agent's newest are kept all the same."""
    engine = load_tiny(retained_limit=8)
    for start in range(10):
        generate(engine, prompt(engine, 70, start, marks=(70,)), max_tokens=2, **GREEDY)
    trunk = prompt(engine, 100, 50, marks=(100,))
    cached = [
        generate(engine, branch(engine, trunk, 20, start), max_tokens=2, request_class="agent", **GREEDY)
        for start in range(4)
    ]
    assert [answer.end.usage.cached_tokens for answer in cached] == [0, 100, 100, 100]
    assert settled(engine).reuse.kept == 8


def test_spilled_state_comes_back(load_tiny: LoadTiny) -> None:
    engine = load_tiny(lanes=2, max_context=512, kv_tokens=512)
    trunk = prompt(engine, 100, marks=(100,))
    first = generate(engine, trunk, max_tokens=5, **SCORED)
    generate(engine, prompt(engine, 300, 7), max_tokens=212, **GREEDY)
    now = settled(engine)
    assert now.reuse.spills > 0
    assert now.reuse.host_used > 0
    assert now.pages_free == now.pages_total
    again = generate(engine, trunk, max_tokens=5, **SCORED)
    assert told(again) == told(first)
    assert again.end.usage.cached_tokens == 100
    assert settled(engine).reuse.restores > 0


def test_marks_are_checked(load_tiny: LoadTiny) -> None:
    from engine.messages import RequestError

    engine = load_tiny()
    for marks in ((0,), (5, 5), (7, 3), (11,), (True,)):
        with pytest.raises(RequestError, match="Marks"):
            engine.submit(generation(Prompt(text_ids(engine, 10), marks=marks), max_tokens=1))
