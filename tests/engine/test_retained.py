"""Prefixes that outlive their request: reads continue from them as if they had read them themselves."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from engine import Engine
from engine.messages import HeadSpan, PrefixGoneError, Prompt, RequestError, Scores
from tests.conftest import LoadTiny
from tests.engine.requests import (
    GREEDY,
    Passes,
    collect,
    generate,
    generation,
    read,
    retain,
    settled,
    text_ids,
    wait_until,
)
from tests.tiny import HEADS

LABELS = (1, 2, 3, 300)


def span(start: int, end: int, *extra: int) -> HeadSpan:
    return HeadSpan(HEADS, start, end, extra)


def scores(answer) -> Scores:
    assert answer.scores is not None, answer.events
    return answer.scores


def test_a_fork_equals_the_whole_prompt_bit_for_bit_where_it_is_cut_alike(load_tiny: LoadTiny) -> None:
    """Cut at the chunk's edge, both read the same chunks."""
    engine = load_tiny(prefill_chunk=128)
    prefix, question = text_ids(engine, 256), text_ids(engine, 45, 3)
    whole = read(engine, prefix + question, heads=span(3, 290, 0, 295), labels=LABELS)
    retain(engine, "prefix", prefix)
    for _ in range(2):  # the fork leaves the prefix as it was
        fork = read(engine, question, heads=span(3, 290, 0, 295), labels=LABELS, prefix="prefix")
        np.testing.assert_array_equal(scores(fork).heads, scores(whole).heads)
        np.testing.assert_array_equal(scores(fork).labels, scores(whole).labels)
        assert (fork.end.usage.prompt_tokens, fork.end.usage.cached_tokens) == (301, 256)
    assert whole.end.usage.cached_tokens == 0


@pytest.mark.parametrize("length", [1, 63, 64, 65, 127, 200])
def test_a_fork_at_any_length(load_tiny: LoadTiny, length: int) -> None:
    """On and off a page's edge: the partly filled page is copied."""
    engine = load_tiny()
    prefix, question = text_ids(engine, length), text_ids(engine, 30, 3)
    whole = read(engine, prefix + question, heads=span(0, length), labels=LABELS)
    retain(engine, "prefix", prefix)
    other = read(engine, text_ids(engine, 40, 8), heads=span(0, length), labels=LABELS, prefix="prefix")
    fork = read(engine, question, heads=span(0, length), labels=LABELS, prefix="prefix")
    np.testing.assert_allclose(scores(fork).heads, scores(whole).heads, atol=2e-4)
    np.testing.assert_allclose(scores(fork).labels, scores(whole).labels, atol=2e-4)
    assert not np.allclose(scores(other).labels, scores(whole).labels, atol=2e-4)


def test_a_fork_with_a_picture_in_its_prefix(load_tiny: LoadTiny) -> None:
    """Positions go on where the picture's grid left off."""
    engine = load_tiny(prefill_chunk=128)
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    image = engine.prepare_image(Image.fromarray(noise))
    token = engine.loaded.config.image_token_id
    prefix = Prompt((*text_ids(engine, 60), *[token] * 64, *text_ids(engine, 4)), (image,))
    assert len(prefix) == 128
    question = text_ids(engine, 20, 5)
    whole = read(engine, Prompt(prefix.ids + question, (image,)), heads=span(60, 124), labels=LABELS)
    retain(engine, "screen", prefix)
    fork = read(engine, question, heads=span(60, 124), labels=LABELS, prefix="screen")
    np.testing.assert_array_equal(scores(fork).heads, scores(whole).heads)
    np.testing.assert_array_equal(scores(fork).labels, scores(whole).labels)


def test_forks_side_by_side_do_not_disturb_each_other(load_tiny: LoadTiny) -> None:
    from engine.engine import new_id
    from engine.messages import ReadRequest

    engine = load_tiny()
    retain(engine, "prefix", text_ids(engine, 100))
    questions = [text_ids(engine, 15 + n, n) for n in range(8)]
    alone = [read(engine, q, labels=LABELS, prefix="prefix") for q in questions]
    streams = [
        engine.submit(ReadRequest(new_id("fork"), Prompt(q), labels=LABELS, prefix="prefix")) for q in questions * 3
    ]
    for number, stream in enumerate(streams):  # several share a chunk: other matrix shapes, other last bits
        np.testing.assert_allclose(scores(collect(stream)).labels, scores(alone[number % 8]).labels, atol=2e-5)
    engine.release("prefix")
    settled(engine)


def test_reading_few_layers_reads_the_same_heads(tiny: Engine) -> None:
    """Heads of layer 3 need no layer after it: neither in the prefix nor in the read."""
    prefix, question = text_ids(tiny, 90), text_ids(tiny, 12, 2)
    retain(tiny, "all", prefix)
    retain(tiny, "few", prefix, layers=4)
    every = read(tiny, question, heads=span(0, 90), prefix="all")
    few = read(tiny, question, heads=span(0, 90), prefix="few")
    np.testing.assert_array_equal(scores(few).heads, scores(every).heads)
    error = read(tiny, question, heads=span(0, 90), labels=(1,), prefix="few").error
    assert isinstance(error, RequestError)
    assert "first 4 layers only" in str(error)


def test_releasing_frees_the_pages_once_the_last_fork_is_done(load_tiny: LoadTiny, passes: Passes) -> None:
    from engine.messages import ReadRequest

    engine = load_tiny()
    retain(engine, "prefix", text_ids(engine, 256))
    kept = settled(engine)
    assert (kept.retained, kept.pages_total - kept.pages_free) == (1, 4)
    passes.hold()
    fork = engine.submit(ReadRequest("fork", Prompt((1, 2, 3)), labels=LABELS, prefix="prefix"))
    passes.held()
    engine.release("prefix")
    passes.free()
    whole = read(engine, (*text_ids(engine, 256), 1, 2, 3), labels=LABELS)
    np.testing.assert_allclose(scores(collect(fork)).labels, scores(whole).labels, atol=2e-4)
    assert settled(engine).retained == 0
    assert isinstance(read(engine, [1], labels=LABELS, prefix="prefix").error, PrefixGoneError)


def test_the_least_recently_used_prefix_makes_room(load_tiny: LoadTiny) -> None:
    engine = load_tiny(retained_limit=2)
    retain(engine, "a", [1])
    retain(engine, "b", [2])
    read(engine, [5], labels=LABELS, prefix="a")
    retain(engine, "c", [3])
    error = read(engine, [5], labels=LABELS, prefix="b").error
    assert isinstance(error, PrefixGoneError)
    assert error.status == 409
    assert "encode it again" in error.message
    for name in ("a", "c"):
        assert read(engine, [5], labels=LABELS, prefix=name).scores is not None
    assert settled(engine).retained == 2


def test_retaining_under_the_same_id_replaces(load_tiny: LoadTiny) -> None:
    engine = load_tiny(retained_limit=2)
    retain(engine, "other", [7, 7])
    retain(engine, "same", text_ids(engine, 200))
    retain(engine, "same", [1, 2])
    assert read(engine, [5], labels=LABELS, prefix="same").end.usage.cached_tokens == 2
    assert read(engine, [5], labels=LABELS, prefix="other").end.usage.cached_tokens == 2
    snapshot = settled(engine)
    assert (snapshot.retained, snapshot.pages_total - snapshot.pages_free) == (2, 2)


def test_live_work_goes_before_retained_prefixes(load_tiny: LoadTiny) -> None:
    engine = load_tiny(kv_tokens=512, lanes=2, host_tier=0)
    retain(engine, "old", text_ids(engine, 200))
    retain(engine, "new", text_ids(engine, 100))
    assert settled(engine).pages_free == 2
    assert len(generate(engine, [1], max_tokens=250, **GREEDY).ids) == 250  # 4 pages: the older one has to go
    assert settled(engine).retained == 1
    assert read(engine, [5], labels=LABELS, prefix="new").scores is not None
    assert len(generate(engine, text_ids(engine, 500), max_tokens=12, **GREEDY).ids) == 12
    assert settled(engine).retained == 0


def test_prefixes_are_not_dropped_in_vain(load_tiny: LoadTiny, passes: Passes) -> None:
    """What waits for a running request's pages leaves the prefixes that would not help it."""
    engine = load_tiny(kv_tokens=512, lanes=2)
    retain(engine, "kept", text_ids(engine, 64))
    passes.hold()
    running = engine.submit(generation([1], max_tokens=250, **GREEDY))
    passes.held()
    waiting = engine.submit(generation([2], max_tokens=440, **GREEDY))
    passes.step()
    passes.step()
    running.cancel()
    passes.free()
    assert len(collect(waiting).ids) == 440
    assert read(engine, [5], labels=LABELS, prefix="kept").scores is not None


def test_a_read_does_not_evict_its_own_prefix(load_tiny: LoadTiny) -> None:
    engine = load_tiny(kv_tokens=512, lanes=2)
    retain(engine, "mine", text_ids(engine, 256))
    retain(engine, "other", text_ids(engine, 128))
    answer = read(engine, text_ids(engine, 200, 2), labels=LABELS, prefix="mine")
    assert answer.end.usage.cached_tokens == 256
    assert settled(engine).reuse.host_used > 0
    assert read(engine, [1], labels=LABELS, prefix="other").end.usage.cached_tokens == 128


def test_a_read_that_cannot_fit_beside_its_prefix_is_refused(load_tiny: LoadTiny) -> None:
    """It would wait for pages that only its own prefix holds, and all behind it too."""
    engine = load_tiny(kv_tokens=512, lanes=2)
    retain(engine, "prefix", text_ids(engine, 449))
    error = read(engine, text_ids(engine, 63), labels=LABELS, prefix="prefix").error
    assert isinstance(error, RequestError)
    assert "kv_tokens" in error.message
    assert read(engine, [1], labels=LABELS).scores is not None


def test_a_gone_prefix_is_said_even_when_pages_are_short(load_tiny: LoadTiny) -> None:
    engine = load_tiny(kv_tokens=512, lanes=2)
    retain(engine, "another", text_ids(engine, 400))
    assert isinstance(read(engine, text_ids(engine, 300), labels=LABELS, prefix="gone").error, PrefixGoneError)


@pytest.mark.parametrize(
    ("length", "heads"),
    [(113, None), (10, span(0, 500)), (10, span(0, 5, 410))],
    ids=["longer than the context", "keys after the prompt", "an extra key after the prompt"],
)
def test_what_does_not_fit_its_prefix_is_refused(tiny: Engine, length: int, heads: HeadSpan | None) -> None:
    retain(tiny, "prefix", text_ids(tiny, 400))
    error = read(tiny, text_ids(tiny, length), heads=heads, labels=LABELS, prefix="prefix").error
    assert isinstance(error, RequestError)
    assert read(tiny, text_ids(tiny, 112), labels=LABELS, prefix="prefix").scores is not None


def test_a_cancelled_retain_keeps_nothing(load_tiny: LoadTiny, passes: Passes) -> None:
    from engine.messages import RetainRequest

    engine = load_tiny(prefill_chunk=128)
    passes.hold()
    stream = engine.submit(RetainRequest("half", Prompt(text_ids(engine, 400))))
    passes.step()
    stream.cancel()
    passes.free()
    assert collect(stream).end.reason == "cancelled"
    assert settled(engine).retained == 0
    assert isinstance(read(engine, [1], labels=LABELS, prefix="half").error, PrefixGoneError)


def test_generation_beside_retained_prefixes_writes_the_same(tiny: Engine) -> None:
    alone = generate(tiny, [1, 2, 3], max_tokens=30, **GREEDY).ids
    running = tiny.submit(generation([1, 2, 3], max_tokens=30, **GREEDY))
    for number in range(20):
        retain(tiny, f"prefix {number}", text_ids(tiny, 70, number))
    assert collect(running).ids == alone
    wait_until(lambda: tiny.snapshot().retained == 16)
