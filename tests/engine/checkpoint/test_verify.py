from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.checkpoint.catalogue import BUNDLED
from engine.checkpoint.verify import verify


@pytest.fixture
def copy(tiny_folder: Path, tmp_path: Path) -> Path:
    return shutil.copytree(tiny_folder, tmp_path / "copy")


def test_a_good_checkpoint(copy: Path) -> None:
    seen: list[tuple[int, int]] = []
    report = verify(copy, lambda done, total, _name: seen.append((done, total)))
    assert report.ok
    assert report.vision
    assert set(report.readouts) == {"line", "point"}
    assert seen[-1][0] == seen[-1][1] == report.nbytes
    assert report.parameters == sum(t.numel() for t in load_file(copy / "model.safetensors").values())
    assert len(report.content_hash) == 64


def test_every_problem_is_named(copy: Path) -> None:
    tensors = load_file(copy / "model.safetensors")
    name = "model.language_model.layers.0.mlp.up_proj.weight"
    tensors[name][3, 5] = torch.nan
    save_file(tensors, copy / "model.safetensors")
    (copy / "chat_template.jinja").write_text("{% if %}")
    (copy / "heads.json").write_text("{}")
    report = verify(copy)
    assert not report.ok
    assert len(report.problems) == 3
    for word in (name, "chat template", "heads.json"):
        assert any(word in problem for problem in report.problems), word
    assert all(problem.endswith(".") and "\n" not in problem for problem in report.problems)


def test_a_tokenizer_larger_than_the_embedding(copy: Path) -> None:
    shutil.copy(BUNDLED / "tokenizer.json", copy)
    assert any("embedding" in problem for problem in verify(copy).problems)


def test_a_missing_tokenizer_or_template(copy: Path) -> None:
    (copy / "tokenizer.json").unlink()
    assert ["tokenizer.json is missing" in problem for problem in verify(copy).problems] == [True]
    shutil.copy(BUNDLED / "tokenizer.json", copy)
    (copy / "chat_template.jinja").unlink()
    assert any("no chat template" in problem for problem in verify(copy).problems)


def test_head_lists_of_other_weights_do_not_count(copy: Path) -> None:
    raw = json.loads((copy / "heads.json").read_text())
    (copy / "heads.json").write_text(json.dumps({**raw, "weights": "0" * 64}))
    report = verify(copy)
    assert report.ok
    assert report.readouts == ()


def test_what_cannot_be_opened_is_one_problem(tmp_path: Path) -> None:
    report = verify(tmp_path)
    assert [problem.count(".") for problem in report.problems] == [2]
    assert "config.json" in report.problems[0]


def test_ember_is_whole() -> None:
    report = verify(BUNDLED)
    assert report.problems == ()
    assert set(report.readouts) >= {"line", "point"}
    assert report.vision
