from __future__ import annotations

import pytest
from transformers import Qwen3_5ForCausalLM, Qwen3_5ForConditionalGeneration

from engine.checkpoint.layout import expected_tensors, is_ignored
from engine.config import ModelConfig
from tests.engine.model.oracle import SHAPES, hf_config


@pytest.mark.parametrize("shape", SHAPES)
def test_names_and_shapes_are_those_of_transformers(shape: str) -> None:
    config = hf_config(**SHAPES[shape])
    ours = expected_tensors(ModelConfig.from_dict(config.to_dict()))
    theirs = {name: tuple(t.shape) for name, t in Qwen3_5ForConditionalGeneration(config).state_dict().items()}
    if config.tie_word_embeddings:
        assert "lm_head.weight" not in ours
        del theirs["lm_head.weight"]
    assert ours == theirs


def test_a_text_model_has_the_same_text_tensors_and_no_vision() -> None:
    config = hf_config(tied=False)
    ours = expected_tensors(ModelConfig.from_dict(config.text_config.to_dict()))
    theirs = Qwen3_5ForCausalLM(config.text_config).state_dict()
    renamed = {name.replace("model.language_model.", "model.", 1): shape for name, shape in ours.items()}
    assert renamed == {name: tuple(tensor.shape) for name, tensor in theirs.items()}


@pytest.mark.parametrize(
    ("name", "ignored"),
    [
        ("mtp.layers.0.mlp.up_proj.weight", True),
        ("model.language_model.layers.3.self_attn.k_proj.k_scale", True),
        ("model.language_model.layers.0.mlp.up_proj.input_scale", True),
        ("model.language_model.rotary_emb.inv_freq", True),
        ("lm_head.weight", True),
        ("model.visual.blocks.9.norm1.weight", False),
        ("model.language_model.layers.9.mlp.experts.0.up_proj.weight", False),
    ],
)
def test_what_is_ignored_in_a_tied_model_with_vision(name: str, ignored: bool) -> None:
    config = ModelConfig.from_dict(hf_config(tied=True).to_dict())
    assert is_ignored(name, config) is ignored
