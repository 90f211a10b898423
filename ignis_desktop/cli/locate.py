"""``ignis locate``: the line of a text that answers a question."""

from __future__ import annotations

import json
from typing import Any

import click

from ignis_desktop.cli.errors import NOT_FOUND, CommandError
from ignis_desktop.cli.inputs import label, read_lines
from ignis_desktop.cli.options import ConnectionOptions, connection_options
from ignis_desktop.cli.progress import prefill_shown
from ignis_desktop.cli.session import Session, connected


@click.command(short_help="Find the line of a file that answers a question.")
@click.argument("file")
@click.argument("question")
@click.option("--kind", type=click.Choice(["auto", "log", "prose", "records"]), default="auto", help="How to cut FILE.")
@click.option("--top", type=click.IntRange(1, 5), default=1, show_default=True, help="How many candidates to print.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole answer as JSON.")
@connection_options
def locate(file: str, question: str, kind: str, top: int, as_json: bool, connection: ConnectionOptions) -> int:
    """Find the line of FILE that answers QUESTION and print LINE<TAB>text.

    FILE may be gzip or Zstandard data and in any Unicode encoding; "-" reads standard input. Lines count from 1.
    Exits with 3 when nothing in FILE answers.
    """
    if not question.strip():
        raise click.UsageError("The question is empty.")
    lines = read_lines(file)
    with connected(connection, "locate") as session, prefill_shown(session):
        answer = _ask(session, "\n".join(lines), question, kind, top)
    if as_json:
        click.echo(json.dumps(answer, ensure_ascii=False, indent=2))
        return 0 if answer["found"] else NOT_FOUND
    if not answer["found"]:
        raise CommandError(f"not found in {label(file)}", NOT_FOUND)
    for candidate in answer["ranking"][:top] if top > 1 else [answer]:
        click.echo(f"{candidate['line']}\t{_one_line(candidate['value'])}")
    return 0


def _ask(session: Session, text: str, question: str, kind: str, top: int) -> dict[str, Any]:
    """The answer to one ``locate`` question, in the shape of ``/v1/decide``. Raises ``CommandError``."""
    asked = {"type": "locate", "instructions": question, "kind": kind, "top": top}
    answer = session.post("/v1/decide", {"state": text, "questions": {"line": asked}})["answers"]["line"]
    if "error" in answer:
        raise CommandError(answer["error"]["message"])
    return answer


def _one_line(value: str) -> str:
    return " ".join(value.splitlines())
