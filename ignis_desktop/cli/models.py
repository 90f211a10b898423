"""``ignis models``: which models are here, and whether a checkpoint is sound."""

from __future__ import annotations

import click

MIB = 1024**2


@click.group()
def models() -> None:
    """List the models that are here, or verify a checkpoint."""


@models.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a list as JSON.")
def list_models(as_json: bool) -> int:
    """List the built-in model and the checkpoints in the models folder."""
