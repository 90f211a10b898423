"""Small random models of the family in transformers (the oracle) and in this engine, with the same weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from transformers import Qwen3_5Config, Qwen3_5ForConditionalGeneration

from engine.config import ModelConfig
from engine.memory.lane_state import LaneState
from engine.memory.paged_kv import PagedKV
from engine.model.decoder import Decoder, Run
from engine.model.rope import prompt_positions
from engine.model.vision import VisionTower
from engine.model.weights import read_text, read_vision

IMAGE, VISION_START, VISION_END = 90, 91, 92
PAGE = 16

SHAPES = {
    "plain": {},
    "untied": {"tied": False},
    "grouped": {"heads": 6, "kv_heads": 2, "gdn_key_heads": 2, "gdn_value_heads": 6, "rotary": 0.25},
    "narrow": {"hidden": 48, "layers": 5, "heads": 3, "kv_heads": 1, "head_dim": 32, "gdn_key_dim": 8, "gdn_value_dim": 24},
    "yarn": {"rope": {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 64}},
}


def hf_config(
    *,
    tied: bool = True,
    hidden: int = 64,
    layers: int = 4,
    heads: int = 4,
    kv_heads: int = 2,
    head_dim: int = 64,
    gdn_key_heads: int = 2,
    gdn_value_heads: int = 4,
    gdn_key_dim: int = 16,
    gdn_value_dim: int = 16,
    rotary: float = 1.0,
    rope: dict[str, object] | None = None,
) -> Qwen3_5Config:
    dim = int(head_dim * rotary) // 2
    sections = [dim - 2 * (dim // 3), dim // 3, dim // 3]
    return Qwen3_5Config(
        text_config={
            "vocab_size": 96,
            "hidden_size": hidden,
            "intermediate_size": 2 * hidden,
            "num_hidden_layers": layers,
            "layer_types": ["full_attention" if i % 4 == 3 or i == layers - 1 else "linear_attention" for i in range(layers)],
            "num_attention_heads": heads,
            "num_key_value_heads": kv_heads,
            "head_dim": head_dim,
            "linear_num_key_heads": gdn_key_heads,
            "linear_num_value_heads": gdn_value_heads,
            "linear_key_head_dim": gdn_key_dim,
            "linear_value_head_dim": gdn_value_dim,
            "linear_conv_kernel_dim": 4,
            "max_position_embeddings": 512,
            "tie_word_embeddings": tied,
            "pad_token_id": 0,
            "eos_token_id": 95,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 10_000.0,
                "partial_rotary_factor": rotary,
                "mrope_section": sections,
                "mrope_interleaved": True,
                **(rope or {}),
            },
        },
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 2,
            "out_hidden_size": hidden,
            "patch_size": 4,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "num_position_embeddings": 25,
        },
        image_token_id=IMAGE,
        video_token_id=93,
        vision_start_token_id=VISION_START,
        vision_end_token_id=VISION_END,
        tie_word_embeddings=tied,
    )


@dataclass
class StateDict:
    """A state dict as a source of weights."""

    tensors: dict[str, Tensor]

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.tensors[name].shape)

    def copy_into(self, name: str, out: Tensor) -> None:
        out.copy_(self.tensors[name])


@dataclass
class Pair:
    """One set of weights, twice."""

    hf: Qwen3_5ForConditionalGeneration
    config: ModelConfig
    decoder: Decoder
    vision: VisionTower
    state: LaneState
    kv: PagedKV

    def reference(self, ids: list[int], pictures: list[np.ndarray] | None = None) -> Tensor:
        """Logits [T, vocabulary] of transformers' forward over the whole prompt."""
        tokens = torch.tensor([ids])
        extra = {}
        if pictures:
            size = self.config.vision.patch_size
            extra = {
                "pixel_values": torch.cat([self.vision._patches(picture) for picture in pictures]),
                "image_grid_thw": torch.tensor([[1, p.shape[0] // size, p.shape[1] // size] for p in pictures]),
                "mm_token_type_ids": (tokens == IMAGE).int(),
            }
        with torch.no_grad():
            return self.hf(input_ids=tokens, attention_mask=torch.ones_like(tokens), **extra).logits[0]

    def grids(self, pictures: list[np.ndarray]) -> list[tuple[int, int]]:
        cell = self.config.vision.cell
        return [(p.shape[0] // cell, p.shape[1] // cell) for p in pictures]

    def embed(self, ids: list[int], pictures: list[np.ndarray] | None = None) -> Tensor:
        tokens = torch.tensor(ids)
        x = self.decoder.embed(tokens)
        if pictures:
            x[tokens == IMAGE] = torch.cat([self.vision.encode(picture) for picture in pictures])
        return x

    def prefill(
        self,
        ids: list[int],
        pictures: list[np.ndarray] | None = None,
        *,
        slot: int = 0,
        pages: list[int] | None = None,
        cuts: tuple[int, ...] = (),
    ) -> Tensor:
        """Logits [T, vocabulary] of this engine, read in chunks cut at ``cuts``."""
        pages = pages if pages is not None else list(range(32))
        positions, _ = prompt_positions(ids, self.grids(pictures or []), IMAGE)
        x = self.embed(ids, pictures)
        self.state.clear(slot)
        edges = [0, *cuts, len(ids)]
        out = []
        with torch.inference_mode():
            for start, stop in zip(edges, edges[1:], strict=False):
                run = Run(slot, 0, stop - start, start, pages)
                out.append(self.decoder.logits(self.decoder.forward(x[start:stop], positions[:, start:stop], [run])))
        return torch.cat(out)


def make_pair(shape: str = "plain", seed: int = 0) -> Pair:
    torch.manual_seed(seed)
    config = hf_config(**SHAPES[shape])
    config._attn_implementation = "eager"
    hf = Qwen3_5ForConditionalGeneration(config).eval().float()
    generator = torch.Generator().manual_seed(seed + 1)
    for name, parameter in hf.named_parameters():
        # The initial values hide mistakes: norms of exactly 1, biases of 0, logits near 0.
        scale = 0.3 if parameter.dim() == 1 else 1.5 / parameter[0].numel() ** 0.5
        noise = torch.randn(parameter.shape, generator=generator) * scale
        parameter.data = parameter.data + noise if "A_log" in name or parameter.dim() == 1 else noise
    tensors = {name: tensor.detach() for name, tensor in hf.state_dict().items()}
    ours = ModelConfig.from_dict(config.to_dict())

    source = StateDict(tensors)
    cpu = torch.device("cpu")
    state = LaneState(ours.text, 8, cpu, torch.float32)
    kv = PagedKV(ours.text, 128, PAGE, cpu, torch.float32)
    decoder = Decoder(ours, read_text(ours, source, cpu, torch.float32), kv, state)
    vision_weights = read_vision(ours, source, cpu, torch.float32)
    assert ours.vision is not None and vision_weights is not None
    return Pair(hf, ours, decoder, VisionTower(ours.vision, vision_weights, cpu, torch.float32), state, kv)
