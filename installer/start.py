"""What run.py and test.py do once this Python is known to be new enough."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from installer.environment import Environment
from installer.faults import InstallError

PROJECT = Path(__file__).resolve().parent.parent
INSTALL_ONLY = "--install-only"

# In the order of their speed; pytest's own last line closes the output.
CHECKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("lint", ("-m", "ruff", "check", ".")),
    ("format", ("-m", "ruff", "format", "--check", ".")),
    (
        "import rules",
        ("-c", "import sys; from importlinter.cli import lint_imports_command as c; sys.argv[0] = 'lint-imports'; c()"),
    ),
    ("types", ("-m", "mypy")),
    # A file's tests stay together: they share what they load. Files in their order: the long ones are not the last.
    ("tests", ("-m", "pytest", "-n", "logical", "--maxprocesses", "4", "--dist", "loadfile", "--no-loadscope-reorder")),
)


def run(arguments: Sequence[str]) -> int:
    """``ignis`` with ``arguments``, in the environment. Returns an exit code, or does not return."""
    environment = Environment(PROJECT)
    status = _install(environment, set())
    if status or arguments[:1] == [INSTALL_ONLY]:
        return status
    # -P: a folder named "engine" where the command was typed must not be taken for the program's.
    return _become([str(environment.python), "-P", "-m", "ignis_desktop", *arguments])


def test(arguments: Sequence[str]) -> int:
    """Every check, or pytest alone with ``arguments``."""
    environment = Environment(PROJECT)
    status = _install(environment, {"test"})
    if status or arguments[:1] == [INSTALL_ONLY]:
        return status
    os.chdir(PROJECT)
    if arguments:
        return _become([str(environment.python), "-m", "pytest", *arguments])
    failed = []
    for name, command in CHECKS:
        print(f"== {name}", flush=True)
        started = time.monotonic()
        try:
            status = subprocess.run([str(environment.python), *command], check=False).returncode
        except KeyboardInterrupt:
            return 130
        outcome = "passed" if status == 0 else f"failed ({status})"
        print(f"== {name}: {outcome} in {time.monotonic() - started:.1f} s", flush=True)
        if status != 0:
            failed.append(name)
    if failed:
        print(f"Failed: {', '.join(failed)}", flush=True)
    return 1 if failed else 0


def _install(environment: Environment, extras: set[str]) -> int:
    """0 once ``extras`` are installed, else an exit code after one sentence on standard error."""
    if environment.is_current(extras):
        return 0
    from installer import install  # only now: a second start must not pay for it

    signal.signal(signal.SIGTERM, _interrupt)
    try:
        install.ensure(environment, extras)
    except KeyboardInterrupt:
        install.say("Interrupted; run the same command again to go on.")
        return 130
    except InstallError as fault:
        install.say(str(fault))
        return 1
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    return 0


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _become(command: list[str]) -> int:
    """Replace this process by ``command``; on Windows, which cannot, run it and hand on its exit code."""
    if os.name != "nt":
        os.execv(command[0], command)
    process = subprocess.Popen(command)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # it got Ctrl-C as well and decides how to end
