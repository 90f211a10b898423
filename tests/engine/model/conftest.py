"""One pair of models for each shape, made once."""

from __future__ import annotations

from functools import cache

import pytest

from tests.engine.model.oracle import SHAPES, Pair, make_pair

_pair = cache(make_pair)


@pytest.fixture(params=SHAPES)
def pair(request: pytest.FixtureRequest) -> Pair:
    """Every shape in turn."""
    return _pair(request.param)


@pytest.fixture
def grouped() -> Pair:
    """The shape that differs most from the plain one: for tests whose subject is not the equations."""
    return _pair("grouped")
