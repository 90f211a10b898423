"""What serving promises about who waits for whom, with a running engine (tests/engine/schedule simulates the clock)."""

from __future__ import annotations

from engine import Engine
from engine.stream import Stream
from tests.conftest import LoadTiny
from tests.engine.requests import GREEDY, Passes, collect, generate, generation, settled, text_ids, wait_until


def starts(streams: dict[str, Stream]) -> list[str]:
    """Fills itself with names in the order in which the requests begin."""
    order: list[str] = []
    for name, stream in streams.items():
        stream.notify(lambda name=name: name in order or order.append(name))
    return order


def submit(engine: Engine, name: str, prompt: int, tokens: int, kind: str = "interactive") -> Stream:
    ids = text_ids(engine, prompt, len(name))
    return engine.submit(generation(ids, name=name, max_tokens=tokens, request_class=kind, **GREEDY))


def test_a_large_request_is_passed_only_by_what_does_not_delay_it(load_tiny: LoadTiny, passes: Passes) -> None:
    engine = load_tiny(kv_tokens=512, lanes=4)
    generate(engine, text_ids(engine, 100), max_tokens=50, **GREEDY)  # now it knows how fast it is
    passes.hold()
    streams = {"holder": submit(engine, "holder", 1, 200)}
    passes.held()
    streams["large"] = submit(engine, "large", 400, 112)
    streams["long"] = submit(engine, "long", 1, 400)
    streams["short"] = submit(engine, "short", 1, 4)
    order = starts(streams)
    passes.step_until(lambda: any(waiting.protected for waiting in engine.snapshot().waiting))
    assert [waiting.request_id for waiting in engine.snapshot().waiting if waiting.protected] == ["large"]
    passes.free()
    answers = {name: collect(stream) for name, stream in streams.items()}
    assert order == ["holder", "short", "large", "long"]
    assert {name: len(answer.ids) for name, answer in answers.items()} == {
        "holder": 200,
        "short": 4,
        "large": 112,
        "long": 400,
    }


def test_first_come_first_served_within_a_class(load_tiny: LoadTiny, passes: Passes) -> None:
    engine = load_tiny(lanes=2)
    passes.hold()
    blockers = {f"blocker {n}": submit(engine, f"blocker {n}", 1, 3) for n in range(2)}
    passes.held()
    kinds = ("agent", "agent", "interactive", "agent", "interactive", "interactive")
    streams = {f"{kind} {n}": submit(engine, f"{kind} {n}", 1, 2, kind) for n, kind in enumerate(kinds)}
    order = starts(streams)
    passes.free()
    for stream in [*blockers.values(), *streams.values()]:
        collect(stream)
    assert order == sorted(streams, key=lambda name: (name.split()[0] == "agent", name[-1]))


def test_agents_that_cannot_be_parked_leave_a_lane_and_a_context(load_tiny: LoadTiny, passes: Passes) -> None:
    """Without a host tier their pages have no place to go."""
    engine = load_tiny(lanes=3, host_tier=0)
    passes.hold()
    agents = [submit(engine, f"agent {n}", 1, 60, "agent") for n in range(4)]
    for _ in range(6):
        passes.step()
    assert [stream.begun for stream in agents] == [True, True, False, False]
    person = submit(engine, "person", 300, 212)
    for _ in range(3):
        passes.step()
    assert person.begun
    passes.free()
    assert len(collect(person).ids) == 212
    for stream in agents:
        assert len(collect(stream).ids) == 60
    assert settled(engine).reuse.parks == 0


def test_a_person_reaches_pages_that_agents_hold(load_tiny: LoadTiny, passes: Passes) -> None:
    engine = load_tiny(kv_tokens=512, lanes=4)
    passes.hold()
    agents = [submit(engine, f"agent {n}", 1, 120, "agent") for n in range(4)]
    wait_until(lambda: agents[-1].begun or passes.step())
    assert engine.snapshot().pages_total == 8
    person = submit(engine, "person", 400, 112)
    passes.step_until(lambda: person.begun)
    passes.free()
    assert len(collect(person).ids) == 112
    for stream in agents:
        assert len(collect(stream).ids) == 120
    reuse = settled(engine).reuse
    assert reuse.parks == reuse.resumes == 4
    assert reuse.spills > 0
    assert reuse.host_used == 0


def test_a_cancel_frees_lane_and_pages_within_one_round(load_tiny: LoadTiny, passes: Passes) -> None:
    engine = load_tiny(lanes=2)
    passes.hold()
    first, second = submit(engine, "first", 1, 300), submit(engine, "second", 1, 300)
    for _ in range(4):
        passes.step()
    held = [stream.request_id for stream in (first, second)]
    before = len(passes.runs)
    engine.cancel(held[0])
    passes.step()  # the round under way
    passes.step()
    widths = [len(runs) for runs in passes.runs[before:]]
    assert widths[-1] == 1
    passes.free()
    second.cancel()
    collect(first)
    collect(second)
    assert settled(engine).pages_free == engine.snapshot().pages_total
