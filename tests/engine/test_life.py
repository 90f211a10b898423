"""An engine's life: loading, the states it goes through, what it says when it fails, its end."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from engine import Engine, EngineConfig, EngineError
from engine.engine import new_id
from engine.memory.plan import Memory
from engine.messages import BusyError, EngineSnapshot, GenerateRequest, Prompt, RequestError
from tests.conftest import LoadTiny
from tests.engine.requests import GREEDY, Passes, collect, generate, generation, read, retain, settled, text_ids

ROOT = Path(__file__).resolve().parents[2]


def test_states_from_empty_to_closed(tiny_folder: Path, load_tiny: LoadTiny) -> None:
    engine = Engine(EngineConfig(model=tiny_folder, threads=1))
    assert engine.snapshot().state == "empty"
    with pytest.raises(BusyError, match="not ready"):
        engine.text_prompt("too early")
    seen: list[EngineSnapshot] = []
    engine.start()
    engine.wait_ready(on_progress=seen.append)
    order = ["empty", "planning", "loading", "ready"]
    states = [order.index(snapshot.state) for snapshot in seen]
    assert states == sorted(states)
    assert all(s.progress is not None for s in seen if s.state == "loading")
    ready = engine.snapshot()
    assert (ready.model, ready.model_id, ready.context_length) == ("Tiny", "tiny", 512)
    assert ready.device.startswith("CPU, ")
    assert ready.memory_plan is not None
    assert len(ready.lanes) == 8
    assert ready.pages_free == ready.pages_total == 64
    assert ready.resident_bytes > 0
    engine.close()
    assert engine.snapshot().state == "closed"
    with pytest.raises(BusyError, match="closed"):
        engine.text_prompt("too late")


def test_chat_in_five_lines(load_tiny: LoadTiny) -> None:
    engine = load_tiny()
    pieces = list(engine.chat("Say hello.", max_tokens=20, temperature=0.0))
    assert "".join(pieces) == "".join(engine.chat([{"role": "user", "content": "Say hello."}], max_tokens=20, **GREEDY))
    assert len(pieces) > 1
    with pytest.raises(RequestError, match="temperature"):
        next(engine.chat("Hello", temperature=-1.0))


def test_leaving_a_chat_early_cancels_it(load_tiny: LoadTiny) -> None:
    engine = load_tiny()
    for _ in engine.chat("Count for ever.", ignore_eos=True):
        break
    assert settled(engine).requests_cancelled == 1


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (shutil.rmtree, "There is no model"),
        (lambda folder: (folder / "model.safetensors").unlink(), "safetensors"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "tokenizer.json is missing"),
        (lambda folder: (folder / "chat_template.jinja").write_text("{% if %}"), "does not parse"),
        (lambda folder: (folder / "generation_config.json").write_text("[1]"), "generation_config.json"),
        (lambda folder: (folder / "heads.json").write_text("{"), "heads.json"),
        (lambda folder: (folder / "preprocessor_config.json").write_text("{,}"), "preprocessor_config.json"),
    ],
    ids=["folder", "weights", "tokenizer", "template", "generation", "heads", "preprocessor"],
)
def test_a_broken_folder_fails_with_its_reason(tiny_folder: Path, tmp_path: Path, spoil, reason: str) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_folder, folder)
    spoil(folder)
    engine = Engine(EngineConfig(model=folder, threads=1))
    engine.run()  # in this thread: a fault does not escape it
    snapshot = engine.snapshot()
    assert snapshot.state == "failed"
    assert reason in snapshot.reason
    with pytest.raises(EngineError, match="failed") as caught:
        engine.submit(GenerateRequest("a", Prompt((1,))))
    assert caught.value.code == "engine_failed"
    with pytest.raises(EngineError) as error:
        engine.wait_ready()
    assert error.value.message == snapshot.reason


def test_load_raises_the_reason_and_leaves_no_thread(tmp_path: Path) -> None:
    before = threading.active_count()
    with pytest.raises(EngineError, match="There is no model"):
        Engine.load(tmp_path / "nowhere", threads=1)
    assert threading.active_count() == before


def test_a_plan_that_does_not_fit_is_refused_before_reading(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.memory.plan.host.host_memory", lambda: Memory(8 << 30, 850 << 20))
    monkeypatch.setattr("engine.loader.build_network", lambda *_, **__: pytest.fail("weights were read"))
    engine = Engine(EngineConfig(model=tiny_folder, threads=1))
    engine.run()
    assert engine.snapshot().state == "failed"
    assert f"bytes more than the {338 << 20:,} that may be taken" in engine.snapshot().reason
    assert "--headroom" in engine.snapshot().reason


def test_fewer_pages_are_planned_where_memory_is_short(
    tiny_folder: Path, load_tiny: LoadTiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    roomy = load_tiny().snapshot().memory_plan
    assert roomy is not None
    pool = next(line.bytes for line in roomy.lines if line.name == "kv_pool")
    tier = next(line.bytes for line in roomy.lines if line.name == "host_tier")
    tight = Memory(8 << 30, roomy.headroom + roomy.total - tier - pool // 2)
    monkeypatch.setattr("engine.memory.plan.host.host_memory", lambda: tight)
    engine = load_tiny()
    generate(engine, [1], max_tokens=1)
    assert settled(engine).pages_total == 32  # of 8 lanes × 512 / 64
    with pytest.raises(EngineError, match="bytes more"):
        load_tiny(kv_tokens=8 * 512)


def test_the_pool_holds_at_least_one_context(load_tiny: LoadTiny) -> None:
    with pytest.raises(EngineError, match="one context needs 512"):
        load_tiny(kv_tokens=256)
    engine = load_tiny(kv_tokens=256, max_context=256)
    assert engine.info.context_length == 256


def test_an_engine_runs_once(tiny: Engine) -> None:
    with pytest.raises(EngineError, match="runs once"):
        tiny.start()
    with pytest.raises(EngineError, match="runs once"):
        tiny.run()
    assert tiny.snapshot().state == "ready"


def test_closing_before_starting(tiny_folder: Path) -> None:
    engine = Engine(EngineConfig(model=tiny_folder, threads=1))
    engine.close()
    assert engine.snapshot().state == "closed"
    engine.start()
    with pytest.raises(EngineError, match="closed before it was ready"):
        engine.wait_ready()
    engine.close()
    assert engine.snapshot().state == "closed"


def test_closing_while_loading(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(EngineConfig(model=tiny_folder, threads=1))
    loading = threading.Event()

    def slowly(*args: object, on_progress, **options: object) -> None:
        loading.set()
        for part in range(1_000):
            on_progress(part, 1_000, "a tensor")
            time.sleep(0.01)

    monkeypatch.setattr("engine.engine.load_model", slowly)
    engine.start()
    assert loading.wait(5)
    engine.close()
    assert engine.snapshot().state == "closed"
    assert engine.snapshot().reason == ""
    with pytest.raises(EngineError, match="closed before it was ready"):
        engine.wait_ready()


def test_waiting_for_ready_gives_up(tiny_folder: Path) -> None:
    engine = Engine(EngineConfig(model=tiny_folder, threads=1))
    with pytest.raises(TimeoutError):
        engine.wait_ready(timeout=0.05)
    engine.close()


def test_closing_ends_what_runs_and_waits_as_cancelled(load_tiny: LoadTiny) -> None:
    engine = load_tiny(lanes=2)
    streams = [engine.submit(generation([5, 6], ignore_eos=True)) for _ in range(5)]
    engine.close()
    ends = [collect(stream).end for stream in streams]
    assert {end.reason for end in ends} == {"cancelled"}
    assert engine.snapshot().requests_cancelled == 5
    assert engine.snapshot().pages_free == engine.snapshot().pages_total


def test_closing_twice_and_from_many_threads(load_tiny: LoadTiny) -> None:
    engine = load_tiny()
    closers = [threading.Thread(target=engine.close) for _ in range(4)]
    for closer in closers:
        closer.start()
    for closer in closers:
        closer.join()
    engine.close()
    assert engine.snapshot().state == "closed"


def test_a_fault_of_the_loop_itself_fails_the_engine(load_tiny: LoadTiny, passes: Passes, monkeypatch) -> None:
    """Nobody waits for ever, and the snapshot shows no lane at work."""
    engine = load_tiny()
    stream = engine.submit(generation([3], ignore_eos=True))
    passes.hold()
    passes.held()
    monkeypatch.setattr("engine.schedule.scheduler.Scheduler.step", lambda self: 1 / 0)
    passes.free()
    assert "division by zero" in str(collect(stream).error)
    assert engine.snapshot().state == "failed"
    assert all(lane.state == "idle" for lane in engine.snapshot().lanes)
    with pytest.raises(EngineError, match="division by zero"):
        engine.submit(generation([3]))


def test_a_program_that_forgets_to_close_ends(tiny_folder: Path) -> None:
    program = (
        "from engine import Engine\n"
        f"engine = Engine.load({str(tiny_folder)!r}, threads=1)\n"
        "chat = engine.chat('Count for ever.', ignore_eos=True)\n"
        "print('first', bool(next(chat)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "first True\n"
    assert done.stderr == ""


def test_snapshots_never_go_backwards(load_tiny: LoadTiny) -> None:
    engine = load_tiny(lanes=3)
    counters = [
        "time",
        "rounds",
        "tokens_generated",
        "tokens_prefilled",
        "requests_finished",
        "requests_failed",
        "requests_cancelled",
    ]
    seen: list[EngineSnapshot] = []
    watching = threading.Event()

    def watch() -> None:
        while not watching.is_set():
            seen.append(engine.snapshot())
            time.sleep(0.001)

    watcher = threading.Thread(target=watch)
    watcher.start()
    streams = [
        engine.submit(generation(text_ids(engine, 40 + n), max_tokens=5 + n % 9, ignore_eos=True)) for n in range(30)
    ]
    for stream in streams[::5]:
        stream.cancel()
    for stream in streams:
        collect(stream)
    last = settled(engine)
    watching.set()
    watcher.join()
    for name in counters:
        values = [getattr(snapshot, name) for snapshot in seen]
        assert values == sorted(values), name
    assert last.requests_finished + last.requests_cancelled == 30
    assert any(sum(lane.state != "idle" for lane in snapshot.lanes) == 3 for snapshot in seen)
    for snapshot in seen:
        for lane in snapshot.lanes:
            assert lane.prefilled <= lane.prompt_tokens
            assert (lane.state == "idle") == (lane.request_id == "")


def test_a_lane_shows_what_it_does(load_tiny: LoadTiny, passes: Passes) -> None:
    engine = load_tiny(prefill_chunk=128)
    passes.hold()
    ids = text_ids(engine, 300)
    stream = engine.submit(
        generation(ids, name="shown", client="here", label="a test", request_class="agent", **GREEDY)
    )
    passes.step()
    lane = engine.snapshot().lanes[0]
    assert (lane.state, lane.request_id, lane.kind) == ("prefill", "shown", "generate")
    assert (lane.client, lane.label, lane.request_class) == ("here", "a test", "agent")
    assert (lane.prompt_tokens, lane.prefilled, lane.generated) == (300, 128, 0)
    passes.step()
    passes.step()
    passes.step()
    time.sleep(0.04)  # snapshots are published thirty times a second
    passes.step()
    lane = engine.snapshot().lanes[0]
    assert (lane.state, lane.prefilled, lane.context - lane.prompt_tokens) == ("decode", 300, lane.generated - 1)
    stream.cancel()
    passes.free()
    assert collect(stream).end.reason == "cancelled"


def test_info_and_defaults(tiny: Engine) -> None:
    info = tiny.info
    assert (info.id, info.name, info.context_length) == ("tiny", "Tiny", 512)
    assert info.vision
    assert info.locate
    assert info.point
    assert info.vocabulary_size == len(tiny.tokenizer)
    defaults = tiny.sampling_defaults()
    assert (defaults.temperature, defaults.top_k, defaults.top_p) == (0.8, 40, 1.0)


def test_a_model_without_pictures_heads_or_template(tmp_path: Path, load_tiny: LoadTiny) -> None:
    from tests.tiny import write_tiny

    folder = write_tiny(tmp_path / "text-only", vision=False)
    (folder / "heads.json").unlink()
    (folder / "chat_template.jinja").unlink()
    (folder / "generation_config.json").write_text('{"temperature": null, "top_k": null, "eos_token_id": 3}')
    engine = load_tiny(folder)
    assert not engine.info.vision
    assert not engine.info.locate
    with pytest.raises(RequestError, match="takes no pictures"):
        engine.prepare_image(b"")
    with pytest.raises(RequestError, match="no chat template"):
        engine.chat_prompt([{"role": "user", "content": "hello"}])
    assert engine.sampling_defaults().temperature == 1.0
    assert len(generate(engine, engine.text_prompt("hello"), max_tokens=4, **GREEDY).ids) == 4


def test_every_kind_of_request_in_either_compute_type(load_tiny: LoadTiny) -> None:
    for dtype in ("float32", "bfloat16"):
        engine = load_tiny(dtype=dtype)
        assert dtype in engine.snapshot().device
        assert generate(engine, [1, 2, 3], max_tokens=5, **GREEDY).end.usage.output_tokens == 5
        retain(engine, "kept", [1, 2, 3])
        scores = read(engine, [4], labels=(1, 2), prefix="kept").scores
        assert scores is not None
        engine.release("kept")
        settled(engine)


@pytest.mark.parametrize(
    "fields",
    [
        {"lanes": 0},
        {"lanes": 17},
        {"dtype": "int4"},
        {"prefill_chunk": 100},
        {"max_context": 10},
        {"decode_share": 1.0},
        {"decode_share": float("nan")},
        {"page_size": 0},
        {"queue_limit": 0},
        {"retained_limit": 0},
        {"generation_cap": 0},
    ],
)
def test_options_out_of_range(fields: dict[str, object]) -> None:
    with pytest.raises(EngineError, match=next(iter(fields))):
        EngineConfig(**fields)


@pytest.mark.parametrize("fields", [{"device": "tpu"}, {"threads": 0}])
def test_options_that_the_machine_decides(tiny_folder: Path, fields: dict[str, object]) -> None:
    engine = Engine(replace(EngineConfig(model=tiny_folder), **fields))
    engine.run()
    assert next(iter(fields)) in engine.snapshot().reason


def test_ids_are_fresh() -> None:
    assert len({new_id("x") for _ in range(100)}) == 100
