"""The frame around every command: help, exit codes, faults."""

from __future__ import annotations

import os
import subprocess
import sys

import click
import pytest

from ignis_desktop.cli import entry
from ignis_desktop.cli.errors import CommandError
from tests.cli.conftest import PROJECT, CommandLine

COMMANDS = ("calibrate", "chat", "doctor", "locate", "models", "plan", "point", "serve", "window")


def test_help_is_quick(ignis: CommandLine) -> None:
    """In processor time, which other work on the machine does not lengthen."""
    before = os.times()
    done = ignis.run("--help")
    after = os.times()
    assert done.returncode == 0
    assert all(command in done.stdout for command in COMMANDS)
    used = after.children_user + after.children_system - before.children_user - before.children_system
    assert used < 0.5


def test_help_loads_nothing_heavy() -> None:
    code = "import ignis_desktop.cli.entry, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"torch", "numpy", "PySide6", "fastapi", "uvicorn", "httpx", "rich", "PIL", "engine"}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run([command, "--help"]) == 0
    assert f"Usage: ignis {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["fly"], "No such command 'fly'"),
        (["chat", "--temperature", "9", "hi"], "9.0 is not in the range"),
        (["chat", ""], "The prompt is empty"),
        (["locate", "app.log"], "Missing argument 'QUESTION'"),
        (["locate", "app.log", " "], "The question is empty"),
        (["locate", "app.log", "which?", "--kind", "song"], "is not one of"),
        (["point", "shot.png"], "Missing argument 'QUESTION...'"),
        (["serve", "--port", "70000"], "70000 is not in the range"),
        (["serve", "--max-context", "lots"], "is no number of tokens"),
        (["chat", "--connect", "http://127.0.0.1:8000", "--model", "x", "hi"], "leave out --model"),
    ],
)
def test_wrong_usage_exits_with_2(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(arguments) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("text", ["8192", "8K", "8k", " 8K "])
def test_token_counts(text: str) -> None:
    from ignis_desktop.cli.options import TokenCount

    assert TokenCount().convert(text, None, None) == 8192


class TestFaults:
    """What a command raises becomes one sentence and an exit code."""

    @pytest.fixture
    def failing(self, monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
        """``ignis fail`` raises what is put in here."""
        raises: list[BaseException] = []

        @click.command()
        def fail() -> None:
            raise raises[0]

        monkeypatch.setitem(entry.ignis.commands, "fail", fail)
        return raises

    @pytest.mark.parametrize(
        ("fault", "code", "says"),
        [
            (CommandError("The sky fell."), 1, "ignis: The sky fell."),
            (CommandError("not found in app.log", 3), 3, "ignis: not found in app.log"),
            (KeyError("lost\nthing"), 1, "ignis: KeyError: 'lost\\nthing' (--debug shows where)"),
            (RuntimeError("two\n  lines"), 1, "ignis: RuntimeError: two lines (--debug shows where)"),
            (
                ModuleNotFoundError("No module named 'psutil'"),
                1,
                "ignis: The installation is not whole (No module named 'psutil'); repair it with installer/run.py.",
            ),
            (KeyboardInterrupt(), 130, ""),
        ],
    )
    def test_sentence(
        self,
        fault: BaseException,
        code: int,
        says: str,
        failing: list[BaseException],
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        failing.append(fault)
        assert entry.run(["fail"]) == code
        assert capsys.readouterr().err.strip() == says

    @pytest.mark.parametrize("arguments", [["--debug", "fail"], ["fail", "--debug"]])
    def test_debug_shows_where(self, arguments: list[str], failing: list[BaseException]) -> None:
        failing.append(RuntimeError("inside"))
        with pytest.raises(RuntimeError, match="inside"):
            entry.run(arguments)

    def test_macos_is_refused(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        monkeypatch.setattr(sys, "platform", "darwin")
        assert entry.run(["chat", "hi"]) == 2
        assert "macOS is not supported" in capsys.readouterr().err


def test_reader_that_leaves_is_no_fault(ignis: CommandLine) -> None:
    """As in ``ignis models list | true``."""
    process = ignis.start("--help")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr as err:
        assert err.read() == ""
    assert process.wait(timeout=60) == 0
