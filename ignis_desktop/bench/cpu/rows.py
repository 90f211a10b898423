"""Rows of the CPU table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ignis_desktop.bench.report import table

HEADERS = ("measure", "ignis", "peer", "ratio", "target", "")


@dataclass(frozen=True)
class Row:
    """One figure. ``passed`` is None where this run cannot tell."""

    key: str
    name: str
    value: str
    target: str = ""
    passed: bool | None = None
    peer: str = ""
    ratio: float | None = None
    samples: Sequence[float] = ()
    peer_samples: Sequence[float] = ()
    note: str = ""

    @property
    def word(self) -> str:
        return {True: "pass", False: "FAIL", None: ""}[self.passed]

    def cells(self) -> list[str]:
        ratio = "" if self.ratio is None else f"{self.ratio:.2f} ×"
        return [self.name, self.value, self.peer, ratio, self.target, self.word]

    def json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "value": self.value,
            "peer": self.peer or None,
            "ratio": None if self.ratio is None else round(self.ratio, 3),
            "target": self.target or None,
            "passed": self.passed,
            "samples": [round(sample, 5) for sample in self.samples],
            "peer_samples": [round(sample, 5) for sample in self.peer_samples],
            "note": self.note or None,
        }


def rows_table(rows: Sequence[Row]) -> str:
    """All rows, their notes below."""
    notes = [f"  {row.name}: {row.note}" for row in rows if row.note]
    return "\n".join([table(HEADERS, [row.cells() for row in rows]), *notes])
