"""Child processes that are measured, and the lines they exchange with this one."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import ignis_desktop
from ignis_desktop.cli.errors import CommandError
from ignis_desktop.cli.options import EngineOptions

PROJECT = Path(ignis_desktop.__file__).resolve().parents[1]
STOP_SECONDS = 20.0
SERVER_THREADS = ("ignis-server", "ignis-prepare", "ignis-answer")
"""Threads of the server; the engine's and those of its matrix products are not its work."""


class Child:
    """A Python module as a process that answers lines of JSON with lines of JSON."""

    def __init__(self, module: str, *arguments: str) -> None:
        path = os.pathsep.join(filter(None, (str(PROJECT), os.environ.get("PYTHONPATH"))))
        # Apart from this one's group: Ctrl-C ends this process, which then ends the child in order.
        apart: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            apart = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
            text=True,
            encoding="utf-8",
            **apart,
        )
        self.module = module

    def read(self) -> dict[str, Any]:
        """The next line. Raises ``CommandError`` with the child's own sentence when it is one of failure."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise CommandError(f"The measured process ended unexpectedly (exit code {self.process.wait()}).")
        value: dict[str, Any] = json.loads(line)
        if "error" in value:
            raise CommandError(str(value["error"]))
        return value

    def call(self, **request: Any) -> dict[str, Any]:
        """Ask and read the answer."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except OSError as fault:
            raise CommandError(f"The measured process is gone (exit code {self.process.poll()}).") from fault
        return self.read()

    def stop(self) -> None:
        """Close its input, which ends it; kill it when that takes too long."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


@dataclass(frozen=True)
class Target:
    """The server that is measured. ``child`` is None for one that was running already."""

    url: str
    key: str | None
    child: Child | None

    def usage(self) -> dict[str, Any] | None:
        """What the server's process holds and has used, where that can be asked."""
        return None if self.child is None else self.child.call(ask="usage")

    def server_seconds(self) -> float | None:
        """Processor time of the server's own threads so far, where that can be asked."""
        usage = self.usage()
        return None if usage is None else sum(usage["thread_seconds"].get(name, 0.0) for name in SERVER_THREADS)


@contextlib.contextmanager
def serving(options: EngineOptions) -> Iterator[Target]:
    """A server in a child process; it may still be loading its model."""
    with Child("ignis_desktop.bench.child", json.dumps(asdict(options))) as child:
        told = child.read()
        yield Target(told["url"], told["key"], child)
