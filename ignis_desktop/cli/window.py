"""``ignis`` without a command: the window, or the server where no window can be shown."""

from __future__ import annotations

from dataclasses import replace

import click

from ignis_desktop.cli.errors import CommandError
from ignis_desktop.cli.options import EngineOptions, engine_options


@click.command(short_help="Open the window: what ignis does without a command.")
@engine_options
def window(engine_options: EngineOptions) -> int:
    """Open the window; on a machine with no display, say so and serve.

    Options given here replace what is set in the window.
    """
    from ignis_desktop.cli.display import missing_display

    reason = missing_display()
    if reason is not None:
        click.echo(f"{reason} Serving without a window.", err=True)
        return _serve_as_the_window_would(engine_options)
    from engine.messages import EngineError

    try:
        config = engine_options.config() if engine_options.any_given else None
    except EngineError as fault:
        raise CommandError(fault.message) from fault
    from ignis_desktop.app import run_app

    return run_app(config=config)


def _serve_as_the_window_would(options: EngineOptions) -> int:
    """The server with the address, key and engine that are set in the window."""
    from ignis_desktop.cli.serve import serve_until_stopped
    from ignis_desktop.store.settings import SettingsFile

    values = SettingsFile().values
    stored = EngineOptions(
        model=values.model or None,
        lanes=values.lanes,
        max_context=values.max_context,
        threads=values.threads,
        kv_format=values.kv_format or None,
        yarn=values.yarn,
        headroom=None if values.headroom is None else values.headroom << 20,
        host_tier=None if values.host_tier is None else values.host_tier << 20,
    )
    given = {name: value for name, value in vars(options).items() if value is not None}
    return serve_until_stopped(
        replace(stored, **given),
        host=values.host,
        port=values.port,
        api_key=values.api_key or None,
        cors_origins=("*",) if values.cors else (),
        capture=values.capture,
    )
