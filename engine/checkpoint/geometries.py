"""Geometries of known models: what a plan or a benchmark needs of a model whose files are not here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.checkpoint.catalogue import BUNDLED
from engine.checkpoint.errors import CheckpointError
from engine.checkpoint.json_file import read_json
from engine.config import ModelConfig

QWEN = "qwen3.8-27b"
EMBER = "ember"


@dataclass(frozen=True)
class Drafter:
    """What a DFlash 2 drafter holds on the device. Its keys and values are BF16."""

    weights: int
    """Bytes, as published."""
    layers: int
    window: int
    """Tokens of context that its sliding attention looks back on."""
    kv_heads: int
    head_dim: int
    taps: int
    """Layers of the target whose hidden states it reads."""

    @property
    def token_bytes(self) -> int:
        """Bytes of keys and values of one token."""
        return self.layers * 2 * self.kv_heads * self.head_dim * 2


@dataclass(frozen=True)
class Geometry:
    """``raw`` is the model's config.json; ``max_pixels`` the largest picture it takes (preprocessor_config.json)."""

    id: str
    name: str
    raw: Mapping[str, Any]
    max_pixels: int
    drafter: Drafter | None = None

    @property
    def config(self) -> ModelConfig:
        return ModelConfig.from_dict(self.raw)


def geometries() -> tuple[str, ...]:
    """Names that :func:`geometry` knows."""
    return QWEN, EMBER


def geometry(name: str) -> Geometry:
    """Raises ``CheckpointError`` naming those there are when there is none of this name."""
    if name.lower() == QWEN:
        return Geometry(QWEN, "Qwen3.8-27B", _QWEN, 4096 * 4096, _DFLASH)
    if name.lower() == EMBER:
        raw = read_json(BUNDLED / "config.json")
        size = read_json(BUNDLED / "preprocessor_config.json")["size"]
        return Geometry(EMBER, str(raw["ignis_name"]), raw, int(size["longest_edge"]))
    raise CheckpointError(f"There is no geometry {name!r}: give one of {', '.join(geometries())}.")


_QWEN: dict[str, Any] = {
    "architectures": ["Qwen3_5ForConditionalGeneration"],
    "model_type": "qwen3_5",
    "ignis_name": "Qwen3.8-27B",
    "dtype": "bfloat16",
    "image_token_id": 248056,
    "vision_start_token_id": 248053,
    "vision_end_token_id": 248054,
    "tie_word_embeddings": False,
    "text_config": {
        "model_type": "qwen3_5_text",
        "vocab_size": 248320,
        "hidden_size": 5120,
        "intermediate_size": 17408,
        "num_hidden_layers": 64,
        "full_attention_interval": 4,
        "num_attention_heads": 24,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "hidden_act": "silu",
        "attention_bias": False,
        "max_position_embeddings": 262144,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10_000_000.0,
            "partial_rotary_factor": 0.25,
            "mrope_section": [11, 11, 10],
            "mrope_interleaved": True,
        },
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 48,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        "tie_word_embeddings": False,
    },
    "vision_config": {
        "model_type": "qwen3_5_vision",
        "depth": 27,
        "hidden_size": 1152,
        "hidden_act": "gelu_pytorch_tanh",
        "intermediate_size": 4304,
        "num_heads": 16,
        "in_channels": 3,
        "patch_size": 16,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "out_hidden_size": 5120,
        "num_position_embeddings": 2304,
    },
}
_DFLASH = Drafter(weights=3_850_000_000, layers=5, window=2048, kv_heads=8, head_dim=128, taps=5)
