"""Known geometries are real configurations."""

from __future__ import annotations

import pytest

from engine.checkpoint import CheckpointError, expected_tensors
from engine.checkpoint.geometries import geometries, geometry
from engine.memory.plan.weights import count_parameters


def test_names() -> None:
    for name in geometries():
        known = geometry(name.upper())
        assert known.id == name
        assert known.name == known.raw["ignis_name"]
        assert known.config.vision is not None
    with pytest.raises(CheckpointError, match=r"no geometry 'gpt': give one of qwen3\.8-27b, ember"):
        geometry("gpt")


def test_qwen_is_as_published() -> None:
    config = geometry("qwen3.8-27b").config
    text = config.text
    assert (text.num_layers, text.full_layers[0], len(text.full_layers)) == (64, 3, 16)
    assert text.rope.dim == 64
    assert text.gdn_channels == 10240
    assert expected_tensors(config)["lm_head.weight"] == (248320, 5120)
    assert count_parameters(config) == pytest.approx(27.4e9, rel=0.01)
