"""``ignis`` without a command: the window, or the server where no window can be shown."""

from __future__ import annotations

import click

from ignis_desktop.cli.options import EngineOptions, engine_options


@click.command(short_help="Open the window: what ignis does without a command.")
@engine_options
def window(engine_options: EngineOptions) -> int:
    """Open the window; on a machine with no display, say so and serve."""
    from ignis_desktop.cli.display import missing_display

    reason = missing_display()
    if reason is None:
        from ignis_desktop import app

        return app.main(engine_options.config())
    from ignis_desktop.cli.serve import serve_until_stopped

    click.echo(f"{reason} Serving without a window.", err=True)
    return serve_until_stopped(engine_options)
