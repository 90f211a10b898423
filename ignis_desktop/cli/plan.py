"""``ignis plan``: what a model takes of a card's memory, without the card and without the weights."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from ignis_desktop.cli.errors import FAULT, CommandError
from ignis_desktop.cli.options import EngineOptions, Size, engine_options
from ignis_desktop.cli.plan_table import MIB, plan_lines

if TYPE_CHECKING:
    from ignis_desktop.planning import Place, Planned, Subject

GIB = 1024**3


@click.command(short_help="Plan the memory of any card, without one.")
@click.option("--vram", type=Size(), help="Memory of the card to plan for, e.g. 32GiB.  [default: this machine]")
@click.option("--ram", type=Size(), help="Plan for the CPU of a machine with this much memory.")
@click.option("--other", type=Size(), help="What other programs hold of it.  [default: 0 of --vram or --ram]")
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
@engine_options
def plan(engine_options: EngineOptions, vram: int | None, ram: int | None, other: int | None, as_json: bool) -> int:
    """Print where memory would go, line by line, without loading anything.

    MODEL may be a checkpoint or a geometry (qwen3.8-27b, ember). Without --vram and --ram the plan is for this
    machine: its GPU and Qwen3.8-27B, or without one its memory and Ember. Exits with 1 when the plan does not fit.
    """
    from engine.memory.plan import PlanError
    from engine.messages import EngineError
    from ignis_desktop.planning import make_plan

    if vram is not None and ram is not None:
        raise click.UsageError("A plan is for a card (--vram) or for a CPU (--ram), not for both.")
    if other is not None and vram is None and ram is None:
        raise click.UsageError("--other goes with --vram or --ram: what this machine's programs hold is measured.")
    try:
        place = _place(engine_options, vram, ram, other or 0)
        model = _subject(engine_options, place)
        done = make_plan(model, engine_options.config(), place)
    except PlanError as fault:
        if as_json:
            click.echo(json.dumps({"fits": False, "error": fault.message, "short": fault.short}, indent=2))
        raise CommandError(fault.message) from fault
    except EngineError as fault:
        raise CommandError(fault.message) from fault
    if as_json:
        click.echo(json.dumps(_as_json(model, done), ensure_ascii=False, indent=2))
    else:
        _print(model, place, done)
    return 0


def _place(options: EngineOptions, vram: int | None, ram: int | None, other: int) -> Place:
    from engine.memory.plan import Memory, card_memory, host_memory
    from ignis_desktop.planning import Place

    size = vram if vram is not None else ram
    if size is not None:
        if other > size:
            raise click.UsageError("--other is more than there is.")
        return Place(Memory(size, size - other), card=vram is not None)
    card = None if options.device == "cpu" else card_memory()
    if card is not None:
        return Place(card, card=True, host=host_memory())
    if options.device == "cuda":
        raise CommandError("There is no NVIDIA GPU here: say which card to plan for, e.g. --vram 32GiB.", FAULT)
    return Place(host_memory(), card=False)


def _subject(options: EngineOptions, place: Place) -> Subject:
    from engine.checkpoint.geometries import QWEN
    from ignis_desktop.planning import subject

    model = subject(options.model or (QWEN if place.card else None))
    if model.folder is None and not place.card and options.device != "cpu":
        raise CommandError(
            f"There is no GPU here and no files of {model.name}: say which card to plan for, e.g. --vram 32GiB, or "
            "--device cpu.",
            FAULT,
        )
    return model


def _as_json(model: Subject, done: Planned) -> dict[str, Any]:
    """The plan in the shape of ``GET /v1/engine``'s ``memory_plan``, and what it is for."""
    return {
        "fits": True,
        "model": {"id": model.id, "name": model.name},
        "max_context": done.max_context,
        "lanes": done.lanes,
        "kv_format": done.kv_format,
        "kv_tokens": done.kv_tokens,
        **asdict(done.plan),
    }


def _print(model: Subject, place: Place, done: Planned) -> None:
    where = f"a card of {place.memory.total / MIB:,.0f} MiB" if place.card else "the CPU"
    named = f" ({place.memory.name})" if place.memory.name else ""
    lanes = f"{done.lanes} lane{'s' if done.lanes > 1 else ''}"
    click.echo(f"{model.name} on {where}{named}: {lanes} × {done.max_context:,} tokens, KV in {done.kv_format}")
    for line in plan_lines(done.plan):
        click.echo(line)
    full, held = done.lanes * done.max_context, done.kv_tokens
    says = f"all {done.lanes} lanes can be full at once" if held >= full else "the lanes share them"
    click.echo(
        f"The KV pool holds {held:,} tokens; {done.lanes} lanes × {done.max_context:,} = {full:,} tokens "
        f"({done.full_lanes_bytes / GIB:,.1f} GiB): {says}."
    )
