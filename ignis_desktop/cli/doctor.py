"""``ignis doctor``: what this machine has, and what to do about each fault."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from ignis_desktop.cli.errors import FAULT

SIGNS = {"ok": click.style("ok   ", fg="green"), "note": "note ", "fault": click.style("FAULT", fg="red", bold=True)}


@click.command(short_help="Check this machine; say what to do about faults.")
@click.option("--json", "as_json", is_flag=True, help="Print a list of checks as JSON.")
def doctor(as_json: bool) -> int:
    """Check this machine: GPU, driver, PyTorch, Qt, display, ports, Ember's files.

    Exits with 1 when there is a fault; each comes with what to do about it.
    """
    from ignis_desktop.cli.checks import run_checks

    faults = 0
    done = []
    for check in run_checks():
        faults += check.status == "fault"
        done.append(asdict(check))
        if not as_json:
            click.echo(f"{SIGNS[check.status]} {check.name + ':':<14} {check.found}")
            if check.advice:
                click.echo(f"{'':<21}→ {check.advice}")
    if as_json:
        click.echo(json.dumps(done, ensure_ascii=False, indent=2))
    return FAULT if faults else 0
