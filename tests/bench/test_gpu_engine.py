"""Parts of ``ignis bench gpu`` that load an engine: here on the CPU, with a tiny model."""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from engine.checkpoint.geometries import QWEN, geometry
from engine.config import EngineConfig
from engine.memory.plan.vram import plan_vram
from engine.memory.plan.weights import published
from engine.messages import EngineError
from engine.schedule.scheduler import Scheduler
from ignis_desktop.bench.gpu import acts, door, equal, gap, leaks, memory, mixed, needs, probe, served, soak
from ignis_desktop.bench.gpu.held import Line, lines_held, tensors
from ignis_desktop.bench.gpu.watched import WatchedEngine, loaded
from ignis_desktop.bench.report import ScenarioReport, Verdict
from ignis_desktop.cli import entry
from ignis_desktop.cli.options import EngineOptions
from tests.tiny import write_tiny

SHORT = 3.0
"""Seconds of a load."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("gpu") / "tiny", context=1024)


@pytest.fixture
def engine(model: Path) -> Iterator[WatchedEngine]:
    with loaded(EngineOptions(model=str(model), device="cpu", threads=1)) as engine:
        yield engine


def quiet(_text: str) -> None:
    pass


def failures(report: ScenarioReport) -> list[str]:
    return [verdict.line() for verdict in report.verdicts if verdict.passed is False]


def verdict(report: ScenarioReport, name: str) -> Verdict:
    return next(verdict for verdict in report.verdicts if verdict.name.startswith(name))


def test_errands_run_where_the_tensors_live(engine: WatchedEngine) -> None:
    assert engine.on_thread(lambda _: threading.current_thread().name) == "engine"
    with pytest.raises(ZeroDivisionError):
        engine.on_thread(lambda _: 1 / 0)
    engine.close()
    with pytest.raises(EngineError, match="The engine is closed"):
        engine.on_thread(lambda _: 1)


# --- memory ------------------------------------------------------------------------------------------------------


def test_memory_is_as_planned(engine: WatchedEngine) -> None:
    report = memory.run(engine, None, seconds=SHORT, seed=1, say=quiet)
    assert not failures(report), report.text()
    held = {line["name"]: line for line in report.facts["lines"]}
    for name in ("weights", "kv_pool", "lane_state", "sampling", "retained", "host_tier"):
        assert held[name]["off"] == pytest.approx(0, abs=0.002)
    assert verdict(report, "plan against the driver, ready").passed is None
    assert verdict(report, "acts that went wrong").passed


def test_a_buffer_that_is_not_as_planned_is_named(engine: WatchedEngine) -> None:
    def grow(scheduler: Scheduler) -> list[Line]:
        scheduler._network.state._conv = torch.zeros(1 << 20)
        plan = engine.snapshot().memory_plan
        assert plan is not None
        return lines_held(scheduler, plan, None)

    (judged,) = memory._buffers(engine.on_thread(grow))
    assert judged.passed is False
    assert judged.measured.startswith("lane_state +")


def test_memory_is_counted_once_however_often_it_is_named() -> None:
    whole = torch.zeros(100)
    assert sum(tensors([whole, {"a": whole[:10]}, (whole,)], device="cpu").values()) == 400
    assert tensors([whole], device="cuda") == {}


def test_a_cards_memory_is_told_by_line(engine: WatchedEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the allocator's account as torch gives it on a card: 5 GiB in use, 1,200 MiB free in one piece."""
    plan = plan_vram(
        geometry(QWEN).config,
        EngineConfig(max_context=8192),
        published(geometry(QWEN).config),
        total=80 << 30,
        free=80 << 30,
    ).plan

    def segment(total: int, used: int = 0, *, pool: int = 0, kind: str = "large", lost: int = 0) -> dict[str, object]:
        return {
            "segment_pool_id": (0, pool),
            "segment_type": kind,
            "total_size": total << 20,
            "allocated_size": used << 20,
            "requested_size": (used - lost) << 20,
        }

    segments = [
        segment(5120, 5120, lost=1),
        segment(20, 8),
        segment(1200),
        segment(2, kind="small"),
        segment(100, 60, pool=1),
        segment(20, pool=1),
    ]
    monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: segments)
    lines = engine.on_thread(lambda scheduler: lines_held(scheduler, plan, 700 << 20))
    found = {line.name: line for line in lines}
    assert found["graphs"].held == 120 << 20
    assert found["workspace, vision_cache"].held == 1200 << 20
    assert found["(of it rounded up)"].held == (1 + 12) << 20
    stays = sum(found[name].held or 0 for name in ("weights", "kv_pool", "lane_state", "sampling", "round"))
    assert found["runtime"].held == ((5120 + 20 + 2) << 20) - stays
    assert found["context"].held == 700 << 20
    assert found["context"].planned == (432 + 168) << 20
    named = {name for line in found for name in line.split(", ")} - {"(of it rounded up)"}
    later = {"kv_window", "verify", "drafter"}
    assert named | later == {line.name for line in plan.lines}
    told = sum(line.planned for line in lines if line.name not in ("retained", "host_tier"))
    assert told + sum(line.bytes for line in plan.lines if line.name in later) == plan.total


def test_a_cards_counters_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    stats = {
        "num_device_alloc": 7,
        "num_device_free": 2,
        "num_alloc_retries": 1,
        "num_ooms": 0,
        "segment.all.current": 5,
    }
    for name, value in {
        "is_available": True,
        "is_initialized": True,
        "synchronize": None,
        "memory_stats": stats,
        "host_memory_stats": {"num_host_alloc": 4},
        "memory_reserved": 900,
        "max_memory_allocated": 800,
    }.items():
        monkeypatch.setattr(torch.cuda, name, lambda value=value: value)
    seen = probe.look()
    assert (seen.device_allocations, seen.device_frees, seen.retries, seen.segments) == (7, 2, 1, 5)
    assert (seen.reserved, seen.most_allocated, seen.pinned) == (900, 800, 4)
    assert seen.resident > 0


@pytest.mark.parametrize(("held", "passed"), [(1005, True), (989, False), (1011, False), (None, None)])
def test_the_driver_is_held_against_the_plan(held: int | None, passed: bool | None) -> None:
    assert memory._plan("plan", 1000, held).passed is passed


@pytest.mark.parametrize("name", ["device_allocations", "retries", "reserved", "segments"])
def test_whatever_is_taken_after_load_is_a_fault(name: str) -> None:
    before = probe.Look()
    assert soak.allocation_verdict(before, probe.Look(most_allocated=5, resident=9), card=True).passed
    assert soak.allocation_verdict(before, probe.Look(**{name: 1}), card=True).passed is False


# --- soak --------------------------------------------------------------------------------------------------------


def test_a_soak_leaves_everything_as_it_was(engine: WatchedEngine) -> None:
    with probe.Compilations() as compilations:
        report = soak.run(engine, compilations, seconds=2 * SHORT, seed=0, say=quiet)
    assert not failures(report), report.text()
    done = report.facts["load"]["outcomes"]
    assert sum(sum(counts.values()) for counts in done.values()) > 12
    assert report.facts["checks"].keys() == {"start", "middle", "end"}
    assert verdict(report, "throughput").passed is None


def test_kernels_compiled_under_load_are_named(engine: WatchedEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    from triton import knobs

    run = mixed.Mixed.run

    def compiling(self: mixed.Mixed, *given: Any) -> None:
        run(self, *given)
        assert knobs.compilation.listener is not None
        knobs.compilation.listener(src=None, metadata={"name": "late"}, metadata_group={}, times=None, cache_hit=True)  # type: ignore[arg-type]

    before = knobs.compilation.listener
    with probe.Compilations() as compilations:
        monkeypatch.setattr(mixed.Mixed, "run", compiling)
        report = soak.run(engine, compilations, seconds=1.0, seed=0, say=quiet)
    assert knobs.compilation.listener is before
    found = verdict(report, "kernels compiled")
    assert found.passed is False
    assert found.measured == "2 × late"  # of the two halves; the one of the first uses is none


def test_bits_that_change_are_noticed(engine: WatchedEngine) -> None:
    first = equal.graph_and_eager(engine)
    assert first.equal
    assert not first.graph
    assert equal.graph_and_eager(engine) == first

    def spoil(scheduler: Scheduler) -> None:
        scheduler._network.decoder._weights.embedding.mul_(1.01)  # type: ignore[union-attr]

    engine.on_thread(spoil)
    assert equal.graph_and_eager(engine).digest != first.digest
    assert soak._equal({"start": first, "end": equal.graph_and_eager(engine)}).passed is False


def test_a_page_that_is_lost_is_found(engine: WatchedEngine) -> None:
    before, begun = leaks.state(), engine.snapshot()
    assert all(found.passed for found in leaks.verdicts(engine, before, begun))
    lost = engine.on_thread(lambda scheduler: scheduler.lanes.pages.take(1))
    mixed.Mixed(engine, mixed.HOST).once()  # publishes what is free
    names = [found.name for found in leaks.verdicts(engine, before, begun) if found.passed is False]
    assert "lanes, queue and pages afterwards" in names
    assert "references to pages, units and slots, counted again" in names
    engine.on_thread(lambda scheduler: scheduler.lanes.pages.release(lost))


def test_throughput_that_falls_is_a_fault() -> None:
    report = ScenarioReport("soak", "")
    steady = mixed.Tally(looks=[(10.0 * i, 1000 * i, 100 * i) for i in range(1, 31)])
    assert soak._drift(report, steady, 300.0).passed
    tired = mixed.Tally(looks=[(10.0 * i, 1000 * i - 15 * i * i, 0) for i in range(1, 31)])
    assert soak._drift(report, tired, 300.0).passed is False


@pytest.mark.parametrize("name", ["chat", "storm", "deadline", "park", "screen", "decide", "locate", "picture"])
def test_every_act_ends_as_it_should(engine: WatchedEngine, name: str) -> None:
    act = next(act for act in acts.acts_of(engine) if act.name == name)
    load = mixed.Mixed(engine, mixed.HOST)
    load._do(act, load._randoms[0])
    assert not load.tally.faults
    assert load.tally.outcomes[name].total() == 1


def test_an_answer_of_another_length_is_wrong(engine: WatchedEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    submit = engine.submit
    monkeypatch.setattr(
        engine, "submit", lambda asked: submit(replace(asked, sampling=replace(asked.sampling, max_tokens=77)))
    )
    load = mixed.Mixed(engine, mixed.HOST)
    load._do(next(act for act in acts.acts_of(engine) if act.name == "chat"), load._randoms[0])
    (fault,) = load.tally.faults
    assert "ended with length after 77" in fault
    assert soak.faults_verdict(load.tally).passed is False


# --- gap ---------------------------------------------------------------------------------------------------------


def test_the_hosts_time_is_told_by_phase(engine: WatchedEngine) -> None:
    report = gap.run(engine, seconds=SHORT, say=quiet)
    assert not failures(report)
    one, many = report.facts["gaps"]
    assert (one["lanes"], many["lanes"]) == (1, 8)
    for found in (one, many):
        assert {"decoder", "staging", "sampling", "emitting", "text"} <= found["phases"].keys()
        assert 0 < found["bare"] < found["engine"]
        assert sum(found["phases"].values()) == pytest.approx(found["engine"])
        assert 0 < found["gap_share"] < 1


@pytest.mark.parametrize(("bare", "passed"), [(4.9, [True, True]), (4.75, [False, True]), (4.6, [False, False])])
def test_a_gap_is_judged_against_a_graph(
    engine: WatchedEngine, monkeypatch: pytest.MonkeyPatch, bare: float, passed: list[bool]
) -> None:
    monkeypatch.setattr(gap, "sizes", lambda *_: (64, 8))
    monkeypatch.setattr(
        gap, "measure", lambda _engine, lanes, *_: gap.Gap(lanes, 64, 5.0, bare, True, {"decoder": 1.0})
    )
    report = gap.run(engine, seconds=1.0, say=quiet)
    assert [verdict.passed for verdict in report.verdicts] == passed * 2


def test_a_graph_is_replayed_while_its_lanes_hold_their_pages(
    engine: WatchedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[int] = []
    scheduler = engine.on_thread(lambda scheduler: scheduler)
    monkeypatch.setattr(scheduler._round_buffers, "_graphs", {3: SimpleNamespace(graph=None)}, raising=False)
    monkeypatch.setattr(gap, "replayed", lambda _: held.append(len(list(scheduler.lanes.running))) or 1.5)
    assert gap._bare(engine, 3, 64, 200) == 1.5
    assert held == [3]
    monkeypatch.setattr(gap, "_wait_for_all", lambda _begun, _lanes, streams: door.rest(streams))
    with pytest.raises(EngineError, match="longer answers"):
        gap._bare(engine, 3, 64, 4)


# --- serve -------------------------------------------------------------------------------------------------------


def test_the_server_is_measured_beside_its_engine(engine: WatchedEngine) -> None:
    report = served.run(engine, seconds=1.0, seed=0, say=quiet)
    assert not failures(report), report.text()
    one, many = report.facts["streams"]
    assert one["ttft_ms"]["p50"] > 0
    assert many["ttft_ms"]["count"] == 8 * served.REPEATS
    assert set(report.facts["answers"]) == {
        "a chat with tools",
        "an answer held to a JSON schema",
        "decide",
        "a picture in a chat",
        "a screen and points on it",
    }


def test_an_answer_that_is_not_as_asked_is_told(engine: WatchedEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "SCHEMA", {"type": "object", "properties": {}, "additionalProperties": False})
    monkeypatch.setattr(served, "_streams", lambda *_: pytest.fail("no stream is wanted"))
    monkeypatch.setattr(served, "REPEATS", -1)
    monkeypatch.setattr(served, "_row", lambda *_: ["-"] * len(served.HEADERS))
    report = served.run(engine, seconds=1.0, seed=0, say=quiet)
    (wrong,) = [found for found in report.verdicts if found.passed is False]
    assert wrong.name == "an answer held to a JSON schema"
    assert "the answer is not as asked: {}" in wrong.measured


@pytest.mark.parametrize(
    ("costs", "tokens", "passed"), [([0.4], 64, True), ([0.6], 64, False), ([0.6], 63, None), ([], 64, None)]
)
def test_what_a_token_costs_the_server(costs: list[float], tokens: int, passed: bool | None) -> None:
    assert served._cost(served.Streams(8, token_ms=costs), tokens).passed is passed


# --- the command -------------------------------------------------------------------------------------------------


def test_parts_share_an_engine_and_one_result(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "result.json"
    options = ["--model", str(model), "--device", "cpu", "--threads", "1", "--seconds", "1", "--json", str(out)]
    assert entry.run(["bench", "gpu", "--part", "gap", "--part", "memory", "--check", *options]) == 0
    said = capsys.readouterr().out
    assert said.count("ready after") == 1
    assert said.index("memory: the plan") < said.index("gap: the engine's")
    result = json.loads(out.read_text(encoding="utf-8"))
    assert result["parts"] == ["memory", "gap"]
    assert result["faults"] == {}
    assert result["engine"]["model"] == "Tiny"
    assert result["memory"]["verdicts"]


def test_a_part_that_fails_is_told_and_checked(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(memory, "run", lambda *_given, **_named: 1 / 0)
    monkeypatch.setattr(gap, "run", lambda *_given, **_named: ScenarioReport("gap", "after all"))
    options = ["--model", str(model), "--device", "cpu", "--json", str(tmp_path / "result.json")]
    assert entry.run(["bench", "gpu", "--part", "memory", "--part", "gap", "--check", *options]) == 1
    said = capsys.readouterr().out
    assert "ZeroDivisionError" in said
    assert "gap: after all" in said


def test_a_model_that_is_not_there_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--model", str(tmp_path / "none"), "--device", "cpu", "--check"]
    assert entry.run(["bench", "gpu", "--part", "gap", *options]) == 1
    said = capsys.readouterr()
    assert "none" in said.out
    assert "Traceback" not in said.out + said.err


def test_what_is_not_installed_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in ("fastapi", "uvicorn") else there(name)
    )
    assert needs.missing(["gap", "soak"]) == []
    assert entry.run(["bench", "gpu", "--part", "gap", "--part", "serve"]) == 1
    said = capsys.readouterr().err
    assert "lacks fastapi, uvicorn, without which there is no --part serve: pip install fastapi uvicorn." in said
    assert "Traceback" not in said
