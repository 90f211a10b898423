"""A loaded network: weights, state buffers and the two towers over them."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.config import ModelConfig
from engine.memory.lane_state import LaneState
from engine.memory.paged_kv import PagedKV
from engine.model.decoder import Decoder
from engine.model.vision import VisionTower
from engine.model.weights import WeightSource, read_text, read_vision


@dataclass(frozen=True)
class Network:
    config: ModelConfig
    decoder: Decoder
    vision: VisionTower | None
    kv: PagedKV
    state: LaneState
    device: torch.device
    dtype: torch.dtype


def build_network(
    config: ModelConfig,
    source: WeightSource,
    *,
    slots: int,
    pages: int,
    page_size: int,
    device: torch.device,
    dtype: torch.dtype,
) -> Network:
    """Reserve the state buffers, then read the weights from ``source`` into theirs."""
    kv = PagedKV(config.text, pages, page_size, device, dtype)
    state = LaneState(config.text, slots, device, dtype)
    decoder = Decoder(config, read_text(config, source, device, dtype), kv, state)
    vision_weights = read_vision(config, source, device, dtype)
    vision = None
    if config.vision is not None and vision_weights is not None:
        vision = VisionTower(config.vision, vision_weights, device, dtype)
    return Network(config, decoder, vision, kv, state, device, dtype)
