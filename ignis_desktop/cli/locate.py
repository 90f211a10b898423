"""``ignis locate``: the line of a text that answers a question."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from ignis_desktop.cli.errors import NOT_FOUND, CommandError
from ignis_desktop.cli.inputs import label, open_text
from ignis_desktop.cli.options import ConnectionOptions, connection_options
from ignis_desktop.cli.progress import ProgressLine, prefill_shown
from ignis_desktop.cli.session import connected, own_engine

if TYPE_CHECKING:
    from engine import Engine
    from engine.answers.fold.source import Source

SENT = 60 << 20
"""Bytes of a text that are sent to a running instance, whose requests have 64 MiB."""


@click.command(short_help="Find the line of a file that answers a question.")
@click.argument("file")
@click.argument("question")
@click.option("--kind", type=click.Choice(["auto", "log", "prose", "records"]), default="auto", help="How to cut FILE.")
@click.option("--top", type=click.IntRange(1, 5), default=1, show_default=True, help="How many candidates to print.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole answer as JSON.")
@connection_options
def locate(file: str, question: str, kind: str, top: int, as_json: bool, connection: ConnectionOptions) -> int:
    """Find the line of FILE that answers QUESTION and print LINE<TAB>text.

    FILE may be gzip or Zstandard data and in any Unicode encoding; "-" reads standard input. Lines count from 1. What
    of FILE was not read, and how many lines answer when QUESTION asks for that, is said on standard error.
    Exits with 3 when nothing in FILE answers.
    """
    if not question.strip():
        raise click.UsageError("The question is empty.")
    with open_text(file) as source, own_engine(connection) as engine:
        if engine is not None:
            answer = _answered(engine, source, question, kind, top)
        else:
            answer = _asked(connection, source, label(file), question, kind, top)
    if as_json:
        click.echo(json.dumps(answer, ensure_ascii=False, indent=2))
        return 0 if answer["found"] else NOT_FOUND
    if note := answer.get("note"):
        click.echo(note, err=True)
    if not answer["found"]:
        raise CommandError(f"not found in {label(file)}", NOT_FOUND)
    if "count" in answer:
        click.echo("1 line answers." if answer["count"] == 1 else f"{answer['count']:,} lines answer.", err=True)
    for candidate in answer["ranking"][:top]:
        click.echo(f"{candidate['line']}\t{_one_line(candidate['value'])}")
    return 0


def _answered(engine: Engine, source: Source, question: str, kind: str, top: int) -> dict[str, Any]:
    """By this process's own engine, which reads the file where it lies."""
    from engine.answers.locate import locate as located
    from engine.messages import EngineError
    from ignis_desktop.server.locate_json import locate_json

    line = ProgressLine()

    def reading(done: int, total: int) -> None:
        line.show("Reading", done, total, "tokens")

    def folding(done: int, total: int) -> None:
        line.show("Folding", done / 1e6, total / 1e6, "MB")

    try:
        return locate_json(
            located(engine, source, question, kind=kind, top=top, on_progress=reading, on_fold=folding, client="locate")
        )
    except EngineError as fault:
        raise CommandError(fault.message) from fault
    finally:
        line.clear()


def _asked(
    connection: ConnectionOptions, source: Source, name: str, question: str, kind: str, top: int
) -> dict[str, Any]:
    """By a server, to which the text is sent. Raises ``CommandError``."""
    if source.size > SENT:
        raise CommandError(
            f"{name} has {source.size / 2**20:,.0f} MiB; up to {SENT >> 20} MiB are sent to a running instance. With "
            "an engine option, for instance --lanes 1, the command loads a model of its own and reads the file itself."
        )
    asked = {"type": "locate", "instructions": question, "kind": kind, "top": top}
    with connected(connection, "locate") as session, prefill_shown(session):
        answers = session.post("/v1/decide", {"state": source.text(), "questions": {"line": asked}})["answers"]
    answer: dict[str, Any] = answers["line"]
    if "error" in answer:
        raise CommandError(answer["error"]["message"])
    return answer


def _one_line(value: str) -> str:
    return " ".join(value.splitlines())
