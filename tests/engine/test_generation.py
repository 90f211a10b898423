"""What lanes write: the same whatever runs beside them, and what was asked for."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from engine import Engine
from engine.messages import Prefilled, PromptScored, Started, Tokens
from tests.conftest import LoadTiny
from tests.engine.requests import GREEDY, Answer, Passes, collect, generate, generation, read, settled, text_ids


def test_eight_lanes_write_what_each_writes_alone(tiny: Engine) -> None:
    prompts = [text_ids(tiny, 5 + 37 * number, number) for number in range(8)]
    options = {**GREEDY, "max_tokens": 48, "repetition_penalty": 1.2}
    alone = [generate(tiny, prompt, **options) for prompt in prompts]
    together = [collect(s) for s in [tiny.submit(generation(prompt, **options)) for prompt in prompts]]
    assert [answer.ids for answer in together] == [answer.ids for answer in alone]
    assert len({tuple(answer.ids) for answer in alone}) == 8


def test_sampled_text_does_not_depend_on_what_the_neighbours_ask(tiny: Engine, passes: Passes) -> None:
    """With the same widths, bit for bit: neighbours' prompts, seeds, temperatures and penalties change nothing."""
    options = {"seed": 7, "temperature": 1.2, "top_p": 0.95, "max_tokens": 40, "ignore_eos": True, "logprobs": 3}
    neighbours = [
        {"temperature": 0.0},
        {"temperature": 2.0, "seed": 1, "top_k": 5},
        {"temperature": 1.0, "seed": 2, "frequency_penalty": 2.0, "logprobs": 20},
        {"temperature": 0.5, "seed": 3, "repetition_penalty": 1.5, "min_p": 0.2},
    ]
    answers: list[Answer] = []
    for number, neighbour in enumerate(neighbours):
        other = tiny.submit(generation(text_ids(tiny, 20, number), max_tokens=400, ignore_eos=True, **neighbour))
        while not isinstance(other.get(10), Tokens):
            pass
        first = len(passes.lanes)
        answers.append(generate(tiny, text_ids(tiny, 30), **options))
        widths = {lanes for lanes in passes.lanes[first:] if 1 in lanes}
        assert widths == {(1,), (0, 1)}, "the neighbour was there in every round"
        other.cancel()
        settled(tiny)
    assert all(answer.ids == answers[0].ids for answer in answers)
    assert all(answer.logprobs == answers[0].logprobs for answer in answers)


def test_a_seed_repeats_and_is_reported(tiny: Engine) -> None:
    drawn = generate(tiny, [1, 2], temperature=1.5, max_tokens=30, ignore_eos=True)
    again = generate(tiny, [1, 2], temperature=1.5, max_tokens=30, ignore_eos=True, seed=drawn.end.seed)
    other = generate(tiny, [1, 2], temperature=1.5, max_tokens=30, ignore_eos=True)
    assert again.ids == drawn.ids
    assert again.end.seed == drawn.end.seed
    assert other.ids != drawn.ids


def test_events_come_in_order(load_tiny: LoadTiny) -> None:
    engine = load_tiny(prefill_chunk=128)
    answer = generate(engine, text_ids(engine, 300), max_tokens=5, prompt_logprobs=0, **GREEDY)
    kinds = [type(event).__name__ for event in answer.events]
    assert kinds == ["Started", *["Prefilled"] * 3, "PromptScored", *["Tokens"] * 5, "Finished"]
    assert [(e.done, e.total) for e in answer.events if isinstance(e, Prefilled)] == [
        (128, 300),
        (256, 300),
        (300, 300),
    ]
    started, end = answer.events[0], answer.end
    assert isinstance(started, Started)
    assert end.queue_seconds == pytest.approx(started.queue_seconds, abs=1e-3)
    assert end.prefill_seconds > 0
    assert end.decode_seconds > 0
    assert (end.usage.prompt_tokens, end.usage.cached_tokens, end.usage.output_tokens) == (300, 0, 5)


@pytest.mark.parametrize("length", [2, 127, 128, 129, 300])
def test_prompt_logprobs_are_those_of_each_prefix(load_tiny: LoadTiny, length: int) -> None:
    engine = load_tiny(prefill_chunk=128)
    ids = text_ids(engine, length)
    scored = generate(engine, ids, max_tokens=0, prompt_logprobs=4).prompt
    assert len(scored) == length
    assert scored[0] is None
    vocabulary = tuple(range(engine.info.vocabulary_size))
    for at in sorted({1, 2, 63, 64, 65, 127, 128, 129, length // 2, length - 1} & set(range(1, length))):
        entry, scores = scored[at], read(engine, ids[:at], labels=vocabulary).scores
        assert entry is not None
        assert scores is not None
        assert scores.labels is not None
        assert entry.token_id == ids[at]
        assert entry.logprob == pytest.approx(scores.labels[ids[at]], abs=2e-4)
        best = np.argsort(-scores.labels, kind="stable")[:4]
        assert [token for token, _ in entry.top] == best.tolist()
        assert [value for _, value in entry.top] == pytest.approx(scores.labels[best], abs=2e-4)


def test_logprobs_of_the_answer_are_those_of_each_prefix(tiny: Engine) -> None:
    ids = text_ids(tiny, 20)
    answer = generate(tiny, ids, max_tokens=12, logprobs=2, temperature=1.0, seed=3, ignore_eos=True)
    for at, entry in enumerate(answer.logprobs):
        scores = read(tiny, [*ids, *answer.ids[:at]], labels=tuple(range(tiny.info.vocabulary_size))).scores
        assert scores is not None
        assert scores.labels is not None
        assert entry.token_id == answer.ids[at]
        assert entry.logprob == pytest.approx(scores.labels[entry.token_id], abs=2e-4)
        assert len(entry.top) == 2


def test_no_token_is_asked_for(tiny: Engine) -> None:
    answer = generate(tiny, text_ids(tiny, 512), max_tokens=0, prompt_logprobs=0)
    assert answer.ids == []
    assert answer.end.reason == "length"
    assert isinstance(answer.events[-2], PromptScored)
    assert len(answer.prompt) == 512  # a full context may be scored, as nothing follows it


def test_an_answer_ends_where_the_context_does(tiny: Engine) -> None:
    answer = generate(tiny, text_ids(tiny, 500), **GREEDY)
    assert (answer.end.reason, answer.end.usage.output_tokens) == ("length", 12)


def test_the_generation_cap_bounds_answers_without_a_limit(load_tiny: LoadTiny) -> None:
    engine = load_tiny(generation_cap=10)
    assert len(generate(engine, [1], **GREEDY).ids) == 10
    assert len(generate(engine, [1], max_tokens=20, **GREEDY).ids) == 20


def test_end_tokens_end_and_are_not_shown(tiny: Engine) -> None:
    free = generate(tiny, [3], temperature=0.0, max_tokens=30, ignore_eos=True, repetition_penalty=1.5)
    stop = free.ids[7]
    first = free.ids.index(stop)
    ended = generate(tiny, [3], temperature=0.0, max_tokens=30, repetition_penalty=1.5, stop_ids=(stop,))
    assert (ended.ids, ended.end.reason) == (free.ids[:first], "stop")
    assert ended.end.usage.output_tokens == first + 1
    assert ended.text == tiny.tokenizer.decode(free.ids[:first])


def test_the_models_own_end_token_unless_ignored(tiny: Engine) -> None:
    free = generate(tiny, [3], max_tokens=30, repetition_penalty=1.5, **GREEDY)
    object.__setattr__(tiny.loaded, "end_ids", frozenset({free.ids[5]}))
    ended = generate(tiny, [3], max_tokens=30, repetition_penalty=1.5, temperature=0.0)
    assert (ended.ids, ended.end.reason) == (free.ids[: free.ids.index(free.ids[5])], "stop")
    assert generate(tiny, [3], max_tokens=30, repetition_penalty=1.5, **GREEDY).ids == free.ids


def test_stop_strings_end_the_text_wherever_tokens_are_cut(tiny: Engine) -> None:
    """Any stretch of the text, which as a rule begins and ends inside tokens."""
    options = {**GREEDY, "max_tokens": 30, "repetition_penalty": 1.5}
    free = generate(tiny, [3], **options)
    text = free.text
    for start in range(2, len(text) - 4, 3):
        stop = text[start : start + 4]
        answer = generate(tiny, [3], stop=("never in it", stop), **options)
        assert answer.text == text[: text.index(stop)]
        assert (answer.end.reason, answer.end.stop) == ("stop", stop)
        assert answer.end.usage.output_tokens < 30 or text.endswith(stop)


def test_held_back_text_comes_when_the_stop_string_does_not(tiny: Engine) -> None:
    options = {**GREEDY, "max_tokens": 30, "repetition_penalty": 1.5}
    text = generate(tiny, [3], **options).text
    assert generate(tiny, [3], stop=(text[-5:] + "!",), **options).text == text


def test_text_is_what_the_tokens_say(tiny: Engine) -> None:
    for seed in range(4):
        answer = generate(tiny, [seed], temperature=2.0, seed=seed, max_tokens=60, ignore_eos=True)
        assert answer.text == tiny.tokenizer.decode(answer.ids)


def picture(engine: Engine, seed: int, size: tuple[int, int] = (48, 32)):
    noise = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    return engine.prepare_image(Image.fromarray(noise))


def ask(engine: Engine, *pictures):
    parts = [{"type": "image", "image": image} for image in pictures]
    return engine.chat_prompt([{"role": "user", "content": [*parts, {"type": "text", "text": "What is this?"}]}])


def test_pictures_change_the_answer_and_are_encoded_once(tiny: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.model.vision import VisionTower

    encoded: list[tuple[int, ...]] = []
    steps = VisionTower.steps
    monkeypatch.setattr(VisionTower, "steps", lambda self, rgb: (encoded.append(rgb.shape), steps(self, rgb))[1])
    one, two = picture(tiny, 1), picture(tiny, 2)
    options = {**GREEDY, "max_tokens": 12, "logprobs": 0}
    first = generate(tiny, ask(tiny, one), **options)
    assert len(encoded) == 1
    again = generate(tiny, ask(tiny, one), **options)
    assert len(encoded) == 1
    assert (again.ids, again.logprobs) == (first.ids, first.logprobs)
    other = generate(tiny, ask(tiny, two), **options)
    both = generate(tiny, ask(tiny, one, two), **options)
    swapped = generate(tiny, ask(tiny, two, one), **options)
    assert len(encoded) == 2
    assert len({tuple(answer.logprobs) for answer in (first, other, both, swapped)}) == 4


def test_pictures_across_chunk_edges(load_tiny: LoadTiny) -> None:
    whole, cut = load_tiny(prefill_chunk=512), load_tiny(prefill_chunk=128)
    assert whole.info.id == cut.info.id
    pictures = [picture(whole, seed, (64, 64)) for seed in range(3)]
    prompt = ask(whole, *pictures)
    assert len(prompt) > 200
    one = generate(whole, prompt, max_tokens=10, logprobs=0, **GREEDY)
    two = generate(cut, prompt, max_tokens=10, logprobs=0, **GREEDY)
    assert one.ids == two.ids
    assert [e.logprob for e in one.logprobs] == pytest.approx([e.logprob for e in two.logprobs], abs=2e-4)


def test_a_picture_is_encoded_between_the_rounds_of_others(tiny: Engine, passes: Passes) -> None:
    running = tiny.submit(generation([1], max_tokens=200, **GREEDY))
    while not isinstance(running.get(10), Tokens):
        pass
    before = len(passes.runs)
    asked = tiny.submit(generation(ask(tiny, picture(tiny, 9)), max_tokens=1, **GREEDY))
    collect(asked)
    prefill = next(n for n, runs in enumerate(passes.runs[before:]) if runs[0].length > 1)
    assert prefill >= 2  # the tower's blocks come one at a time, with rounds in between
    assert len(collect(running).ids) >= 100


def test_interactive_requests_pass_agents_in_the_queue(load_tiny: LoadTiny, passes: Passes) -> None:
    engine = load_tiny(lanes=1)
    passes.hold()
    running = engine.submit(generation([1], max_tokens=2, **GREEDY))
    passes.held()
    order: list[str] = []
    streams = [
        engine.submit(generation([2], name=f"{kind} {n}", request_class=kind, max_tokens=1, **GREEDY))
        for n in range(2)
        for kind in ("agent", "interactive")
    ]
    for stream in streams:
        stream.notify(lambda name=stream.request_id: order.append(name))
    passes.free()
    for stream in [running, *streams]:
        collect(stream)
    assert order == ["interactive 0", "interactive 1", "agent 0", "agent 1"]


def test_an_agents_long_prompt_is_interrupted_for_a_person(load_tiny: LoadTiny, passes: Passes) -> None:
    engine = load_tiny(prefill_chunk=128)
    passes.hold()
    agent = engine.submit(generation(text_ids(engine, 500), request_class="agent", max_tokens=1, **GREEDY))
    passes.held()
    person = engine.submit(generation(text_ids(engine, 40), max_tokens=1, **GREEDY))
    passes.free()
    collect(agent)
    assert collect(person).end.reason == "length"
    assert [runs[0].length for runs in passes.runs] == [128, 40, 128, 128, 116]


def test_running_lanes_keep_their_share_while_a_prompt_is_read(load_tiny: LoadTiny, passes: Passes) -> None:
    engine = load_tiny(prefill_chunk=128, decode_share=0.5)
    running = engine.submit(generation([1], max_tokens=300, **GREEDY))
    while not isinstance(running.get(10), Tokens):
        pass
    first = len(passes.runs)
    collect(engine.submit(generation(text_ids(engine, 512), max_tokens=0)))
    lengths = [runs[0].length for runs in passes.runs[first:]]
    chunks = [n for n, length in enumerate(lengths) if length == 128]
    assert len(chunks) == 4
    assert all(later - earlier >= 2 for earlier, later in pairwise(chunks))
    running.cancel()


def test_short_prompts_share_a_chunk(load_tiny: LoadTiny, passes: Passes) -> None:
    """Read together as far as whole pieces fit; each answers as it does alone."""
    engine = load_tiny(prefill_chunk=128, lanes=4)
    prompts = [text_ids(engine, length, length) for length in (60, 50, 40, 18)]
    alone = [generate(engine, ids, max_tokens=6, **GREEDY).ids for ids in prompts]
    passes.hold()
    blocker = engine.submit(generation([1], max_tokens=2, **GREEDY))
    passes.held()
    streams = [engine.submit(generation(ids, max_tokens=6, **GREEDY)) for ids in prompts[1:]]
    streams.insert(0, engine.submit(generation(prompts[0], max_tokens=6, **GREEDY)))
    passes.runs.clear()
    passes.free()
    collect(blocker)
    assert [collect(stream).ids for stream in streams] == alone
    together = [tuple(run.length for run in runs) for runs in passes.runs if any(run.length > 1 for run in runs)]
    assert together == [(50, 40, 18), (60,)]


def test_agents_do_not_share_a_persons_chunk(load_tiny: LoadTiny, passes: Passes) -> None:
    engine = load_tiny(prefill_chunk=128)
    passes.hold()
    blocker = engine.submit(generation([1], max_tokens=2, **GREEDY))
    passes.held()
    agent = engine.submit(generation(text_ids(engine, 30), request_class="agent", max_tokens=1, **GREEDY))
    person = engine.submit(generation(text_ids(engine, 40), max_tokens=1, **GREEDY))
    passes.runs.clear()
    passes.free()
    for stream in (blocker, agent, person):
        collect(stream)
    prompts = [tuple(run.length for run in runs) for runs in passes.runs if runs[0].length > 1]
    assert prompts == [(40,), (30,)]
