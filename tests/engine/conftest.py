from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine.model.decoder import Decoder
from tests.conftest import LoadTiny
from tests.engine.requests import Passes


@pytest.fixture
def passes(load_tiny: LoadTiny, monkeypatch: pytest.MonkeyPatch) -> Iterator[Passes]:
    """A hand on every pass of the engines that this test loads."""
    passes = Passes()

    def forward(decoder: Decoder, *args: Any, **options: Any) -> Any:
        return passes.forward(decoder, *args, **options)

    monkeypatch.setattr(Decoder, "forward", forward)
    yield passes
    passes.free()
