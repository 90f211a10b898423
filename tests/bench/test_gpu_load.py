"""``ignis bench gpu --part load`` and its tools, on the CPU: the card's way of reading weights too, with its packing in
plain torch."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from engine import compute
from engine.checkpoint import geometries
from engine.checkpoint.geometries import EMBER, Geometry, geometry
from engine.checkpoint.shards import Shard
from engine.memory import reserve
from engine.messages import MemoryLine, MemoryPlan
from ignis_desktop.bench.gpu import loading, probe
from ignis_desktop.bench.gpu.phases import Phases
from ignis_desktop.bench.gpu.watched import loaded
from ignis_desktop.cli import entry
from ignis_desktop.cli.options import EngineOptions
from tests.engine.requests import GREEDY, generate, text_ids
from tests.tiny import write_tiny

OPTIONS = EngineOptions(device="cpu", threads=1)
BEYOND = 16_384
"""Rows of the head that no token of Ember's tokenizer stands for, about."""


@pytest.fixture(scope="module")
def shape(tmp_path_factory: pytest.TempPathFactory) -> Geometry:
    """Small, and served by the card's kernels."""
    folder = write_tiny(tmp_path_factory.mktemp("shapes"), gdn_dim=16, context=4096)
    raw = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    raw["tie_word_embeddings"] = False
    raw["text_config"].update(
        vocab_size=49_152 + BEYOND, intermediate_size=128, hidden_size=64, tie_word_embeddings=False
    )
    raw["vision_config"].update(out_hidden_size=64)
    return replace(geometry(EMBER), raw=raw, id="small")


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights are read as for a card."""
    monkeypatch.setattr(compute, "choice", lambda: "triton")
    monkeypatch.setattr(loading, "choose_dtype", lambda *_: torch.bfloat16)


def quiet(_text: str) -> None:
    pass


def test_loads_are_told_by_phase(shape: Geometry, tmp_path: Path, fused: None) -> None:
    del fused
    report, made = loading.run(shape, tmp_path, OPTIONS, seed=0, say=quiet)
    assert made == tmp_path / "small-converted"
    published, converted = report.facts["loads"]
    assert published["phases"]["packing"] > 0
    assert "placing what is in order" not in published["phases"]
    assert converted["phases"]["placing what is in order"] > 0
    assert "packing" not in converted["phases"]
    for load in (published, converted):
        assert 0 < load["weights"] < load["whole"]
        assert sum(load["phases"].values()) == pytest.approx(load["whole"], rel=0.05)
        assert load["readers"] > 0
        assert load["bytes"] > 10_000_000
        assert load["gb_per_second"] == pytest.approx(load["bytes"] / 1e9 / load["weights"])
    assert [verdict.passed for verdict in report.verdicts] == [None, None, True]
    again, _ = loading.run(shape, tmp_path, OPTIONS, seed=0, say=quiet)
    assert [row[-1] for row in again.tables[0][1] if row[0].startswith("models")] == ["was there"] * 2
    assert not hasattr(vars(Shard)["rows"], "__wrapped__"), "the timers are off again"


def test_slow_loads_fail() -> None:
    load = loading.Load("converted", 10**10, weights=4.9, whole=6.0, phases={}, readers=1.0, plain=1.0)
    assert loading._judged(load) == (True, "")
    assert loading._judged(replace(load, weights=5.1)) == (False, "")


def test_what_cannot_be_converted_is_told(shape: Geometry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise RuntimeError("no room")

    monkeypatch.setattr(loading, "convert", refuse)
    report, made = loading.run(shape, tmp_path, OPTIONS, seed=0, say=quiet)
    assert made == tmp_path / "small-random"
    assert report.verdicts[-1].passed is False
    assert report.verdicts[-1].measured == "RuntimeError: no room"


def test_the_whole_program_runs_on_what_load_made(
    shape: Geometry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Heads and text too: what is random writes tokens that have text, and can be asked for lines and points."""
    monkeypatch.setattr(geometries, "geometry", lambda _name: shape)
    options = ["--folder", str(tmp_path), "--device", "cpu", "--threads", "1", "--seconds", "1", "--check"]
    assert entry.run(["bench", "gpu", "--part", "load", "--part", "memory", *options]) == 0
    said = capsys.readouterr().out
    assert "Ember, random weights, CPU" in said
    assert "acts that went wrong: 0 of" in said
    with loaded(replace(OPTIONS, model=str(tmp_path / "small-converted"))) as engine:
        assert engine.info.locate
        assert engine.info.point
        answer = generate(engine, text_ids(engine, 40), **{**GREEDY, "temperature": 1.0, "top_k": 20}, max_tokens=40)
        known = len(engine.tokenizer.token_bytes)
        assert all(token < known for token in answer.ids)


def test_phases_are_exclusive_and_of_one_thread() -> None:
    def inner() -> None:
        time.sleep(0.03)

    def outer() -> None:
        time.sleep(0.01)
        work.inner()

    work = SimpleNamespace(inner=inner, outer=outer)
    with Phases(threading.get_ident()) as phases:
        assert phases.watch("inner", work, "inner")
        assert phases.watch("outer", work, "outer")
        assert not phases.watch("gone", work, "gone")
        work.outer()
        other = threading.Thread(target=work.outer)
        other.start()
        other.join()
    assert work.inner is inner
    assert phases.calls == {"inner": 1, "outer": 1}
    assert phases.seconds["inner"] >= 0.03
    assert 0.01 <= phases.seconds["outer"] < 0.03


def test_a_fault_is_timed_and_passed_on() -> None:
    with Phases() as phases:
        phases.watch("division", Broken, "divide")
        with pytest.raises(ZeroDivisionError):
            Broken().divide()
    assert phases.calls["division"] == 1
    assert not hasattr(Broken.divide, "__wrapped__")


class Broken:
    def divide(self) -> float:
        return 1 / 0


def test_counters_tell_what_happened_between() -> None:
    before = probe.Look(device_allocations=3, reserved=100)
    assert probe.Look(device_allocations=5, reserved=90).since(before)["device_allocations"] == 2
    assert probe.Look(device_allocations=5, reserved=90).since(before)["reserved"] == -10


def test_compilations_are_counted_and_others_still_hear() -> None:
    from triton import knobs

    heard: list[str] = []
    knobs.compilation.listener = lambda **about: heard.append(about["metadata"]["name"])  # type: ignore[assignment]
    try:
        with probe.Compilations() as first:
            listener = knobs.compilation.listener
            assert listener is not None
            for name, hit in (("norm", False), ("norm", True), ("qkv", False)):
                listener(src=None, metadata={"name": name}, metadata_group={}, times=None, cache_hit=hit)  # type: ignore[arg-type]
        assert first.names() == {"norm": 2, "qkv": 1}
        assert first.compiled.total() == 2
        assert first.since({"norm": 2}) == {"qkv": 1}
        assert heard == ["norm", "norm", "qkv"]
    finally:
        knobs.compilation.listener = None


def test_a_card_holds_what_requests_will_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large blocks as planned, small ones beside them: torch never cuts these from those. What graphs were planned to
    take and did not, 30 MiB, goes to the requests."""
    taken: list[int] = []
    shares: list[float] = []
    monkeypatch.setattr(reserve.torch, "empty", lambda size, **_: taken.append(size))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=1000 << 20))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _: sum(taken) + (334 << 20))
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", lambda share, _: shares.append(share))
    sizes = {"weights": 300, "runtime": 66, "workspace": 200, "vision_cache": 64, "context": 100, "graphs": 30}
    lines = tuple(MemoryLine(name, size << 20, "") for name, size in sizes.items())
    reserve.reserve(MemoryPlan("vram", 900 << 20, 760 << 20, lines), torch.device("cuda"))
    assert taken[-2:] == [64 << 20, 230 << 20]
    assert set(taken[:-2]) == {1 << 20}
    assert sum(taken[:-2]) == 32 << 20
    reserve.lift()
    assert shares == [pytest.approx(0.8), 1.0]
