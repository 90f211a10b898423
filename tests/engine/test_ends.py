"""How requests end: cancelled, late, cut off, refused, failed. None takes another one with it."""

from __future__ import annotations

import threading
import time

import pytest

from engine import Engine
from engine.messages import BusyError, DeadlineError, EngineError, Failed, Finished
from tests.conftest import LoadTiny
from tests.engine.requests import (
    GREEDY,
    Passes,
    collect,
    generate,
    generation,
    queued,
    settled,
    text_ids,
    wait_until,
)


def test_cancelled_in_the_queue(load_tiny: LoadTiny, passes: Passes) -> None:
    engine = load_tiny(lanes=1)
    passes.hold()
    first = engine.submit(generation([1], max_tokens=3, **GREEDY))
    passes.held()
    waiting = [engine.submit(generation([2], max_tokens=3, **GREEDY)) for _ in range(3)]
    waiting[1].cancel()
    passes.step()
    end = collect(waiting[1]).end
    assert (end.reason, end.usage.output_tokens) == ("cancelled", 0)
    assert end.queue_seconds > 0
    passes.free()
    assert [collect(s).end.reason for s in (first, waiting[0], waiting[2])] == ["length"] * 3
    assert settled(engine).requests_cancelled == 1


@pytest.mark.parametrize("chunks", [1, 2])
def test_cancelled_in_prefill_within_one_chunk(load_tiny: LoadTiny, passes: Passes, chunks: int) -> None:
    engine = load_tiny(prefill_chunk=128)
    passes.hold()
    stream = engine.submit(generation(text_ids(engine, 500), **GREEDY))
    for _ in range(chunks - 1):
        passes.step()
    passes.held()
    stream.cancel()
    passes.free()
    assert collect(stream).end.reason == "cancelled"
    settled(engine)
    assert len(passes.runs) == chunks


def test_cancelled_in_decode_within_one_round(load_tiny: LoadTiny, passes: Passes) -> None:
    engine = load_tiny()
    passes.hold()
    streams = [engine.submit(generation([number + 1], max_tokens=40, **GREEDY)) for number in range(3)]
    for _ in range(8):
        passes.step()
    assert passes.lanes[-1] == (0, 1, 2)
    streams[1].cancel()
    done = len(passes.lanes)
    passes.step()
    passes.step()
    assert all(1 not in lanes for lanes in passes.lanes[done + 1 :])
    passes.free()
    ends = [collect(stream).end for stream in streams]
    assert [end.reason for end in ends] == ["length", "cancelled", "length"]
    assert 0 < ends[1].usage.output_tokens < 40
    settled(engine)


def test_cancelling_what_has_ended_or_never_was(tiny: Engine) -> None:
    stream = tiny.submit(generation([1], max_tokens=1, **GREEDY))
    collect(stream)
    stream.cancel()
    tiny.cancel("never was")
    tiny.release("never was")
    assert settled(tiny).requests_cancelled == 0


def test_deadline_in_the_queue_and_on_a_lane(load_tiny: LoadTiny, passes: Passes) -> None:
    engine = load_tiny(lanes=1)
    passes.hold()
    soon = time.monotonic() + 0.05
    running = engine.submit(generation([1], deadline=soon, **GREEDY))
    passes.held()
    waiting = engine.submit(generation([2], deadline=soon, **GREEDY))
    patient = engine.submit(generation([3], max_tokens=2, deadline=soon + 60, **GREEDY))
    time.sleep(0.06)
    passes.free()
    for stream in (running, waiting):
        error = collect(stream).error
        assert isinstance(error, DeadlineError)
        assert error.status == 504
    assert collect(patient).end.reason == "length"
    assert settled(engine).requests_failed == 2


def test_a_slow_reader_is_cut_off_while_others_go_on(load_tiny: LoadTiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.stream.LIMIT", 100)
    engine = load_tiny()
    slow = engine.submit(generation([1], max_tokens=400, **GREEDY))
    fast = engine.submit(generation([2], max_tokens=90, **GREEDY))
    fast_ids = []
    for event in fast:
        fast_ids += getattr(event, "ids", ())
    assert len(fast_ids) == 90
    wait_until(lambda: slow.ended)
    snapshot = settled(engine)
    assert snapshot.requests_failed == 1
    *left, last = collect(slow).events
    assert len(left) == 100
    assert isinstance(last, Failed)
    assert last.error.code == "slow_reader"


def test_a_full_queue_refuses_and_says_when_to_come_back(load_tiny: LoadTiny, passes: Passes) -> None:
    engine = load_tiny(lanes=2, queue_limit=3)
    passes.hold()
    running = [engine.submit(generation([1], max_tokens=50, **GREEDY)) for _ in range(2)]
    while not all(stream.begun for stream in running):
        passes.step()
    waiting = [engine.submit(generation([1], max_tokens=2, **GREEDY)) for _ in range(3)]
    with pytest.raises(BusyError, match="3 interactive requests are waiting") as caught:
        engine.submit(generation([1], max_tokens=2, **GREEDY))
    assert caught.value.status == 503
    assert caught.value.retry_after > 0
    waiting[0].cancel()
    passes.step()
    collect(waiting[0])
    later = engine.submit(generation([1], max_tokens=2, **GREEDY))
    passes.free()
    for stream in [*running, *waiting[1:], later]:
        assert collect(stream).end.reason == "length"


def test_requests_queued_together_share_their_rounds(load_tiny: LoadTiny, passes: Passes) -> None:
    """The loop takes them up at one time; what cannot run or has no room keeps out itself alone."""
    engine = load_tiny(lanes=3, queue_limit=3)
    good = [generation([n], name=f"good {n}", max_tokens=2, **GREEDY) for n in range(3)]
    bad = generation([1], max_tokens=2, temperature=-1)
    twice = generation([9], name="good 0", max_tokens=2, **GREEDY)
    late = generation([8], max_tokens=2, **GREEDY)
    outcomes = engine.submit_all([good[0], bad, good[1], twice, good[2], late])
    assert [getattr(outcome, "param", None) for outcome in outcomes[1:4:2]] == ["temperature", None]
    assert getattr(outcomes[3], "code", None) == "duplicate_id"
    assert isinstance(outcomes[5], BusyError)
    for outcome in (outcomes[0], outcomes[2], outcomes[4]):
        assert not isinstance(outcome, EngineError)
        assert len(collect(outcome).ids) == 2
    assert {len(runs) for runs in passes.runs} == {3}
    assert engine.submit_all([]) == []
    assert settled(engine).requests_failed == 0


def test_the_queue_holds_no_more_than_its_limit_whatever_the_race(load_tiny: LoadTiny) -> None:
    engine = load_tiny(lanes=1, queue_limit=8)
    accepted, refused = [], []

    def hammer() -> None:
        for _ in range(150):
            try:
                accepted.append(engine.submit(generation([1], max_tokens=1, **GREEDY)))
            except BusyError:
                refused.append(1)
                time.sleep(0.001)

    threads = [threading.Thread(target=hammer) for _ in range(6)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert queued(engine) <= 8
        time.sleep(0.001)
    assert refused
    for stream in accepted:
        assert collect(stream).end.reason == "length"
    assert settled(engine).state == "ready"


def test_an_id_runs_once_at_a_time(load_tiny: LoadTiny, passes: Passes) -> None:
    engine = load_tiny()
    passes.hold()
    first = engine.submit(generation([1], name="same", max_tokens=2, **GREEDY))
    with pytest.raises(Exception, match="running already") as caught:
        engine.submit(generation([1], name="same", max_tokens=2, **GREEDY))
    assert caught.value.status == 400
    passes.free()
    collect(first)
    second = engine.submit(generation([1], name="same", max_tokens=2, **GREEDY))  # at once, not a publication later
    assert collect(second).end.reason == "length"


def test_a_pass_that_fails_ends_the_requests_in_it_only(load_tiny: LoadTiny, passes: Passes, caplog) -> None:
    engine = load_tiny(lanes=3)
    passes.hold()
    streams = [engine.submit(generation([number + 1], max_tokens=30, **GREEDY)) for number in range(3)]
    for _ in range(6):
        passes.step()
    assert passes.lanes[-1] == (0, 1, 2)
    waiting = engine.submit(generation([9], max_tokens=5, **GREEDY))
    broken = len(passes.runs)
    passes.fault = lambda runs: RuntimeError("no luck") if len(passes.runs) == broken + 1 else None
    passes.free()
    for stream in streams:
        answer = collect(stream)
        assert "no luck" in str(answer.error)
        assert answer.error.code == "pass_failed"
        assert answer.ids  # what came before the fault was delivered
    assert len(collect(waiting).ids) == 5
    snapshot = settled(engine)
    assert (snapshot.requests_failed, snapshot.requests_finished) == (3, 1)
    assert "a pass failed" in caplog.text
    assert generate(engine, [1], max_tokens=3, **GREEDY).end.reason == "length"


def test_a_prefill_that_fails_leaves_running_lanes_alone(load_tiny: LoadTiny, passes: Passes) -> None:
    engine = load_tiny()
    expected = generate(engine, [7], max_tokens=60, **GREEDY).ids
    running = engine.submit(generation([7], max_tokens=60, **GREEDY))
    wait_until(lambda: len(passes.runs) > 60 + 5)
    passes.fault = lambda runs: MemoryError("the prompt is cursed") if runs[0].length == 33 else None
    cursed = engine.submit(generation(text_ids(engine, 33), **GREEDY))
    assert "cursed" in str(collect(cursed).error)
    assert collect(running).ids == expected


def test_the_state_of_a_failed_request_does_not_reach_the_next(load_tiny: LoadTiny, passes: Passes) -> None:
    engine = load_tiny(lanes=1, prefill_chunk=128)
    ids = text_ids(engine, 300)
    expected = generate(engine, ids, max_tokens=8, logprobs=0, **GREEDY)
    passes.fault = lambda runs: RuntimeError("once") if runs[0].past == 128 else None
    assert "once" in str(generate(engine, text_ids(engine, 300, 5), max_tokens=8, **GREEDY).error)
    passes.fault = lambda runs: None
    again = generate(engine, ids, max_tokens=8, logprobs=0, **GREEDY)
    assert (again.ids, again.logprobs) == (expected.ids, expected.logprobs)


def test_logits_that_are_no_numbers_end_their_own_request(load_tiny: LoadTiny, monkeypatch) -> None:
    from engine.model.decoder import Decoder

    engine = load_tiny()
    logits = Decoder.logits

    def poisoned(decoder: Decoder, hidden):
        out = logits(decoder, hidden)
        if out.shape[0] == 3:
            out[1] = float("nan")
        return out

    monkeypatch.setattr(Decoder, "logits", poisoned)
    streams = [engine.submit(generation([number + 1], max_tokens=25, **GREEDY)) for number in range(3)]
    answers = [collect(stream) for stream in streams]
    failed = [answer for answer in answers if isinstance(answer.events[-1], Failed)]
    assert len(failed) == 1
    assert "NaN" in str(failed[0].error)
    assert [len(a.ids) for a in answers if a not in failed] == [25, 25]
    settled(engine)


def test_a_callback_that_fails_harms_nobody(tiny: Engine, caplog: pytest.LogCaptureFixture) -> None:
    bad = tiny.submit(generation([1], max_tokens=20, **GREEDY))
    bad.notify(lambda: 1 / 0)
    good = tiny.submit(generation([2], max_tokens=20, **GREEDY))
    assert len(collect(good).ids) == 20
    assert isinstance(collect(bad).events[-1], Finished)
    assert tiny.snapshot().state == "ready"


def test_a_fault_before_the_first_pass_ends_its_own_request(tiny: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.sample.sampler import Sampler

    begin = Sampler.begin

    def picky(sampler, lane, params, prompt_ids, seed):
        if seed == 13:
            raise OverflowError("unlucky")
        begin(sampler, lane, params, prompt_ids, seed)

    monkeypatch.setattr(Sampler, "begin", picky)
    good, bad = (tiny.submit(generation([1], max_tokens=9, seed=seed, **GREEDY)) for seed in (12, 13))
    assert "unlucky" in str(collect(bad).error)
    assert len(collect(good).ids) == 9
    settled(tiny)
