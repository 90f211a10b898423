"""Many requests, many threads, everything at once: nothing is lost, nobody waits for ever, nothing is left behind."""

from __future__ import annotations

import random
import threading
import time

import numpy as np
import pytest
from PIL import Image

from engine import Engine
from engine.engine import new_id
from engine.messages import (
    BusyError,
    EngineError,
    Failed,
    Finished,
    GenerateRequest,
    HeadSpan,
    PrefixGoneError,
    Prompt,
    ReadRequest,
    Request,
    RequestError,
    RetainRequest,
    SamplingParams,
    Started,
)
from engine.stream import Stream
from tests.conftest import LoadTiny
from tests.engine.requests import GREEDY, collect, generate, settled, text_ids
from tests.tiny import HEADS


class Chaos:
    """Random requests of every kind, of which many give up, come late or ask for what is gone."""

    def __init__(self, engine: Engine, seed: int) -> None:
        self.engine = engine
        self.rng = random.Random(seed)
        self.prefixes = [f"prefix {seed} {n}" for n in range(3)]
        noise = np.random.default_rng(seed).integers(0, 256, (32, 48, 3), dtype=np.uint8)
        self.image = engine.prepare_image(Image.fromarray(noise))

    def request(self) -> Request:
        rng = self.rng
        roll = rng.random()
        common = {
            "request_class": rng.choice(("interactive", "agent")),
            "deadline": time.monotonic() + rng.choice((0.0, 0.05, 0.2)) if rng.random() < 0.1 else None,
        }
        ids = text_ids(self.engine, rng.randint(1, 300), rng.randrange(100))
        prompt = Prompt(ids)
        if rng.random() < 0.1:
            token = self.engine.loaded.config.image_token_id
            prompt = Prompt((*ids[:50], *[token] * 24, 5), (self.image,))
        if roll < 0.1:
            return RetainRequest(rng.choice(self.prefixes), Prompt(ids), layers=rng.choice((None, 4)), **common)
        if roll < 0.35:
            prefix = rng.choice([*self.prefixes, None])
            return ReadRequest(
                new_id("read"),
                Prompt(ids[:100]),
                heads=HeadSpan(HEADS, 0, min(len(ids), 100)) if rng.random() < 0.7 else None,
                labels=(1, 2),
                prefix=prefix,
                **common,
            )
        sampling = SamplingParams(
            temperature=rng.choice((0.0, 1.0, 2.0)),
            top_p=rng.choice((1.0, 0.9)),
            repetition_penalty=rng.choice((1.0, 1.3)),
            max_tokens=rng.choice((0, 1, 5, 40)),
            logprobs=rng.choice((None, None, 2)),
            prompt_logprobs=rng.choice((None, None, 0)),
            stop=rng.choice(((), ("e",))),
            ignore_eos=rng.random() < 0.5,
        )
        return GenerateRequest(new_id("gen"), prompt, sampling, **common)

    def submit(self) -> Stream | None:
        """A stream whose request may be cancelled soon; None when it was refused."""
        try:
            stream = self.engine.submit(self.request())
        except (BusyError, RequestError):
            return None
        if self.rng.random() < 0.25:
            threading.Timer(self.rng.random() * 0.05, stream.cancel).start()
        if self.rng.random() < 0.1:
            self.engine.release(self.rng.choice(self.prefixes))
        return stream

    def release(self) -> None:
        for prefix in self.prefixes:
            self.engine.release(prefix)


def check(stream: Stream) -> None:
    """The events of a request are in order and end once, with an end that makes sense."""
    answer = collect(stream, timeout=60)
    ends = [event for event in answer.events if isinstance(event, Finished | Failed)]
    assert ends == [answer.events[-1]]
    assert all(not isinstance(event, Started) for event in answer.events[1:])
    if isinstance(ends[0], Failed):
        assert isinstance(ends[0].error, PrefixGoneError | RequestError) or ends[0].error.status == 504, ends[0]


@pytest.mark.parametrize("seed", [1, 2])
def test_three_hundred_requests_leave_nothing_behind(load_tiny: LoadTiny, seed: int) -> None:
    engine = load_tiny(lanes=4, prefill_chunk=128, kv_tokens=1024, retained_limit=3)
    expected = generate(engine, [1, 2, 3], max_tokens=20, **GREEDY)
    chaos = Chaos(engine, seed)
    streams = []
    while len(streams) < 150:
        stream = chaos.submit()
        if stream is not None:
            streams.append(stream)
    for stream in streams:
        check(stream)
    chaos.release()
    snapshot = settled(engine)
    assert (snapshot.pages_free, snapshot.retained) == (snapshot.pages_total, 0)
    assert snapshot.requests_finished + snapshot.requests_failed + snapshot.requests_cancelled == 151
    assert min(snapshot.requests_finished, snapshot.requests_failed, snapshot.requests_cancelled) > 0
    again = generate(engine, [1, 2, 3], max_tokens=20, **GREEDY)
    assert again.ids == expected.ids


def test_many_threads_while_the_engine_closes(load_tiny: LoadTiny) -> None:
    """Every request that was taken gets an end, also when the engine goes in the middle of it all."""
    engine = load_tiny(lanes=3, prefill_chunk=128, queue_limit=20, retained_limit=2)
    taken: list[Stream] = []
    faults: list[BaseException] = []
    ready = threading.Barrier(7)

    def hammer(seed: int) -> None:
        chaos = Chaos(engine, seed)
        ready.wait()
        try:
            while engine.snapshot().state == "ready":
                stream = chaos.submit()
                if stream is not None:
                    taken.append(stream)
                else:
                    time.sleep(0.001)
        except EngineError:
            pass
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=hammer, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    ready.wait()
    time.sleep(0.7)
    engine.close()
    for thread in threads:
        thread.join(30)
    assert not faults
    assert len(taken) > 20
    for stream in taken:
        check(stream)
    last = engine.snapshot()
    assert last.state == "closed"
    assert last.requests_finished + last.requests_failed + last.requests_cancelled == len(taken)
    with pytest.raises(BusyError):
        engine.submit(GenerateRequest("late", Prompt((1,))))


def test_events_reach_readers_of_every_kind(load_tiny: LoadTiny) -> None:
    """Iterating, polling, and being told: each sees all of its tokens while the others read."""
    engine = load_tiny()
    options = {**GREEDY, "max_tokens": 60}
    expected = generate(engine, [4, 5], **options).ids
    results: dict[str, list[int]] = {"iterate": [], "poll": [], "told": []}

    def submit() -> Stream:
        return engine.submit(GenerateRequest(new_id("reader"), Prompt((4, 5)), SamplingParams(**options)))

    def iterate() -> None:
        for event in submit():
            results["iterate"] += getattr(event, "ids", ())

    def poll() -> None:
        stream = submit()
        while True:
            for event in stream.poll():
                results["poll"] += getattr(event, "ids", ())
                if isinstance(event, Finished):
                    return
            time.sleep(0.003)

    def told() -> None:
        stream, bell = submit(), threading.Event()
        stream.notify(bell.set)
        while True:
            assert bell.wait(30)
            bell.clear()
            for event in stream.poll():
                results["told"] += getattr(event, "ids", ())
                if isinstance(event, Finished):
                    return

    threads = [threading.Thread(target=reader) for reader in (iterate, poll, told)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert results == dict.fromkeys(results, expected)
    settled(engine)
