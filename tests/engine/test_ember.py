"""The bundled model through the engine's door, on real input, and docs/engine.md as it is written."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from engine import Engine
from engine.answers.locate import locate
from engine.answers.locate.kept import kept_windows
from engine.answers.point import Screen
from engine.messages import HeadSpan
from tests.engine.requests import GREEDY, collect, generate, generation, read, retain, settled

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"


def menu() -> Image.Image:
    """A menu bar with an open menu, out of a real screenshot."""
    with Image.open(DATA / "screens" / "mousepad-edit-menu.webp") as shot:
        return shot.crop((0, 40, 448, 264)).convert("RGB")


def test_the_bundled_model(ember: Engine) -> None:
    info = ember.info
    assert (info.id, info.name, info.context_length) == ("ember", "Ember", 8192)
    assert info.vision
    assert info.locate
    assert info.point
    plan = ember.snapshot().memory_plan
    assert plan is not None
    assert plan.total == sum(line.bytes for line in plan.lines)


MEMORY_PROGRAM = """
from engine import Engine
from engine.engine import new_id
from engine.messages import GenerateRequest, Prompt, SamplingParams

with Engine.load(threads=1) as engine:
    request = GenerateRequest(new_id("memory"), Prompt(tuple(range(1100))), SamplingParams(max_tokens=4, temperature=0))
    for _ in engine.submit(request):
        pass
    lines = {line.name: line.bytes for line in engine.snapshot().memory_plan.lines}
    import psutil
    print(psutil.Process().memory_info().rss, lines["weights"], sum(lines.values()))
"""


def test_resident_memory_stays_within_the_plan() -> None:
    # In a process of its own: this one holds the oracle, other engines and Qt as well.
    ran = subprocess.run([sys.executable, "-c", MEMORY_PROGRAM], capture_output=True, text=True, cwd=ROOT, check=True)
    resident, weights, planned = map(int, ran.stdout.split())
    assert weights < resident < planned


def test_the_examples_of_the_documentation_run(ember: Engine, tmp_path: Path, monkeypatch, capsys) -> None:
    """Every example of docs/engine.md, in order, on the engine that is loaded already."""
    menu().save(tmp_path / "screenshot.png")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Engine, "load", lambda: ember)
    monkeypatch.setattr(Engine, "close", lambda self: None)
    monkeypatch.setattr(ember, "config", replace(ember.config, generation_cap=16))  # the first chat names no limit
    page = (ROOT / "docs" / "engine.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    printed = []
    for example in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(example, "docs/engine.md", "exec"), names)
        printed.append(capsys.readouterr().out)
    chat, one_word, tokens, constrained, answers = printed
    assert chat.strip()
    assert one_word.strip()
    assert "Usage(prompt_tokens=" in tokens
    assert constrained == ""  # a request is made, not sent
    assert "2 08:02 disk /dev/sdb is full" in answers
    assert settled(ember).retained <= kept_windows(ember).most  # what was located in is kept for the next question


def test_lanes_write_what_each_writes_alone(ember: Engine) -> None:
    questions = ["What is rain?", "Name a colour of the sky.", "Write a line of C."]
    prompts = [ember.chat_prompt([{"role": "user", "content": question}]) for question in questions]
    alone = [generate(ember, prompt, max_tokens=10, **GREEDY) for prompt in prompts]
    together = [collect(s) for s in [ember.submit(generation(prompt, max_tokens=10, **GREEDY)) for prompt in prompts]]
    assert [answer.text for answer in together] == [answer.text for answer in alone]
    assert all(answer.text.strip() for answer in alone)


def test_a_fork_equals_the_whole_prompt_bit_for_bit(ember: Engine) -> None:
    text = (DATA / "logs" / "redis.log").read_text(encoding="utf-8")
    ids = ember.tokenizer.encode(text[:8_000])[:1054]
    readout = ember.loaded.heads.readouts["line"]
    span = HeadSpan(readout.heads, 0, 1024)
    whole = read(ember, ids, heads=span, labels=(5, 6, 7)).scores
    retain(ember, "log", ids[:1024])
    fork = read(ember, ids[1024:], heads=span, labels=(5, 6, 7), prefix="log").scores
    ember.release("log")
    np.testing.assert_array_equal(fork.heads, whole.heads)
    np.testing.assert_array_equal(fork.labels, whole.labels)


def test_a_line_of_a_real_log(ember: Engine) -> None:
    lines = (DATA / "logs" / "postgresql.log").read_text(encoding="utf-8").split("\n")
    answer = locate(ember, "\n".join(lines[600:630]), "Which line says division by zero?")
    assert 600 + answer.line == 621
    assert answer.found


def test_a_place_on_a_real_screen(ember: Engine) -> None:
    screen = Screen.open(ember, ember.prepare_image(menu()))
    answer = screen.point("the Document menu")
    screen.close()
    x, y = answer.pixels
    assert 233 <= x <= 316
    assert 29 <= y <= 54
    assert answer.heat.sum() == pytest.approx(1, abs=1e-4)
