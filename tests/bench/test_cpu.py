"""The CPU table on a tiny model, with transformers beside it."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from ignis_desktop.bench.cpu import lines, material, run, served
from ignis_desktop.bench.cpu.rows import Row, rows_table
from ignis_desktop.bench.process import PROJECT
from ignis_desktop.cli.errors import CommandError
from ignis_desktop.cli.options import EngineOptions

ABOUT = {"dtype": "float32", "context": 4096, "lanes": 8, "locate": True, "point": True}


@pytest.mark.timeout(240)
def test_every_row(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "STARTS", 1)
    monkeypatch.setattr(served, "SOAK_REQUESTS", 50)
    monkeypatch.setattr(run, "WRITTEN", 16)
    monkeypatch.setattr(run, "PREFILL", 256)
    said: list[str] = []
    options = EngineOptions(model=str(tiny_model), threads=1)
    result = run.run_cpu(options, peer=True, repeats=1, say=said.append)
    rows: dict[str, Row] = {row.key: row for row in result["rows"]}
    assert list(rows) == [
        "decode_1",
        "decode_8",
        "lanes",
        "prefill",
        "screen_first",
        "screen_next",
        "fold",
        "log_first",
        "log_next",
        "start",
        "resident",
        "server_token",
        "growth",
    ]
    for key in ("decode_1", "decode_8", "prefill"):
        row = rows[key]
        assert len(row.samples) == len(row.peer_samples) == 1
        assert row.ratio == pytest.approx(row.samples[0] / row.peer_samples[0])
        assert row.ratio > 0
    assert "the same 12 of 12 greedy tokens" in rows["decode_1"].note
    assert rows["screen_first"].samples[0] > rows["screen_next"].samples[0] > 0
    assert 0 < rows["server_token"].samples[0] < 5
    assert rows["start"].samples[0] > 0.5
    assert result["engine"]["threads"] == 1
    assert json.loads(json.dumps({row.key: row.json() for row in result["rows"]})).keys() == rows.keys()
    assert "decode, 8 lanes" in rows_table(result["rows"])
    assert any("transformers" in text for text in said)


class Canned:
    """A child process with prepared answers."""

    def __init__(self, **answers: Callable[..., dict[str, Any]]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def call(self, do: str, **request: Any) -> dict[str, Any]:
        self.asked.append(do)
        return self.answers[do](**request)


def canned(rate: float, ids: list[int]) -> Canned:
    def decode(prompts: list[list[int]], tokens: int) -> dict[str, Any]:
        return {"tokens_per_second": rate * len(prompts) ** 0.5, "ids": [ids[:tokens]] * len(prompts)}

    return Canned(
        prompt=lambda seed, tokens: {"ids": [seed] * tokens},
        decode=decode,
        prefill=lambda ids: {"seconds": len(ids) / (100 * rate)},
        folds=lambda: {"folds": True},
        log=lambda characters: {
            "characters": characters,
            "fold_seconds": 0.4,
            "first_seconds": 11.0,
            "next_seconds": 2.0,
        },
    )


def test_a_peer_that_writes_another_text_is_no_peer() -> None:
    engine, peer = canned(30, list(range(20))), canned(10, [0, 1, 2, *range(50, 67)])
    with pytest.raises(CommandError, match="another text after 3 tokens"):
        run._compared_rows(engine, peer, ABOUT, 1, lambda _: None)  # type: ignore[arg-type]
    rows = run._compared_rows(engine, peer, ABOUT | {"dtype": "bfloat16"}, 1, lambda _: None)  # type: ignore[arg-type]
    assert "the same 3 of 12 greedy tokens first, in bfloat16" in rows[0].note


def test_ratios_and_targets() -> None:
    engine, peer = canned(30, list(range(20))), canned(10, list(range(20)))
    rows = run._compared_rows(engine, peer, ABOUT, 3, lambda _: None)  # type: ignore[arg-type]
    found = {row.key: (row.ratio, row.passed) for row in rows}
    assert found["decode_1"] == (pytest.approx(3.0), True)
    assert found["prefill"] == (pytest.approx(3.0), True)
    assert found["lanes"] == (None, False)  # √8 is below 3
    assert len(rows[0].samples) == 3


def test_alone() -> None:
    engine = canned(30, list(range(20)))
    rows = run._compared_rows(engine, None, ABOUT, 2, lambda _: None)  # type: ignore[arg-type]
    assert all(row.ratio is None and row.peer == "" for row in rows)
    assert rows[0].passed is None
    assert rows[0].value == "30.0 tokens/s"


def test_a_program_that_folds() -> None:
    rows = run._log_rows(canned(30, []), ABOUT, lambda _: None)  # type: ignore[arg-type]
    assert [(row.value, row.passed) for row in rows] == [("0.40 s", True), ("11.00 s", False), ("2.00 s", True)]
    assert run._log_rows(canned(30, []), ABOUT | {"locate": False}, lambda _: None) == []  # type: ignore[arg-type]


def test_without_transformers_the_rest_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "transformers" else find(name))
    asked: list[Any] = []

    class Engine(Canned):
        def __init__(self, module: str, argument: str) -> None:
            super().__init__()
            assert module.endswith("engine_worker")
            assert json.loads(argument)["device"] == "cpu"

        def read(self) -> dict[str, Any]:
            return ABOUT

        def __enter__(self) -> Engine:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(run, "Child", Engine)
    monkeypatch.setattr(run, "_compared_rows", lambda engine, peer, *_: asked.append(peer) or [])
    for name in ("_screen_rows", "_log_rows", "served_rows"):
        monkeypatch.setattr(run, name, lambda *_: [])
    result = run.run_cpu(EngineOptions(), peer=True, repeats=1, say=lambda _: None)
    assert asked == [None]
    assert "transformers is not installed" in result["notes"][0]


def test_who_asks_loads_no_engine() -> None:
    """The engine sets how idle threads spin, for its children too: the peer is to have transformers' own way."""
    imports = "import ignis_desktop.bench.cpu.run, os, sys"
    code = f"{imports}; print('engine' in sys.modules, os.environ.get('GOMP_SPINCOUNT'))"
    variables = {name: value for name, value in os.environ.items() if name != "GOMP_SPINCOUNT"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, env=variables, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "None"]


def test_material() -> None:
    first, second = material.screenshot(1), material.screenshot(2)
    assert first == material.screenshot(1) != second
    with Image.open(io.BytesIO(first)) as picture:
        assert picture.size == (1920, 1080)
    text = material.log(10_000)
    assert text == material.log(10_000)
    assert len(text) / 10_000 == pytest.approx(material.LINE_CHARACTERS, abs=1)
    assert text.count("no space left on device") == text.count("certificate of") == 1


def test_a_worker_tells_its_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('{"do": "halve", "number": 4}\n{"do": "halve", "number": "x"}\n'))
    output = io.StringIO()
    lines.answer(output, {"halve": lambda number: {"half": number / 2}})
    good, bad = map(json.loads, output.getvalue().splitlines())
    assert good == {"half": 2.0}
    assert bad["error"].startswith("TypeError: ")
