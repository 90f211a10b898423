"""Small random models of the family in transformers (the oracle) and in this engine, with the same weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import Qwen3_5Config, Qwen3_5ForConditionalGeneration
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from engine.config import ModelConfig
from engine.messages import SamplingParams
from engine.model.decoder import Readout, Run
from engine.model.network import Network, build_network
from engine.model.rope import prompt_positions
from engine.sample.sampler import Sampler

TEXT_IDS, IMAGE, VISION_START, VISION_END, VOCABULARY = 90, 90, 91, 92, 96
"""Ids below ``TEXT_IDS`` are text."""
PAGE, PAGES, SLOTS = 16, 160, 8

SHAPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "untied": {"tied": False},
    "grouped": {"heads": 6, "kv_heads": 2, "gdn_key_heads": 2, "gdn_value_heads": 6, "rotary": 0.25},
    "narrow": {
        "hidden": 48,
        "layers": 5,
        "heads": 3,
        "kv_heads": 1,
        "head_dim": 32,
        "gdn_key_dim": 8,
        "gdn_value_dim": 24,
    },
    "yarn": {"rope": {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 256}},
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
    pairs = int(head_dim * rotary) // 2
    return Qwen3_5Config(
        text_config={
            "vocab_size": VOCABULARY,
            "hidden_size": hidden,
            "intermediate_size": 2 * hidden,
            "num_hidden_layers": layers,
            "layer_types": [
                "full_attention" if i % 4 == 3 or i == layers - 1 else "linear_attention" for i in range(layers)
            ],
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
            "eos_token_id": None,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 10_000.0,
                "partial_rotary_factor": rotary,
                "mrope_section": [pairs - 2 * (pairs // 3), pairs // 3, pairs // 3],
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


def randomise(model: torch.nn.Module, seed: int) -> None:
    """Weights under which every term counts and float32 still resolves 1e-5 of a logit.

    The initial values hide mistakes (norms of exactly 1, biases of 0, logits near 0), and gates as strong as the
    initial ones forget everything within a few tokens.
    """
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if name.endswith("A_log"):
            value = 0.5 * noise
        elif name.endswith("dt_bias"):
            value = noise - 2.0
        elif parameter.dim() == 1:
            # Zero-centred norms and biases around 0, other norms around 1.
            centre = name.endswith(("linear_attn.norm.weight", "norm1.weight", "norm2.weight", "merger.norm.weight"))
            value = float(centre) + 0.3 * noise
        elif "embed_tokens" in name:
            # As the output matrix, when tied, it makes logits of a few units.
            value = 0.2 * noise
        else:
            value = 0.7 * noise / parameter[0].numel() ** 0.5
        parameter.data.copy_(value)


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
    """One set of weights, twice: ``hf`` is the oracle, ``network`` what is tested."""

    hf: Qwen3_5ForConditionalGeneration
    network: Network

    @property
    def config(self) -> ModelConfig:
        return self.network.config

    def hf_inputs(self, ids: Sequence[int], pictures: Sequence[np.ndarray] = ()) -> dict[str, Tensor]:
        tokens = torch.tensor([list(ids)])
        inputs = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
        if pictures:
            vision = self.hf.config.vision_config
            processor = Qwen2VLImageProcessorPil(
                patch_size=vision.patch_size,
                temporal_patch_size=vision.temporal_patch_size,
                merge_size=vision.spatial_merge_size,
                image_mean=[0.5] * 3,
                image_std=[0.5] * 3,
                do_resize=False,
            )
            processed = processor(images=list(pictures), return_tensors="pt")
            inputs |= {
                "pixel_values": processed["pixel_values"],
                "image_grid_thw": processed["image_grid_thw"],
                "mm_token_type_ids": (tokens == IMAGE).int(),
            }
        return inputs

    def reference(self, ids: Sequence[int], pictures: Sequence[np.ndarray] = ()) -> Tensor:
        """Logits [T, vocabulary] of transformers' forward over the whole prompt."""
        with torch.no_grad():
            return self.hf(**self.hf_inputs(ids, pictures)).logits[0]

    def grids(self, pictures: Sequence[np.ndarray]) -> list[tuple[int, int]]:
        assert self.config.vision is not None
        cell = self.config.vision.cell
        return [(p.shape[0] // cell, p.shape[1] // cell) for p in pictures]

    def embed(self, ids: Sequence[int], pictures: Sequence[np.ndarray] = ()) -> Tensor:
        tokens = torch.tensor(ids)
        x = self.network.decoder.embed(tokens)
        if pictures:
            assert self.network.vision is not None
            x[tokens == IMAGE] = torch.cat([self.network.vision.encode(picture) for picture in pictures])
        return x

    def prefill(
        self,
        ids: Sequence[int],
        pictures: Sequence[np.ndarray] = (),
        *,
        slot: int = 0,
        pages: Sequence[int] = range(PAGES // 4),
        cuts: Sequence[int] = (),
        start: int = 0,
        stop: int | None = None,
        layers: int | None = None,
        readouts: Sequence[Readout] = (),
    ) -> Tensor:
        """Logits [stop − start, vocabulary] of this engine, read in chunks cut at ``cuts``.

        ``start`` > 0 goes on from what the slot and the pages hold; ``readouts`` go into the last chunk's pass.
        """
        stop = len(ids) if stop is None else stop
        decoder = self.network.decoder
        positions, _ = prompt_positions(ids, self.grids(pictures), IMAGE)
        out = []
        with torch.inference_mode():
            x = self.embed(ids, pictures)
            if start == 0:
                self.network.state.clear(slot)
            edges = [start, *cuts, stop]
            for first, last in pairwise(edges):
                run = Run(slot, 0, last - first, first, pages)
                reads = readouts if last == stop else ()
                hidden = decoder.forward(x[first:last], positions[:, first:last], [run], layers=layers, readouts=reads)
                out.append(decoder.logits(hidden))
        return torch.cat(out)

    def round(
        self,
        tokens: Sequence[int],
        contexts: Sequence[int],
        slots: Sequence[int],
        pages: Sequence[Sequence[int]],
        rope_deltas: Sequence[int] | None = None,
    ) -> Tensor:
        """Logits [lanes, vocabulary] after one more token on each lane, in one pass."""
        decoder = self.network.decoder
        deltas = rope_deltas or [0] * len(tokens)
        positions = torch.tensor([c + d for c, d in zip(contexts, deltas, strict=True)]).expand(3, -1)
        runs = [Run(slots[i], i, 1, contexts[i], pages[i]) for i in range(len(tokens))]
        with torch.inference_mode():
            return decoder.logits(decoder.forward(decoder.embed(torch.tensor(tokens)), positions, runs))


def greedy(pair: Pair, ids: Sequence[int], pictures: Sequence[np.ndarray], steps: int) -> tuple[list[int], list[int]]:
    """``steps`` tokens after a prompt, by transformers' generate and by this engine.

    Greedy text of random weights soon repeats itself; a repetition penalty keeps it moving.
    """
    penalty = 1.5
    with torch.no_grad():
        generated = pair.hf.generate(
            **pair.hf_inputs(ids, pictures),
            do_sample=False,
            repetition_penalty=penalty,
            max_new_tokens=steps,
            min_new_tokens=steps,
            pad_token_id=0,
        )
    _, delta = prompt_positions(ids, pair.grids(pictures), IMAGE)
    sampler = Sampler(1, VOCABULARY, "cpu")
    sampler.begin(0, SamplingParams(temperature=0.0, repetition_penalty=penalty), ids, seed=0)
    logits, answer = pair.prefill(ids, pictures), []
    for step in range(steps):
        answer += sampler.sample(logits[-1:], [0]).ids
        logits = pair.round(answer[-1:], [len(ids) + step], [0], [range(PAGES // 4)], [delta])
    return generated[0, len(ids) :].tolist(), answer


def make_pair(shape: str = "plain", seed: int = 0, dtype: torch.dtype = torch.float32) -> Pair:
    config = hf_config(**SHAPES[shape])
    config._attn_implementation = "eager"
    hf = Qwen3_5ForConditionalGeneration(config).eval().float()
    randomise(hf, seed)
    network = build_network(
        ModelConfig.from_dict(config.to_dict()),
        StateDict({name: tensor.detach() for name, tensor in hf.state_dict().items()}),
        slots=SLOTS,
        pages=PAGES,
        page_size=PAGE,
        device=torch.device("cpu"),
        dtype=dtype,
    )
    # What was never written must never be read.
    network.kv._rows.fill_(float("nan"))
    network.state._recurrent.fill_(float("nan"))
    network.state._conv.fill_(float("nan"))
    return Pair(hf, network)


def text(seed: int, length: int) -> list[int]:
    """Random text tokens."""
    return np.random.default_rng(seed).integers(0, TEXT_IDS, length).tolist()


def picture(seed: int, rows: int, columns: int) -> np.ndarray:
    """Random pixels of a picture of rows × columns image tokens."""
    return np.random.default_rng(seed).integers(0, 256, (rows * 8, columns * 8, 3), dtype=np.uint8)


def tokens_of(rows: int, columns: int) -> list[int]:
    """A picture's place in a prompt."""
    return [VISION_START, *[IMAGE] * (rows * columns), VISION_END]
