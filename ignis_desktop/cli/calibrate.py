"""``ignis calibrate``: choose the heads of a model that point and locate."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from ignis_desktop.cli.engine_process import engine_running
from ignis_desktop.cli.errors import CommandError
from ignis_desktop.cli.options import EngineOptions
from ignis_desktop.cli.progress import ProgressLine

if TYPE_CHECKING:
    from engine.answers.calibrate import Calibration, Figures

MATERIAL = click.IntRange(5, 1000)
"""Five folds need at least five scenes and texts."""


@click.command(short_help="Choose the heads of a model that point and locate.")
@click.option("--model", metavar="NAME|DIR", help="Model to calibrate (ignis models list).  [default: Ember]")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), help="Where to compute.")
@click.option("--threads", type=click.IntRange(1, 1024), help="CPU threads.")
@click.option("--only", type=click.Choice(["point", "line"]), help="Choose heads for points, or for lines, only.")
@click.option("--scenes", type=MATERIAL, default=40, show_default=True, help="Screens to draw.")
@click.option("--texts", type=MATERIAL, default=36, show_default=True, help="Texts to make.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Other material for another one.")
@click.option(
    "--out", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write here, not beside the model."
)
@click.option("--force", is_flag=True, help="Replace lists of these weights; write lists no better than chance.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def calibrate(
    model: str | None,
    device: str | None,
    threads: int | None,
    only: Literal["point", "line"] | None,
    scenes: int,
    texts: int,
    seed: int,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> int:
    """Choose the attention heads of a model that point at things on screens and find lines in texts.

    Screens and texts with known answers are made here; every head is scored by its attention on what answers, lists
    of the best are compared, and the figures printed are of questions that had no say in the choice (five folds). The
    lists are written to heads.json beside the model, with the hash of its weights.
    """
    from engine.answers.calibrate import calibrate as choose
    from engine.answers.calibrate import heads_file, write_heads
    from engine.answers.heads import read_heads
    from engine.checkpoint import CheckpointError
    from engine.checkpoint.catalogue import resolve_model
    from engine.messages import EngineError

    options = EngineOptions(model=model, device=device, threads=threads)
    line = ProgressLine()
    try:
        target = out or heads_file(resolve_model(options.config().model).path)
        with engine_running(options) as engine:
            engine.wait_ready(None, lambda now: line.show("Loading", 100 * (now.progress or 0.0), 100))
            theirs = engine.info.content_hash, None
            if target.is_file() and not force and read_heads(target).weights in theirs:
                raise CommandError(
                    f"{target} holds lists for these weights already; --force replaces them, --out writes elsewhere."
                )
            found = choose(
                engine,
                subjects=("point", "line") if only is None else (only,),
                scenes=scenes,
                texts=texts,
                seed=seed,
                on_step=lambda what, done, total: line.show(f"Reading {what}", done, total, what),
            )
            line.clear()
            _show(found, as_json)
            if found.worthless and not force:
                raise CommandError(
                    f"No head of {engine.info.name} does better than chance at {' and '.join(found.worthless)}; "
                    "nothing was written (--only chooses for the other alone, --force writes all the same)."
                )
            write_heads(found, engine, target)
    except (EngineError, CheckpointError) as fault:
        raise CommandError(fault.message) from fault
    finally:
        line.clear()
    click.echo(f"Written to {target}.", err=True)
    return 0


def _show(found: Calibration, as_json: bool) -> None:
    if as_json:
        lists = {name: {**asdict(found.figures[name]), **_list(found, name)} for name in found.readouts}
        click.echo(json.dumps(lists, indent=2))
        return
    for name, figures in found.figures.items():
        click.echo(f"{name}: {_words(found, name)}")
        click.echo(
            f"  right {figures.right:.1%} of {figures.questions} held-out questions, by chance {figures.chance:.1%}"
            f" (folds {', '.join(f'{share:.0%}' for share in figures.folds)})"
        )
        click.echo(f"  {_refusals(figures)}")


def _list(found: Calibration, name: str) -> dict[str, Any]:
    readout = found.readouts[name]
    return {
        "combine": readout.combine,
        "heads": readout.heads,
        "anchor": readout.anchor,
        "scale": readout.scale,
        "nothing": readout.nothing,
        "found_threshold": readout.found_threshold,
    }


def _words(found: Calibration, name: str) -> str:
    readout = found.readouts[name]
    layers = ", ".join(map(str, readout.layers))
    anchor = f", anchor {readout.anchor[1]} of layer {readout.anchor[0]}" if readout.anchor is not None else ""
    heads = f"{len(readout.heads)} heads" if len(readout.heads) > 1 else "one head"
    return f"{heads} of layer{'s' if len(readout.layers) > 1 else ''} {layers}, combined by {readout.combine}{anchor}"


def _refusals(figures: Figures) -> str:
    if figures.absent_refused is None:
        return "nothing tells reliably what is not there: every question gets an answer"
    return (
        f"refused {figures.absent_refused:.1%} of {figures.absent} questions about what is not there, "
        f"and {figures.present_refused:.1%} of the others"
    )
