"""``ignis models``: which models are here, and whether a checkpoint is sound."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from ignis_desktop.cli.errors import FAULT, CommandError
from ignis_desktop.cli.progress import ProgressLine

MB = 1e6


@click.group()
def models() -> None:
    """List the models that are here, or verify one."""


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
