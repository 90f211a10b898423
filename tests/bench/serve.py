"""The serving promises, kept in results: python -m tests.bench.serve --all [OPTIONS OF ignis bench serve].

Ember answers in all scenarios but the soak: its ten thousand requests go to a random model that is so small that they
take two minutes instead of twenty. What may leak is the same, and the soak of Ember is
``ignis bench serve --scenario soak --max-context 1K``. Without --all this is ``ignis bench serve``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from ignis_desktop.cli import entry
from tests.bench.results import result_file
from tests.tiny import write_tiny

TRACE = Path(__file__).resolve().parents[1] / "data" / "traces" / "agents.jsonl"
SCENARIOS = ("lanes", "flood", "turns", "siblings", "poisson", "trace", "connections")
SECONDS = "30"
SPEED = "8"
"""The trace was recorded on a busy machine, where its agents waited long for their answers."""
SOAK_CONTEXT = 1024


def main(arguments: list[str]) -> int:
    if "--all" not in arguments:
        return entry.run(["bench", "serve", *arguments])
    rest = [argument for argument in arguments if argument != "--all"]
    chosen = [part for name in SCENARIOS for part in ("--scenario", name)]
    status = entry.run(
        [
            "bench",
            "serve",
            *chosen,
            "--trace",
            str(TRACE),
            "--speed",
            SPEED,
            "--seconds",
            SECONDS,
            "--json",
            str(result_file("serve")),
            *rest,
        ]
    )
    with tempfile.TemporaryDirectory() as folder:
        tiny = write_tiny(Path(folder) / "tiny", context=SOAK_CONTEXT)
        soak = ["--scenario", "soak", "--model", str(tiny), "--json", str(result_file("soak"))]
        return max(status, entry.run(["bench", "serve", *soak, *rest]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
