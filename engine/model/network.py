"""A loaded network: weights, state buffers and the two towers over them."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from engine.compute import runs_fused, unserved
from engine.config import ModelConfig
from engine.memory.arena import Arena, Take, each_its_own
from engine.memory.lane_state import LaneState
from engine.memory.paged_kv import PagedKV
from engine.model.decoder import Decoder
from engine.model.vision import VisionTower
from engine.model.weights import read_text, read_vision

_log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from engine.model.fused_decoder import FusedDecoder
    from engine.model.fused_weights import PackedSource


@dataclass(frozen=True)
class Network:
    config: ModelConfig
    decoder: Decoder | FusedDecoder
    vision: VisionTower | None
    kv: PagedKV
    state: LaneState
    device: torch.device
    dtype: torch.dtype

    def prepare(self, chunk: int) -> None:
        """Before any lane is taken: what a card compiles or captures for pictures, readouts and chunks of prompts of up
        to ``chunk`` columns, so that no request waits for it. Nothing on a processor."""
        if self.device.type != "cuda":
            return
        with torch.inference_mode():
            if self.vision is not None:
                self.vision.warm()
            if not isinstance(self.decoder, Decoder):
                self.decoder.prepare(chunk)


def build_network(
    config: ModelConfig,
    source: PackedSource,
    *,
    slots: int,
    pages: int,
    page_size: int,
    device: torch.device,
    dtype: torch.dtype,
    kv_format: str = "auto",
    weights: int | None = None,
) -> Network:
    """Reserve the state buffers, then read the weights from ``source`` into theirs.

    Args:
        weights: bytes of one block for all weights, as they are planned; None leaves each to torch.
    """
    kv = PagedKV(config.text, pages, page_size, device, dtype, kv_format)
    state = LaneState(config.text, slots, device, dtype)
    take = each_its_own(device) if weights is None else Arena(weights, device).take
    decoder = _decoder(config, source, kv, state, device, dtype, take)
    vision_weights = read_vision(config, source, take, dtype)
    vision = None
    if config.vision is not None and vision_weights is not None:
        vision = VisionTower(config.vision, vision_weights, device, dtype)
    return Network(config, decoder, vision, kv, state, device, dtype)


def _decoder(
    config: ModelConfig,
    source: PackedSource,
    kv: PagedKV,
    state: LaneState,
    device: torch.device,
    dtype: torch.dtype,
    take: Take,
) -> Decoder | FusedDecoder:
    if not runs_fused(config.text, device.type, str(dtype).removeprefix("torch.")):
        if device.type == "cuda" and unserved(config.text):
            _log.warning("The card's kernels do not serve %s: plain torch, which is slower.", unserved(config.text))
        return Decoder(config, read_text(config, source, take, dtype), kv, state)
    # Triton is imported where it is used only: a start on the CPU does without.
    from engine.model.fused_decoder import FusedDecoder
    from engine.model.fused_weights import read_fused

    weights = read_fused(config, source, device, take)
    # What packing took goes back to the driver: nothing that stays is to be cut from it.
    torch.cuda.empty_cache()
    return FusedDecoder(config, weights, kv, state)
