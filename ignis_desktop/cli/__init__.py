"""The command line ``ignis``: one file a command, each thin, heavy imports inside functions so that help is quick."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run ``ignis`` with the process's arguments and exit with its code."""
    try:
        from ignis_desktop.cli.entry import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # before the commands are there
        code = 130
    sys.exit(code)
