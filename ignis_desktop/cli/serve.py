"""``ignis serve``: the local server without a window."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from ignis_desktop.cli.errors import CommandError
from ignis_desktop.cli.options import EngineOptions, engine_options
from ignis_desktop.cli.plan_table import MIB, plan_lines
from ignis_desktop.cli.progress import ProgressLine
from ignis_desktop.cli.session import KEY_VARIABLE

if TYPE_CHECKING:
    from engine import Engine
    from engine.messages import MemoryPlan

LOADING_POLL_SECONDS = 0.05
SERVING_POLL_SECONDS = 0.5


@click.command(short_help="Serve the API without a window.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 takes any free port.")
@click.option(
    "--api-key", envvar=KEY_VARIABLE, show_envvar=True, help="Key clients must send; needed beyond this machine."
)
@click.option(
    "--allowed-host", "allowed_hosts", multiple=True, metavar="NAME", help="Accept this name in the Host header."
)
@click.option("--cors-origin", "cors_origins", multiple=True, metavar="ORIGIN", help="Let this origin's pages call.")
@click.option("--accept-any-model", is_flag=True, help="Answer for the loaded model whatever model a request names.")
@click.option("--fetch-images", is_flag=True, help="Fetch pictures that requests name by a public web address.")
@click.option("--capture/--no-capture", default=True, show_default=True, help="Let clients capture this screen.")
@engine_options
def serve(engine_options: EngineOptions, **settings: Any) -> int:
    """Serve the API until interrupted.

    Prints the memory plan line by line while the model loads.
    """
    return serve_until_stopped(engine_options, **settings)


def serve_until_stopped(options: EngineOptions, **settings: Any) -> int:
    """What ``ignis serve`` does, and ``ignis`` where there is no display. ``settings`` are fields of ``Settings``.

    Returns 0 after SIGTERM; raises ``CommandError`` when it cannot serve, ``KeyboardInterrupt`` after Ctrl-C.
    """
    from ignis_desktop.cli.engine_process import Terminated, engine_running, server_running, terminate_raises
    from ignis_desktop.server.settings import ServerError, Settings

    try:
        chosen = Settings(**settings)
    except ServerError as fault:
        raise CommandError(str(fault)) from fault
    try:
        # The server listens while the model loads: clients get 503 with Retry-After, not a refused connection.
        with terminate_raises(), engine_running(options) as engine, server_running(engine, chosen) as server:
            _show_loading(engine)
            now = engine.snapshot()
            click.echo(f"Serving {now.model} ({now.device}) at {server.url}/v1, stop with Ctrl-C", err=True)
            while engine.snapshot().state == "ready" and server.running:
                time.sleep(SERVING_POLL_SECONDS)
            raise CommandError(engine.snapshot().reason or "The server ended.")
    except Terminated:
        return 0


def _show_loading(engine: Engine) -> None:
    """The memory plan as soon as there is one, then progress, until the engine is ready. Raises ``CommandError``."""
    line = ProgressLine()
    planned = False
    try:
        while (now := engine.snapshot()).state != "ready":
            if now.state in ("failed", "closed"):
                raise CommandError(now.reason or "The engine was closed while loading.")
            if now.memory_plan is not None and not planned:
                planned = True
                _print_plan(now.memory_plan)
            if now.progress is not None:
                line.show(f"Loading {now.model}", 100 * now.progress, 100)
            time.sleep(LOADING_POLL_SECONDS)
    finally:
        line.clear()
    if not planned and now.memory_plan is not None:
        _print_plan(now.memory_plan)


def _print_plan(plan: MemoryPlan) -> None:
    memory = "GPU memory" if plan.kind == "vram" else "memory"
    click.echo(f"Memory plan: {plan.total / MIB:,.0f} MiB of {plan.budget / MIB:,.0f} MiB {memory}", err=True)
    for line in plan_lines(plan):
        click.echo(line, err=True)
