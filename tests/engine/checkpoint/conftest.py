from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.engine.checkpoint.models import Weights, random_model, write_model


@pytest.fixture(scope="session")
def model() -> tuple[dict[str, Any], Weights]:
    """config.json and float32 weights of a random model with vision and a tied embedding."""
    return random_model(hidden=192)


@pytest.fixture
def folder(tmp_path: Path, model: tuple[dict[str, Any], Weights]) -> Path:
    """Its checkpoint in float32, one file, to be changed at will."""
    return write_model(tmp_path / "model", *model)
