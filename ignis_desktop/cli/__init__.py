"""The command line ``ignis``: one file a command, each thin, heavy imports inside functions so that help is quick."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run ``ignis`` with the process's arguments and exit with its code."""
    # Read when torch is loaded. By default idle OpenMP threads spin for their next piece of work; as soon as other
    # programs want the processor too, that makes a round many times slower (60 tokens beside ten busy processes on two
    # cores: 28 s spinning, 2.3 s sleeping).
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from ignis_desktop.cli.entry import run

    sys.exit(run(sys.argv[1:]))
