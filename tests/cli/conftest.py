"""The command line as a separate process, as people start it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).resolve().parents[2]


class CommandLine:
    """Starts ``ignis`` away from the project, with data and runtime folders of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        dropped = ("IGNIS_", "DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
        self.variables = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        self.variables |= {
            "IGNIS_DATA_DIR": str(home / "data"),
            "PYTHONPATH": str(PROJECT),
        }

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        given: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [sys.executable, "-P", "-m", "ignis_desktop", *arguments]
        return subprocess.Popen(command, cwd=self.home, env=self.variables, text=True, **(given | options))

    def run(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments, stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE)
        out, err = process.communicate(stdin, timeout=100)
        assert "Traceback" not in err, err
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.fixture
def ignis(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)


@pytest.fixture
def closed_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Served(CommandLine):
    """A command line whose ``ignis serve`` is running."""

    def __init__(self, home: Path, *options: str) -> None:
        super().__init__(home)
        self.log: list[str] = []
        self.server = self.start("serve", "--port", "0", *options, stdout=subprocess.DEVNULL)
        assert self.server.stderr is not None
        for line in self.server.stderr:
            self.log.append(line)
            if line.startswith("Serving "):
                break
        else:
            pytest.fail(f"ignis serve did not start: {''.join(self.log)}")
        self.url = self.log[-1].partition(" at ")[2].partition("/v1")[0]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """The server's exit code."""
        self.server.send_signal(number)
        _, err = self.server.communicate(timeout=30)
        assert "Traceback" not in err
        return self.server.returncode


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Ember, served; commands find it by themselves."""
    running = Served(tmp_path_factory.mktemp("served"), "--threads", "1")
    yield running
    assert running.stop() == 0
