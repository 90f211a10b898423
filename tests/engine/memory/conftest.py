"""A small text model's sizes."""

from __future__ import annotations

import pytest

from engine.config import ModelConfig, TextConfig
from tests.engine.model.oracle import hf_config


@pytest.fixture
def model() -> ModelConfig:
    return ModelConfig.from_dict(hf_config(layers=8, kv_heads=2, head_dim=32).to_dict())


@pytest.fixture
def text(model: ModelConfig) -> TextConfig:
    return model.text
