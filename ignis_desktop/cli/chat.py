"""``ignis chat``: one answer, or a conversation."""

from __future__ import annotations

import sys
from contextlib import closing, suppress
from typing import Any

import click

from ignis_desktop.cli.errors import INTERRUPTED, CommandError
from ignis_desktop.cli.inputs import STANDARD_INPUT, image_uri, read_prompt
from ignis_desktop.cli.options import ConnectionOptions, connection_options
from ignis_desktop.cli.progress import prefill_shown
from ignis_desktop.cli.session import Session, connected

HELP = "/new starts over, /exit or Ctrl-D ends, Ctrl-C stops an answer."


@click.command(short_help="Chat: one answer, or a conversation.")
@click.argument("prompt", required=False)
@click.option(
    "--image", "images", multiple=True, metavar="FILE", help="A picture for the first prompt; may be repeated."
)
@click.option("--system", metavar="TEXT", help="System prompt.")
@click.option("--max-tokens", type=click.IntRange(min=1), help="Longest answer.")
@click.option("--temperature", type=click.FloatRange(0, 2), help="0 always takes the likeliest token.")
@click.option("--top-p", type=click.FloatRange(0, 1, min_open=True))
@click.option("--top-k", type=click.IntRange(min=0), help="0 keeps all.")
@click.option("--min-p", type=click.FloatRange(0, 1))
@click.option("--presence-penalty", type=click.FloatRange(-2, 2))
@click.option("--frequency-penalty", type=click.FloatRange(-2, 2))
@click.option("--repetition-penalty", type=click.FloatRange(0, min_open=True))
@click.option("--seed", type=int, help="Same seed, same answer.")
@click.option("--stop", multiple=True, metavar="TEXT", help="End the answer before this text; may be repeated.")
@click.option("--think/--no-think", "enable_thinking", default=None, help="Think before answering, if the model can.")
@connection_options
def chat(
    prompt: str | None, images: tuple[str, ...], system: str | None, connection: ConnectionOptions, **sampling: Any
) -> int:
    """Answer PROMPT ("-" reads standard input); without it, hold a conversation.

    The answer goes to standard output as it comes.
    """
    if prompt is None and not sys.stdin.isatty():
        prompt = STANDARD_INPUT
    asked = None if prompt is None else read_prompt(prompt)
    if asked is not None and not asked and not images:
        raise click.UsageError("The prompt is empty.")
    body = {name: value for name, value in sampling.items() if value is not None and value != ()}
    if "stop" in body:
        body["stop"] = list(body["stop"])
    history: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    pictures = [{"type": "image_url", "image_url": {"url": image_uri(name)}} for name in images]
    with connected(connection, "chat") as session:
        if asked is None:
            return _converse(session, body, history, pictures)
        _say(session, body, [*history, _user(asked, pictures)])
        return 0


def _user(text: str, pictures: list[dict[str, Any]]) -> dict[str, Any]:
    return {"role": "user", "content": [*pictures, {"type": "text", "text": text}] if pictures else text}


def _converse(
    session: Session, body: dict[str, Any], system: list[dict[str, Any]], pictures: list[dict[str, Any]]
) -> int:
    """Prompts from the terminal until its end; each is answered with all that was said before."""
    with suppress(ImportError):
        import readline  # noqa: F401 - input() edits lines and keeps a history once it is loaded
    click.echo(f"{session.engine_state().get('model', 'Ignis')}. {HELP}", err=True)
    history = list(system)
    while True:
        try:
            text = input("> ").strip()
        except EOFError:
            click.echo(err=True)
            return 0
        except KeyboardInterrupt:
            click.echo(err=True)
            return INTERRUPTED
        if text == "/exit":
            return 0
        if text == "/new":
            history = list(system)
        if not text or text == "/new":
            continue
        history.append(_user(text, pictures))
        pictures = []
        try:
            history.append({"role": "assistant", "content": _say(session, body, history)})
        except KeyboardInterrupt:
            click.echo(" [stopped]")
            history.pop()
        except CommandError as fault:
            click.echo(f"ignis: {fault.message}", err=True)
            history.pop()


def _say(session: Session, body: dict[str, Any], messages: list[dict[str, Any]]) -> str:
    """Stream one answer to standard output, its thoughts (on a terminal) dimmed to standard error. Returns its text."""
    answer: list[str] = []
    thinking = False
    request = {**body, "messages": messages, "stream": True}
    with prefill_shown(session) as prefill, closing(session.stream("/v1/chat/completions", request)) as events:
        for event in events:
            delta = event["choices"][0].get("delta", {}) if event.get("choices") else {}
            thought, text = delta.get("reasoning_content"), delta.get("content")
            if thought or text:
                prefill.stop()
            if thought and sys.stderr.isatty():
                thinking = True
                click.secho(thought, dim=True, nl=False, err=True)
            if text:
                if thinking:
                    thinking = False
                    click.echo("\n", err=True)
                answer.append(text)
                sys.stdout.write(text)
                sys.stdout.flush()
    sys.stdout.write("\n")
    sys.stdout.flush()
    return "".join(answer)
