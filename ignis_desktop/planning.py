"""Plans for people: what a model would take where, without loading it. ``ignis plan`` and the window show the same.

Free of Qt, and of torch unless the files of a card's weights have to be looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from engine.checkpoint.catalogue import resolve_model
from engine.checkpoint.errors import CheckpointError
from engine.checkpoint.geometries import QWEN, Drafter, geometries, geometry
from engine.checkpoint.json_file import read_json
from engine.compute import compute_type, runs_fused
from engine.config import EngineConfig, ModelConfig, TextConfig
from engine.memory.plan import (
    MAX_PIXELS,
    Layout,
    Memory,
    Mend,
    PlanError,
    Weights,
    card_memory,
    check_runs,
    host_memory,
    on_card,
    plain_on_card,
    plan_host,
    plan_vram,
    published,
)
from engine.messages import MemoryPlan


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
    machine that the card is in; None is not known. ``unpacked``: weights in the compute type, as the engine holds them
    where it does not run the card's kernels, not as their files store them."""

    memory: Memory
    card: bool
    host: Memory | None = None
    unpacked: bool = False


@dataclass(frozen=True)
class Planned:
    """A plan and what it buys. With ``short`` above 0 it does not fit: it is the plan for a memory that is as many
    bytes larger, ``fault`` the sentence that says so, ``mends`` what would make it fit."""

    plan: MemoryPlan
    max_context: int
    native_context: int
    """What the model reads without YaRN."""
    yarn: float
    lanes: int
    kv_format: str
    token_bytes: int
    """Keys and values of one token."""
    kv_tokens: int
    """Tokens that the pool holds."""
    fault: str = ""
    short: int = 0
    mends: tuple[Mend, ...] = ()

    def bytes_of(self, *names: str) -> int:
        return sum(line.bytes for line in self.plan.lines if line.name in names)

    @property
    def full_lanes_bytes(self) -> int:
        """What the pool would need for every lane to be full at once."""
        return self.lanes * self.max_context * self.token_bytes


@dataclass(frozen=True)
class WhatIf:
    """What to plan with instead of what the engine was loaded with; None leaves that as it is."""

    geometry: str = ""
    """A known geometry, on a card of ``card`` bytes; "" is the engine's own model on this machine."""
    card: int = 0
    max_context: int | None = None
    lanes: int | None = None
    kv_format: str | None = None
    yarn: float | None = None
    headroom: int | None = None
    host_tier: int | None = None


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
        return subject_of(wanted)
    config = ModelConfig.from_dict(read_json(known.path / "config.json"))
    return Subject(known.id, known.name, config, _max_pixels(known.path), _drafter(config), known.path)


def subject_of(name: str) -> Subject:
    """A known geometry. Raises ``CheckpointError`` when there is none of this name."""
    shape = geometry(name)
    return Subject(shape.id, shape.name, shape.config, shape.max_pixels, shape.drafter)


def make_plan(model: Subject, config: EngineConfig, place: Place) -> Planned:
    """Raises ``EngineError`` with one sentence when the plan does not fit."""
    if place.card:
        layout = plan_vram(
            model.config,
            config,
            plain_on_card(model.config, 2, "bfloat16") if place.unpacked else card_weights(model),
            total=place.memory.total,
            free=place.memory.free,
            pixels=model.pixels,
            drafter=model.drafter,
            host=place.host,
        )
    else:
        layout = plan_host(model.config, config, compute_type(config, "cpu"), place.memory, pixels=model.pixels)
    return _planned(model, config, layout)


def plan_what_if(config: EngineConfig, wanted: WhatIf, in_force: MemoryPlan | None) -> Planned:
    """The plan with some options changed, whether it fits or not; some milliseconds.

    Args:
        config: what the engine was loaded with.
        in_force: its plan, which tells the size of its card.

    Raises:
        EngineError: there is no such plan, however much memory there was.
    """
    knobs = {field.name: getattr(wanted, field.name) for field in fields(WhatIf)}
    knobs = {name: value for name, value in knobs.items() if value is not None and name not in ("geometry", "card")}
    if wanted.geometry:
        model, place = subject_of(wanted.geometry), Place(Memory(wanted.card, wanted.card), card=True)
        config = EngineConfig(**knobs)
    else:
        model = subject(config.model)
        place = _own_place(config, model.config.text, in_force)
        config = replace(config, **knobs)
    try:
        return make_plan(model, config, place)
    except PlanError as error:
        if not error.short:
            raise
        larger = Memory(place.memory.total + error.short, place.memory.free + error.short)
        planned = make_plan(model, config, replace(place, memory=larger))
        return replace(planned, fault=error.message, short=error.short, mends=error.mends)


def cannot_run(config: EngineConfig, wanted: WhatIf) -> str:
    """Why the engine cannot be loaded like this although a plan can be made; "" when it can."""
    if not _on_card(config):
        return ""
    changed: dict[str, Any] = {} if wanted.kv_format is None else {"kv_format": wanted.kv_format}
    try:
        text = subject(config.model).config.text
        check_runs(replace(config, **changed), "bfloat16", fused=runs_fused(text, "cuda", "bfloat16"))
    except PlanError as error:
        return error.message
    return ""


def _on_card(config: EngineConfig) -> bool:
    """Whether the engine would be loaded on a card, as ``engine.device`` chooses; told without torch."""
    if config.device == "auto":
        return config.model is not None and card_memory() is not None
    return config.device == "cuda"


def _own_place(config: EngineConfig, text: TextConfig, in_force: MemoryPlan | None) -> Place:
    if not _on_card(config):
        return Place(host_memory(), card=False)
    if in_force is not None:
        memory = Memory(in_force.capacity, in_force.capacity - in_force.other)
    else:
        memory = card_memory() or Memory(0, 0)
    return Place(memory, card=True, host=host_memory(), unpacked=not runs_fused(text, "cuda", "bfloat16"))


def card_weights(model: Subject) -> Weights:
    """What a card would hold of the weights: as the files store them, or as such a model is published."""
    if model.folder is None:
        return published(model.config)
    from engine.checkpoint import open_checkpoint

    with open_checkpoint(model.folder) as checkpoint:
        return on_card(model.config, checkpoint)


def _planned(model: Subject, config: EngineConfig, layout: Layout) -> Planned:
    pool = next(line.bytes for line in layout.plan.lines if line.name == "kv_pool")
    tokens = layout.pages * config.page_size
    rope = model.config.text.rope
    native = rope.yarn_original_context if rope.yarn_factor > 1 else model.config.text.max_context
    return Planned(
        plan=layout.plan,
        max_context=layout.max_context,
        native_context=native,
        yarn=config.yarn or rope.yarn_factor,
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
