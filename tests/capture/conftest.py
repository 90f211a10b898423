"""A display with a real window on it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import xvfb

PROGRAM = Path(__file__).resolve().parents[1] / "examples" / "buttons.py"


@pytest.fixture(scope="session")
def shown_program() -> Iterator[str]:
    """DISPLAY of a server on which tests/examples/buttons.py shows its window."""
    with (
        xvfb.display() as name,
        subprocess.Popen(
            [sys.executable, str(PROGRAM)], env=xvfb.environment(name), stdout=subprocess.PIPE, text=True
        ) as program,
    ):
        assert program.stdout is not None
        try:
            assert program.stdout.readline() == "shown\n"
            yield name
        finally:
            program.terminate()


@pytest.fixture
def real_display(shown_program: str, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in xvfb.environment(shown_program).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    return shown_program
