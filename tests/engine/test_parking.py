"""An interactive request finds a lane whatever agents do, and an agent that gave its own up goes on unharmed."""

from __future__ import annotations

import pytest

from engine.messages import PAGE_PARKED, RequestError
from tests.conftest import LoadTiny
from tests.engine.requests import GREEDY, Passes, collect, generate, generation, settled, text_ids, wait_until

SAMPLED = {"temperature": 1.0, "seed": 3, "ignore_eos": True, "repetition_penalty": 1.2, "presence_penalty": 0.4}


@pytest.mark.parametrize("pool", [1024, 512])
def test_a_parked_agent_goes_on_bit_for_bit(load_tiny: LoadTiny, passes: Passes, pool: int) -> None:
    """With a lane of its own all along it writes the same, with the same probabilities; so it does when its pages had
    to leave the pool meanwhile (the second pool holds one context)."""
    engine = load_tiny(lanes=1, kv_tokens=pool)
    ids = text_ids(engine, 90)
    options = {**SAMPLED, "logprobs": 3, "max_tokens": 200}
    alone = generate(engine, ids, request_class="agent", **options)
    passes.hold()
    agent = engine.submit(generation(ids, request_class="agent", **options))
    for _ in range(8):
        passes.step()
    person = engine.submit(generation(text_ids(engine, 300, 5), max_tokens=30, **GREEDY))
    passes.step_until(lambda: engine.snapshot().parked)
    now = engine.snapshot()
    assert person.begun
    assert now.lanes[0].state in ("prefill", "decode")
    assert [lane.request_class for lane in now.parked] == ["agent"]
    assert (PAGE_PARKED in now.page_map) == (pool == 1024)
    passes.free()
    assert len(collect(person).ids) == 30
    parked = collect(agent)
    assert parked.ids == alone.ids
    assert parked.logprobs == alone.logprobs
    reuse = settled(engine).reuse
    assert (reuse.parks, reuse.resumes) == (1, 1)
    assert (reuse.spills > 0) == (pool == 512)


def test_agents_fill_all_lanes_and_a_person_comes_first(load_tiny: LoadTiny, passes: Passes) -> None:
    engine = load_tiny(lanes=3)
    passes.hold()
    agents = [engine.submit(generation([n], request_class="agent", max_tokens=60, **GREEDY)) for n in range(5)]
    for _ in range(6):
        passes.step()
    assert [stream.begun for stream in agents] == [True, True, True, False, False]
    person = engine.submit(generation([7], max_tokens=5, **GREEDY))
    passes.step()
    passes.step()
    assert person.begun
    passes.step_until(lambda: len(engine.snapshot().parked) == 1)
    passes.free()
    collect(person)
    for stream in agents:
        assert len(collect(stream).ids) == 60
    assert settled(engine).reuse.parks == settled(engine).reuse.resumes == 1


def test_people_are_never_parked(load_tiny: LoadTiny, passes: Passes) -> None:
    engine = load_tiny(lanes=2)
    passes.hold()
    people = [engine.submit(generation([n], max_tokens=20, **GREEDY)) for n in range(4)]
    agent = engine.submit(generation([9], max_tokens=3, request_class="agent", **GREEDY))
    for _ in range(5):
        passes.step()
    assert [stream.begun for stream in people] == [True, True, False, False]
    passes.free()
    for stream in [*people, agent]:
        collect(stream)
    assert settled(engine).reuse.parks == 0


def test_a_parked_request_can_be_cancelled_and_its_time_can_be_up(load_tiny: LoadTiny, passes: Passes) -> None:
    import time

    from engine.messages import DeadlineError

    engine = load_tiny(lanes=2)
    passes.hold()
    options = {**GREEDY, "request_class": "agent", "max_tokens": 100}
    first = engine.submit(generation([1], **options))
    second = engine.submit(generation([2], deadline=time.monotonic() + 0.5, **options))
    for _ in range(4):
        passes.step()
    people = [engine.submit(generation([n], max_tokens=50, **GREEDY)) for n in (3, 4)]
    passes.step_until(lambda: len(engine.snapshot().parked) == 2)
    first.cancel()
    time.sleep(0.6)
    passes.free()
    assert collect(first).end.reason == "cancelled"
    assert isinstance(collect(second).error, DeadlineError)
    for stream in people:
        collect(stream)
    assert settled(engine).reuse.kept_pages == 0


def test_parking_on_purpose(load_tiny: LoadTiny, passes: Passes) -> None:
    engine = load_tiny(lanes=1)
    passes.hold()
    first = engine.submit(generation([1], name="first", max_tokens=30, request_class="agent", **GREEDY))
    second = engine.submit(generation([2], name="second", max_tokens=5, request_class="agent", **GREEDY))
    for _ in range(3):
        passes.step()
    engine.park("first")
    passes.step()
    passes.step()
    passes.free()
    assert len(collect(first).ids) == 30
    assert len(collect(second).ids) == 5
    passes.hold()
    person = engine.submit(generation([3], name="person", max_tokens=3, **GREEDY))
    with pytest.raises(RequestError, match="agent"):
        engine.park("person")
    engine.park("nobody")
    passes.free()
    collect(person)


def test_the_queue_of_agents_does_not_refuse_people(load_tiny: LoadTiny, passes: Passes) -> None:
    from engine.messages import BusyError

    engine = load_tiny(lanes=1, queue_limit=2)
    passes.hold()
    streams = [engine.submit(generation([1], max_tokens=9, request_class="agent", **GREEDY))]
    wait_until(lambda: streams[0].begun)
    streams += [engine.submit(generation([n], max_tokens=2, request_class="agent", **GREEDY)) for n in (2, 3)]
    with pytest.raises(BusyError, match="agent") as refused:
        engine.submit(generation([4], max_tokens=2, request_class="agent", **GREEDY))
    assert refused.value.retry_after >= 1
    streams.append(engine.submit(generation([5], max_tokens=2, **GREEDY)))
    passes.free()
    for stream in streams:
        collect(stream)
