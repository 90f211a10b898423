"""Plans for people: what a model would take where, without loading it. ``ignis plan`` and the window show the same.

Free of Qt, and of torch unless the plan is for the CPU or the weights' files have to be looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.checkpoint.catalogue import resolve_model
from engine.checkpoint.errors import CheckpointError
from engine.checkpoint.geometries import QWEN, Drafter, geometries, geometry
from engine.checkpoint.json_file import read_json
from engine.config import EngineConfig, ModelConfig
from engine.memory.plan import MAX_PIXELS, Layout, Memory, Weights, plan_host, plan_vram, published
from engine.messages import MemoryPlan

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Subject:
    """A model to plan for. ``folder`` is None when only its geometry is known."""

    id: str
    name: str
    config: ModelConfig
    pixels: int
    """Of the largest picture."""
    drafter: Drafter | None = None
    folder: Path | None = None


@dataclass(frozen=True)
class Place:
    """Where the model would run: a card's memory, or with ``card`` false the host's. ``host`` is the memory of the
    machine that the card is in; None is not known."""

    memory: Memory
    card: bool
    host: Memory | None = None


@dataclass(frozen=True)
class Planned:
    """A plan and what it buys."""

    plan: MemoryPlan
    max_context: int
    native_context: int
    """What the model reads without YaRN."""
    lanes: int
    kv_format: str
    token_bytes: int
    """Keys and values of one token."""
    kv_tokens: int
    """Tokens that the pool holds."""

    def bytes_of(self, *names: str) -> int:
        return sum(line.bytes for line in self.plan.lines if line.name in names)

    @property
    def full_lanes_bytes(self) -> int:
        """What the pool would need for every lane to be full at once."""
        return self.lanes * self.max_context * self.token_bytes


def subject(wanted: str | Path | None) -> Subject:
    """A model by the folder or name of a checkpoint, else by the name of a known geometry; None is Ember.

    Raises ``EngineError`` when there is neither, or when config.json is none of ours.
    """
    try:
        known = resolve_model(wanted)
    except CheckpointError as error:
        if not isinstance(wanted, str) or wanted.lower() not in geometries():
            names = ", ".join(name for name in geometries() if name not in error.message)
            raise CheckpointError(f"{error.message.rstrip('.')}, or a geometry: {names}.") from None
        shape = geometry(wanted)
        return Subject(shape.id, shape.name, shape.config, shape.max_pixels, shape.drafter)
    config = ModelConfig.from_dict(read_json(known.path / "config.json"))
    return Subject(known.id, known.name, config, _max_pixels(known.path), _drafter(config), known.path)


def make_plan(model: Subject, config: EngineConfig, place: Place) -> Planned:
    """Raises ``EngineError`` with one sentence when the plan does not fit."""
    if place.card:
        layout = plan_vram(
            model.config,
            config,
            card_weights(model),
            total=place.memory.total,
            free=place.memory.free,
            pixels=model.pixels,
            drafter=model.drafter,
            host=place.host,
        )
    else:
        layout = plan_host(model.config, config, _host_dtype(config), place.memory, pixels=model.pixels)
    return _planned(model, config, layout)


def card_weights(model: Subject) -> Weights:
    """What a card would hold of the weights: what the files store, or what such a model is published as."""
    if model.folder is None:
        return published(model.config)
    from engine.checkpoint import open_checkpoint
    from engine.memory.plan import as_stored

    with open_checkpoint(model.folder) as checkpoint:
        return as_stored(model.config, checkpoint)


def _planned(model: Subject, config: EngineConfig, layout: Layout) -> Planned:
    pool = next(line.bytes for line in layout.plan.lines if line.name == "kv_pool")
    tokens = layout.pages * config.page_size
    rope = model.config.text.rope
    native = rope.yarn_original_context if rope.yarn_factor > 1 else model.config.text.max_context
    return Planned(
        plan=layout.plan,
        max_context=layout.max_context,
        native_context=native,
        lanes=config.lanes,
        kv_format=layout.kv_format,
        token_bytes=pool // tokens,
        kv_tokens=tokens,
    )


def _max_pixels(folder: Path) -> int:
    """Of the largest picture, as ``engine.images`` reads it; that module brings numpy and Pillow."""
    try:
        raw = read_json(folder / "preprocessor_config.json")
    except CheckpointError:
        return MAX_PIXELS
    size = raw.get("size")
    longest = size.get("longest_edge") if isinstance(size, dict) else None
    return int(raw.get("max_pixels") or longest or MAX_PIXELS)


def _drafter(config: ModelConfig) -> Drafter | None:
    """The drafter that was made for a model of this shape."""
    known, text = geometry(QWEN), config.text
    made_for = known.config.text
    same = (text.hidden_size, text.num_layers, text.vocab_size)
    return known.drafter if same == (made_for.hidden_size, made_for.num_layers, made_for.vocab_size) else None


def _host_dtype(config: EngineConfig) -> torch.dtype:
    import torch

    from engine.device import choose_dtype

    return choose_dtype(config, torch.device("cpu"))
