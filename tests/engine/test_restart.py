"""With a disk tier, what was read before the program ended need not be read again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from engine import Engine
from engine.messages import Prompt
from tests.conftest import LoadTiny
from tests.engine.requests import GREEDY, Answer, generate, settled, text_ids

SCORED = {**GREEDY, "logprobs": 5}


def ask(engine: Engine) -> Answer:
    return generate(engine, Prompt(text_ids(engine, 200), marks=(130, 200)), max_tokens=6, **SCORED)


def test_a_restarted_engine_goes_on_from_disk(load_tiny: LoadTiny, tmp_path: Path) -> None:
    first = load_tiny(disk_tier=tmp_path)
    wanted = ask(first)
    first.close()
    second = load_tiny(disk_tier=tmp_path)
    assert settled(second).reuse.disk_used > 0
    found = ask(second)
    assert (found.ids, found.logprobs) == (wanted.ids, wanted.logprobs)
    assert (wanted.end.usage.cached_tokens, found.end.usage.cached_tokens) == (0, 200)
    branch = generate(second, Prompt((*text_ids(second, 140)[:135], 1, 2, 3)), max_tokens=2, **SCORED)
    assert branch.end.usage.cached_tokens == 130


def test_damaged_files_are_read_around(load_tiny: LoadTiny, tmp_path: Path) -> None:
    first = load_tiny(disk_tier=tmp_path)
    wanted = ask(first)
    first.close()
    files = sorted(tmp_path.rglob("*.safetensors"))
    assert len(files) >= 2
    for file in files:
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    second = load_tiny(disk_tier=tmp_path)
    found = ask(second)
    assert (found.ids, found.logprobs) == (wanted.ids, wanted.logprobs)
    assert found.end.usage.cached_tokens == 0


@pytest.mark.parametrize("change", ["type", "weights", "page"])
def test_other_numbers_are_not_taken(load_tiny: LoadTiny, tiny_folder: Path, tmp_path: Path, change: str) -> None:
    first = load_tiny(disk_tier=tmp_path / "kept")
    ask(first)
    first.close()
    options = {"type": {"dtype": "bfloat16"}, "weights": {}, "page": {"page_size": 32}}[change]
    folder = tiny_folder
    if change == "weights":
        folder = tmp_path / "other"
        shutil.copytree(tiny_folder, folder)
        (weights,) = folder.glob("*.safetensors")
        content = bytearray(weights.read_bytes())
        content[-2] ^= 1
        weights.write_bytes(content)
    second = load_tiny(folder, disk_tier=tmp_path / "kept", **options)
    assert ask(second).end.usage.cached_tokens == 0
