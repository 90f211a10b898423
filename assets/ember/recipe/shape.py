"""Ember's dimensions and special tokens, read from the checkpoint's own ``config.json`` and ``tokenizer.json``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tokenizers import Tokenizer

READ_LAYER = 11
"""The full-attention layer whose heads answer: every head's q·k, summed over heads."""


@dataclass(frozen=True)
class Shape:
    """The dimensions of one ``qwen3_5`` network that the training forward needs."""

    vocab: int
    hidden: int
    mlp: int
    layer_types: tuple[str, ...]
    heads: int
    kv_heads: int
    head_dim: int
    gdn_heads: int
    gdn_dim: int
    conv: int
    eps: float
    theta: float
    mrope: tuple[int, int, int]
    vision_hidden: int
    vision_depth: int
    vision_heads: int
    vision_mlp: int
    patch: int
    merge: int
    position_side: int
    read_layer: int

    @classmethod
    def from_config(cls, path: Path, read_layer: int = READ_LAYER) -> Shape:
        """Read a Hugging Face ``config.json``. Raises ValueError when the network is not one this forward covers."""
        config = json.loads(Path(path).read_text())
        text, vision, rope = config["text_config"], config["vision_config"], config["text_config"]["rope_parameters"]
        if text["linear_num_key_heads"] != text["linear_num_value_heads"]:
            raise ValueError(f"{path}: grouped Gated DeltaNet heads are not covered by this recipe")
        if text["linear_key_head_dim"] != text["linear_value_head_dim"] or rope["partial_rotary_factor"] != 1.0:
            raise ValueError(f"{path}: key and value dimensions must match and rotary must cover the whole head")
        if text["layer_types"][read_layer] != "full_attention":
            raise ValueError(f"{path}: layer {read_layer} has no attention to read")
        return cls(
            vocab=text["vocab_size"],
            hidden=text["hidden_size"],
            mlp=text["intermediate_size"],
            layer_types=tuple(text["layer_types"]),
            heads=text["num_attention_heads"],
            kv_heads=text["num_key_value_heads"],
            head_dim=text["head_dim"],
            gdn_heads=text["linear_num_value_heads"],
            gdn_dim=text["linear_value_head_dim"],
            conv=text["linear_conv_kernel_dim"],
            eps=text["rms_norm_eps"],
            theta=rope["rope_theta"],
            mrope=tuple(rope["mrope_section"]),
            vision_hidden=vision["hidden_size"],
            vision_depth=vision["depth"],
            vision_heads=vision["num_heads"],
            vision_mlp=vision["intermediate_size"],
            patch=vision["patch_size"],
            merge=vision["spatial_merge_size"],
            position_side=round(vision["num_position_embeddings"] ** 0.5),
            read_layer=read_layer,
        )

    @property
    def cell(self) -> int:
        """Side in pixels of the square one image token stands for."""
        return self.patch * self.merge


@dataclass(frozen=True)
class Words:
    """The tokenizer with the ids the prompts are built from. Text is always encoded without added specials."""

    path: Path

    @cached_property
    def tokenizer(self) -> Tokenizer:
        tokenizer = Tokenizer.from_file(str(self.path))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def encode_many(self, texts: list[str]) -> list[list[int]]:
        return [e.ids for e in self.tokenizer.encode_batch(texts, add_special_tokens=False)]

    def special(self, name: str) -> int:
        token = self.tokenizer.token_to_id(name)
        if token is None:
            raise ValueError(f"{self.path} has no token {name}")
        return token

    @cached_property
    def user(self) -> list[int]:
        """``<|im_start|>user\\n``: what comes before the evidence of every readout."""
        return self.encode("<|im_start|>user\n")

    @cached_property
    def newline(self) -> int:
        (token,) = self.encode("\n")
        return token

    @cached_property
    def vision_start(self) -> int:
        return self.special("<|vision_start|>")

    @cached_property
    def vision_end(self) -> int:
        return self.special("<|vision_end|>")

    @cached_property
    def image(self) -> int:
        return self.special("<|image_pad|>")

    @cached_property
    def point(self) -> int:
        return self.special("<|point|>")

    @cached_property
    def line(self) -> int:
        return self.special("<|line|>")

    @cached_property
    def end(self) -> int:
        return self.special("<|im_end|>")
