"""``ignis calibrate`` on random weights, of which no head knows anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.answers.heads import read_heads
from tests.cli.conftest import CommandLine
from tests.tiny import write_tiny

pytestmark = pytest.mark.timeout(240)
SMALL = ("--scenes", "5", "--texts", "5", "--threads", "1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model without head lists."""
    folder = write_tiny(tmp_path_factory.mktemp("calibrate") / "random", context=4096)
    (folder / "heads.json").unlink()
    return folder


def test_nothing_is_written_when_no_head_knows_anything(ignis: CommandLine, folder: Path) -> None:
    done = ignis.run("calibrate", "--model", str(folder), *SMALL)
    assert done.returncode == 1
    assert "No head of Tiny does better than chance at point and " in done.stderr
    assert "--force" in done.stderr
    assert "by chance" in done.stdout
    assert not (folder / "heads.json").exists()


def test_writing_all_the_same(ignis: CommandLine, folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "lists.json"
    asked = ("calibrate", "--model", str(folder), *SMALL, "--only", "point", "--out", str(target))
    done = ignis.run(*asked, "--force", "--json")
    assert done.returncode == 0
    assert f"Written to {target}" in done.stderr
    printed = json.loads(done.stdout)
    assert set(printed) == {"point"}
    assert printed["point"]["questions"] == 40
    written = read_heads(target).readouts["point"]
    assert [list(head) for head in written.heads] == printed["point"]["heads"]
    again = ignis.run(*asked)
    assert again.returncode == 1
    assert "holds lists for these weights already" in again.stderr


def test_lists_that_are_there_are_not_replaced(ignis: CommandLine) -> None:
    """Refused before any work: Ember has its own."""
    done = ignis.run("calibrate", "--threads", "1")
    assert done.returncode == 1
    assert "heads.json holds lists for these weights already" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--model", "nothing-like-it"), "There is no model 'nothing-like-it'"),
        (("--scenes", "2"), "5<=x<=1000"),
        (("--only", "box"), "'box' is not one of 'point', 'line'"),
    ],
)
def test_faults(ignis: CommandLine, arguments: tuple[str, ...], words: str) -> None:
    done = ignis.run("calibrate", *arguments)
    assert done.returncode in (1, 2)
    assert words in done.stderr
