"""``ignis models``: which models are here, whether a checkpoint is sound, and checkpoints of random weights."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from ignis_desktop.cli.errors import FAULT, CommandError
from ignis_desktop.cli.progress import ProgressLine

MB = 1e6


@click.group()
def models() -> None:
    """List the models that are here, verify or convert one, or make one of random weights."""


@models.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a list as JSON.")
def list_models(as_json: bool) -> int:
    """List the built-in model and those in the models folders (IGNIS_MODELS, then the user's data folder)."""
    from engine.checkpoint import catalogue

    found = catalogue.list_models()
    if as_json:
        click.echo(json.dumps([{**asdict(model), "path": str(model.path)} for model in found], indent=2))
        return 0
    width = max(len(model.id) for model in found)
    for model in found:
        click.echo(f"{model.id:<{width}}  {model.name}  {'(built in)' if model.bundled else model.path}")
    return 0


@models.command("verify")
@click.argument("model", metavar="NAME|DIR")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def verify_model(model: str, as_json: bool) -> int:
    """Read a whole checkpoint once: every tensor, the tokenizer, the chat template, the head lists.

    Exits with 1 when something in it cannot be used.
    """
    from engine.checkpoint import CheckpointError
    from engine.checkpoint.catalogue import resolve_model
    from engine.checkpoint.verify import verify

    try:
        known = resolve_model(model)
    except CheckpointError as fault:
        raise CommandError(fault.message) from fault
    line = ProgressLine()
    try:
        report = verify(known.path, lambda done, total, _name: line.show("Reading", done / MB, total / MB, "MB"))
    finally:
        line.clear()
    if as_json:
        click.echo(json.dumps({**asdict(report), "path": str(report.path), "ok": report.ok}, indent=2))
        return 0 if report.ok else FAULT
    for problem in report.problems:
        click.echo(f"ignis: {problem}", err=True)
    if not report.ok:
        return FAULT
    formats = ", ".join(f"{count} {name}" for name, count in report.formats)
    click.echo(f"{known.name} is sound: {report.parameters / 1e6:,.1f}M parameters, {report.nbytes / MB:,.1f} MB")
    click.echo(f"  weights   {formats}")
    click.echo(f"  pictures  {'yes' if report.vision else 'no'}")
    click.echo(f"  readouts  {', '.join(report.readouts) or 'none'}")
    click.echo(f"  hash      {report.content_hash}")
    return 0


@models.command("convert")
@click.argument("source", metavar="SRC")
@click.argument("target", metavar="DST", type=click.Path(file_okay=False, path_type=Path))
def convert_model(source: str, target: Path) -> int:
    """Write a checkpoint (name or folder) into DST in the card's own order, so that loading it is a copy."""
    from engine.checkpoint import CheckpointError
    from engine.checkpoint.catalogue import resolve_model
    from engine.checkpoint.convert import convert

    line = ProgressLine()
    try:
        known = resolve_model(source)
        count = convert(known.path, target, lambda done, total: line.show("Converting", done / MB, total / MB, "MB"))
    except CheckpointError as fault:
        raise CommandError(fault.message) from fault
    except OSError as fault:
        raise CommandError(f"{target} cannot be written: {fault.strerror or fault}.") from fault
    finally:
        line.clear()
    click.echo(f"{target} holds {known.name} with {count} matrices in the card's order.")
    return 0


@models.command("random")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option("--geometry", default="qwen3.8-27b", show_default=True, help="Whose shapes it has.")
@click.option(
    "--layout",
    type=click.Choice(["modelopt", "compressed-tensors"]),
    default="modelopt",
    show_default=True,
    help="How the NVFP4 matrices are stored.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed writes the same weights.")
def random_model(folder: Path, geometry: str, layout: str, seed: int) -> int:
    """Write a checkpoint of random weights, to measure loading and speed. What it says means nothing."""
    from engine.checkpoint import CheckpointError, geometries
    from engine.checkpoint.random_model import write_random

    line = ProgressLine()
    try:
        known = geometries.geometry(geometry)
        write_random(
            known,
            folder,
            layout="modelopt" if layout == "modelopt" else "compressed-tensors",
            seed=seed,
            on_progress=lambda done, total: line.show("Writing", done / MB, total / MB, "MB"),
        )
    except CheckpointError as fault:
        raise CommandError(fault.message) from fault
    except OSError as fault:
        raise CommandError(f"{folder} cannot be written: {fault.strerror or fault}.") from fault
    finally:
        line.clear()
    click.echo(f"{folder} holds {known.name} with random weights.")
    return 0
