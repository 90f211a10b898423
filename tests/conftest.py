"""Engines for tests: Ember once a session, and tiny random models by the dozen."""

from __future__ import annotations

import os

# Before torch is imported: tests measure behaviour, not speed, and may share their processor with each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Before Triton is: its kernels run in the interpreter, for want of a card.
os.environ.setdefault("TRITON_INTERPRET", "1")

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from engine import Engine

# A loaded machine is no fault of the code under test.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

LoadTiny = Callable[..., Engine]


@pytest.fixture(scope="session")
def ember() -> Iterator[Engine]:
    """The bundled model, loaded as a user's first start loads it."""
    engine = Engine.load(threads=1)
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint folder as tests.tiny writes it. Read-only: copy it to change it."""
    from tests.tiny import write_tiny

    return write_tiny(tmp_path_factory.mktemp("checkpoints") / "tiny")


@pytest.fixture
def load_tiny(tiny_folder: Path) -> Iterator[LoadTiny]:
    """Loads tiny engines with the options a test wants; closes them, and sees that they leave nothing behind."""
    before = set(threading.enumerate())
    engines: list[Engine] = []

    def load(path: Path | None = None, **config: Any) -> Engine:
        engine = Engine.load(path or tiny_folder, **{"threads": 1, "dtype": "float32", **config})
        engines.append(engine)
        return engine

    yield load
    for engine in engines:
        engine.close()
        last = engine.snapshot()
        assert last.state in ("closed", "failed")
        if last.state == "closed":
            assert all(lane.state == "idle" for lane in last.lanes)
            assert last.queued_interactive == last.queued_agent == 0
            assert engine._keeper is not None
            engine._keeper.check([])  # every page, slot and unit is accounted for
    left = [thread for thread in threading.enumerate() if thread not in before and thread.name == "engine"]
    assert not left, f"threads left behind: {left}"


@pytest.fixture
def tiny(load_tiny: LoadTiny) -> Engine:
    """A tiny engine with the default options."""
    return load_tiny()
