"""``ignis decide``: a decide request from a file."""

from __future__ import annotations

import json
from typing import Any

import click

from ignis_desktop.cli.errors import CommandError
from ignis_desktop.cli.inputs import decode, label, read_bytes
from ignis_desktop.cli.options import ConnectionOptions, connection_options
from ignis_desktop.cli.progress import prefill_shown
from ignis_desktop.cli.session import connected


@click.command(short_help="Answer the typed questions of a request file.")
@click.argument("request", metavar="REQUEST.json")
@connection_options
def decide(request: str, connection: ConnectionOptions) -> int:
    """Answer the questions of REQUEST.json, a body of POST /v1/decide, and print the answer as JSON.

    "-" reads standard input. Exits with 1 when a question could not be answered.
    """
    text = decode(read_bytes(request))
    try:
        body = json.loads(text)
    except ValueError as fault:
        raise CommandError(f"{label(request)} is not JSON: {fault}.") from None
    if not isinstance(body, dict):
        raise CommandError(f'{label(request)} must hold an object: {{"state": …, "questions": {{id: question}}}}.')
    with connected(connection, "decide") as session, prefill_shown(session):
        answer = session.post_text("/v1/decide", text)  # as it was written: 1.10 stays 1.10
    click.echo(json.dumps(answer, ensure_ascii=False, indent=2))
    return _report(answer["answers"])


def _report(answers: dict[str, dict[str, Any]]) -> int:
    failed = {name: found["error"]["message"] for name, found in answers.items() if "error" in found}
    for name, message in failed.items():
        click.echo(f"ignis: question {name!r}: {message}", err=True)
    return 1 if failed else 0
