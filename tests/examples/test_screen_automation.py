"""examples/screen_automation.py presses buttons of a real program on a real display; Ember finds them.

The buttons carry plain words in the toolkit's own font: what the bundled model finds reliably. It misses about a third
of what can be asked about denser screens (docs/answers.md has the figures).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import Engine
from ignis_desktop.server.settings import Settings
from ignis_desktop.server.thread import ServerThread
from tests import xvfb

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "screen_automation.py"
PROGRAM = Path(__file__).with_name("buttons.py")


@pytest.fixture(scope="module")
def server(ember: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    settings = Settings(port=0, runtime_directory=tmp_path_factory.mktemp("run"))
    with ServerThread(ember, settings) as running:
        yield running


def run(*arguments: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLE), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)


@pytest.mark.skipif(sys.platform == "win32", reason="xdotool clicks on X11 only")
def test_the_named_buttons_are_pressed_in_order(server: ServerThread) -> None:
    xvfb.require("xdotool")
    with xvfb.display(800, 440) as display:
        environment = xvfb.environment(display)
        program = subprocess.Popen([sys.executable, str(PROGRAM)], env=environment, stdout=subprocess.PIPE, text=True)
        with program:
            assert program.stdout is not None
            try:
                assert program.stdout.readline() == "shown\n"
                done = run(
                    "the Delete button", "the Save button", "--url", server.url, "--monitor", "0",
                    environment=environment,
                )  # fmt: skip
                assert done.returncode == 0, done.stderr
                assert [program.stdout.readline() for _ in range(2)] == ["Delete\n", "Save\n"]
            finally:
                program.terminate()
    assert "the Delete button: " in done.stdout


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    nowhere = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    done = run("the Save button", "--dry-run", environment=nowhere | {"DISPLAY": ":987"})
    assert done.returncode == 1
    assert "cannot be captured" in done.stderr
    done = run("the Save button", environment=nowhere | {"PATH": str(tmp_path)})
    assert done.returncode == 1
    assert "xdotool is missing" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs an X server")
def test_a_server_that_is_not_there() -> None:
    with xvfb.display(320, 200) as display:
        done = run("x", "--dry-run", "--url", "http://127.0.0.1:9", environment=xvfb.environment(display))
    assert done.returncode == 1
    assert "start it with: ignis serve" in done.stderr
