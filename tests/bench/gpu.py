"""The card's table, kept in results: python -m tests.bench.gpu [OPTIONS OF ignis bench gpu]."""

from __future__ import annotations

import sys

from ignis_desktop.cli import entry
from tests.bench.results import result_file

if __name__ == "__main__":
    sys.exit(entry.run(["bench", "gpu", "--json", str(result_file("gpu")), *sys.argv[1:]]))
