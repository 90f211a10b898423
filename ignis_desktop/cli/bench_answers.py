"""``ignis bench answers``: how well lines, sentences, records and places on screens are found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ignis_desktop.cli.engine_process import engine_running
from ignis_desktop.cli.errors import FAULT
from ignis_desktop.cli.options import EngineOptions
from ignis_desktop.cli.progress import ProgressLine

if TYPE_CHECKING:
    from engine import Engine
    from ignis_desktop.bench.answers.run import Say

PEERS = ("bm25", "minilm", "quote")
FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


class Peers(click.ParamType[tuple[str, ...]]):
    """Names with commas between them."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        names = tuple(dict.fromkeys(part.strip() for part in str(value).split(",") if part.strip()))
        for name in names:
            if name not in PEERS:
                self.fail(f"{name!r} is not one of {', '.join(PEERS)}.", param, ctx)
        return names


@click.command()
@click.option(
    "--split", type=click.Choice(["tune", "test"]), default="test", show_default=True, help="Whose questions."
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(["log", "prose", "records", "screens"]),
    help="What is asked about; may be given several times.  [default: log, prose, records]",
)
@click.option("--against", type=Peers(), default=(), metavar="LIST", help="Beside it: bm25, minilm, quote (commas).")
@click.option("--limit", type=click.IntRange(1), help="At most so many questions of each kind.")
@click.option("--cases", type=FOLDER, help="Folder with questions.  [default: tests/data/answers of the checkout]")
@click.option("--failures/--no-failures", default=True, help="List every wrong answer.")
@click.option("--json", "json_path", type=FILE, help="Write every question and answer to this file.")
@click.option("--check", is_flag=True, help="Exit with 1 when a target is missed.")
@click.option("--model", metavar="NAME|DIR", help="Model to load (ignis models list).  [default: Ember]")
@click.option("--threads", type=click.IntRange(1, 1024), help="CPU threads.")
def answers(
    split: str,
    kinds: tuple[str, ...],
    against: tuple[str, ...],
    limit: int | None,
    cases: Path | None,
    failures: bool,
    json_path: Path | None,
    check: bool,
    model: str | None,
    threads: int | None,
) -> int:
    """Ask questions whose answers are known, of real logs, manuals, records and screens.

    \b
    bm25      words in common, for comparison
    minilm    sentence embeddings (all-MiniLM-L6-v2), when installed
    quote     the model itself writes the line out
    """
    from ignis_desktop.bench.machine import machine, machine_line
    from ignis_desktop.bench.report import write_json

    options = EngineOptions(model=model, threads=threads)
    about = machine()
    line = ProgressLine()
    result: dict[str, Any] = {"kind": "answers", "machine": about, "split": split}
    missed = False
    with engine_running(options) as engine:
        engine.wait_ready()
        try:
            if texts := tuple(kind for kind in kinds or ("log", "prose", "records") if kind != "screens"):
                missed |= _texts(engine, split, texts, against, limit or 0, cases, threads, failures, line.show, result)
            if "screens" in kinds:
                _screens(engine, limit or 0, failures, line.show, result)
        finally:
            line.clear()
        now = engine.snapshot()
        click.echo(f"{now.model}, {now.device}")
        result["engine"] = {"model": now.model, "device": now.device, "content_hash": engine.info.content_hash}
    click.echo(machine_line(about))
    if json_path is not None:
        write_json(json_path, result)
    return FAULT if check and missed else 0


def _texts(
    engine: Engine,
    split: str,
    kinds: tuple[str, ...],
    against: tuple[str, ...],
    limit: int,
    folder: Path | None,
    threads: int | None,
    failures: bool,
    say: Say,
    result: dict[str, Any],
) -> bool:
    """Asks about texts, prints what came of it; whether a target was missed."""
    from ignis_desktop.bench.answers import tables
    from ignis_desktop.bench.answers.cases import read_cases
    from ignis_desktop.bench.answers.run import run_cases

    run = run_cases(engine, read_cases(folder, split, kinds, limit), against, threads, say)
    click.echo(tables.report(run.asked, run.finders))
    click.echo()
    for note in run.notes:
        click.echo(f"  {note}")
    verdicts = tables.verdicts(run.asked)
    for verdict in verdicts:
        click.echo(f"  {verdict.line()}")
    if failures and (wrong := tables.failures(run.asked, "ignis", run.units)):
        click.echo(f"\nWrong answers\n{wrong}")
    result["figures"] = tables.figures(run.asked, run.finders)
    result["notes"] = run.notes
    result["asked"] = [asked.json() for asked in run.asked]
    return any(verdict.passed is False for verdict in verdicts)


def _screens(engine: Engine, limit: int, failures: bool, say: Say, result: dict[str, Any]) -> None:
    from ignis_desktop.bench.answers.screens import read_screens, run_screens, screens_failures, screens_report

    pointed = run_screens(engine, read_screens(None, limit), say)
    click.echo(screens_report(pointed))
    if failures and (wrong := screens_failures(pointed)):
        click.echo(f"\nWrong answers\n{wrong}")
    result["screens"] = [one.json() for one in pointed]
