"""The CPU table with its peer, kept in results: python -m tests.bench.cpu [OPTIONS OF ignis bench cpu]."""

from __future__ import annotations

import sys

from ignis_desktop.cli import entry
from tests.bench.results import result_file

if __name__ == "__main__":
    sys.exit(entry.run(["bench", "cpu", "--peer", "transformers", "--json", str(result_file("cpu")), *sys.argv[1:]]))
