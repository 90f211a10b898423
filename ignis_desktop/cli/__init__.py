"""The command line ``ignis``: one file a command, each thin, heavy imports inside functions so that help is quick."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run ``ignis`` with the process's arguments and exit with its code."""
    from ignis_desktop.cli.entry import run

    sys.exit(run(sys.argv[1:]))
