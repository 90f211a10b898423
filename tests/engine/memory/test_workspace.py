"""The workspace covers what the passes really allocate, and not much more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.checkpoint.layout import expected_tensors
from engine.config import ModelConfig
from engine.memory.plan import activations
from engine.messages import SamplingParams
from engine.model.decoder import Run
from engine.model.network import Network, build_network
from engine.sample.logprobs import token_logprobs
from engine.sample.sampler import Sampler
from engine.schedule import prefill
from kernels import gated_delta
from tests.engine.memory.peak import peak_bytes

CHUNK, PAGES = 256, 32
SLACK = 1.25


@dataclass(frozen=True)
class Shape:
    hidden: int
    mlp: int
    heads: int
    kv_heads: int
    head_dim: int
    gdn_keys: int
    gdn_values: int
    gdn_dim: int
    vision: int


SHAPES = {
    # As Ember: as many key heads as value heads, a small MLP.
    "ember": Shape(288, 768, 6, 2, 64, 6, 6, 64, 192),
    # As the 27B, a quarter as wide: three value heads to a key head, a large MLP.
    "qwen": Shape(1280, 4352, 6, 1, 256, 4, 12, 128, 288),
}


def config(name: str) -> ModelConfig:
    shape = SHAPES[name]
    text = {
        "vocab_size": 4096,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.mlp,
        "num_hidden_layers": 4,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "linear_num_key_heads": shape.gdn_keys,
        "linear_num_value_heads": shape.gdn_values,
        "linear_key_head_dim": shape.gdn_dim,
        "linear_value_head_dim": shape.gdn_dim,
        "linear_conv_kernel_dim": 4,
        "max_position_embeddings": PAGES * 64,
        "rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.25, "mrope_section": [2, 1, 1]},
    }
    vision = {
        "depth": 2,
        "hidden_size": shape.vision,
        "intermediate_size": 4 * shape.vision,
        "num_heads": 4,
        "in_channels": 3,
        "patch_size": 16,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "out_hidden_size": shape.hidden,
        "num_position_embeddings": 576,
    }
    return ModelConfig.from_dict(
        {"model_type": "qwen3_5", "tie_word_embeddings": True, "text_config": text, "vision_config": vision}
    )


class RandomWeights:
    def __init__(self, model: ModelConfig) -> None:
        self._shapes = expected_tensors(model)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._shapes[name]

    def copy_into(self, name: str, out: Tensor) -> None:
        out.normal_(std=0.02)


@pytest.fixture(params=[("ember", torch.float32), ("qwen", torch.float32), ("qwen", torch.bfloat16)], scope="module")
def network(request: pytest.FixtureRequest) -> Network:
    name, dtype = request.param
    model = config(name)
    return build_network(
        model, RandomWeights(model), slots=1, pages=PAGES, page_size=64, device=torch.device("cpu"), dtype=dtype
    )


def close(planned: int, measured: int) -> None:
    assert measured <= planned * 1.01  # a chunk carries a few index tensors besides
    assert planned <= measured * SLACK


def read_chunk(network: Network, past: int, pages: list[int]) -> int:
    ids = torch.arange(CHUNK)
    positions = torch.arange(past, past + CHUNK).expand(3, -1)

    @torch.inference_mode()
    def work() -> None:
        network.decoder.forward(network.decoder.embed(ids), positions, [Run(0, 0, CHUNK, past, pages)])

    work()  # what oneDNN and the allocator keep from a first pass is no part of it
    return peak_bytes(work)


def test_a_chunk(network: Network) -> None:
    planned = activations._recurrence(network.config.text, CHUNK, network.dtype.itemsize)
    close(planned.bytes, read_chunk(network, 0, list(range(PAGES))))


def test_a_chunk_after_a_long_context_in_scattered_pages(network: Network) -> None:
    size = PAGES * 64
    planned = activations._attention(network.config.text, CHUNK, size, network.dtype.itemsize)
    close(planned.bytes, read_chunk(network, size - CHUNK, list(reversed(range(PAGES)))))


def test_a_picture(network: Network) -> None:
    vision = network.vision
    assert vision is not None
    assert network.config.vision is not None
    planned = activations._picture(network.config.vision, 512 * 1024, network.dtype.itemsize)

    @torch.inference_mode()
    def work() -> None:
        vision.encode(np.zeros((512, 1024, 3), np.uint8))

    work()
    # The tokens that come of it lie with those that are kept.
    tokens = 512 * 1024 // network.config.vision.cell**2 * network.config.vision.out_hidden_size
    close(planned.bytes, peak_bytes(work) - tokens * network.dtype.itemsize)


VOCABULARY = 65_536


def test_logits_of_scored_positions() -> None:
    rows = activations.SCORED_ROWS
    logits = torch.randn(rows, VOCABULARY)
    used = peak_bytes(lambda: token_logprobs(logits, list(range(rows)), [20] * rows))
    # Beside them the logits themselves in both types.
    text = config("ember").text
    planned = activations._logits(text, 1, 1).bytes // text.vocab_size * VOCABULARY
    close(planned, used + rows * VOCABULARY * (4 + 2))


@pytest.mark.parametrize("params", [SamplingParams(), SamplingParams(top_p=0.999999), SamplingParams(top_k=1000)])
def test_logits_of_a_full_round(params: SamplingParams) -> None:
    lanes = 16
    sampler = Sampler(lanes, VOCABULARY, "cpu")
    for lane in range(lanes):
        sampler.begin(lane, params, [1], lane)
    logits = torch.randn(lanes, VOCABULARY)
    text = config("ember").text
    planned = activations._logits(text, lanes, 1).bytes // text.vocab_size * VOCABULARY
    assert peak_bytes(lambda: sampler.sample(logits, range(lanes))) + logits.nbytes <= planned


def test_constants_are_the_codes() -> None:
    assert gated_delta.CHUNK == activations.GDN_CHUNK
    assert prefill._SCORED_ROWS == activations.SCORED_ROWS
