"""Results as tables for people and as JSON for files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ignis_desktop.cli.errors import CommandError


@dataclass(frozen=True)
class Verdict:
    """A measured figure beside what was promised."""

    name: str
    measured: str
    target: str
    passed: bool | None
    """None: this run cannot tell; ``note`` says why."""
    note: str = ""

    @property
    def word(self) -> str:
        return {True: "pass", False: "FAIL", None: "not judged"}[self.passed]

    def line(self) -> str:
        note = f" ({self.note})" if self.note else ""
        return f"{self.word:<10} {self.name}: {self.measured}; target {self.target}{note}"


@dataclass
class ScenarioReport:
    """What one scenario showed."""

    name: str
    title: str
    seconds: float = 0.0
    tables: list[tuple[Sequence[str], list[Sequence[str]]]] = field(default_factory=list)
    """(headers, rows), for people."""
    facts: dict[str, Any] = field(default_factory=dict)
    """The same and more, for files."""
    verdicts: list[Verdict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def text(self) -> str:
        parts = [f"{self.name}: {self.title} ({self.seconds:.0f} s)"]
        parts += [table(headers, rows) for headers, rows in self.tables]
        parts += [f"  {note}" for note in self.notes]
        parts += [f"  {verdict.line()}" for verdict in self.verdicts]
        return "\n".join(parts)

    def json(self) -> dict[str, Any]:
        verdicts = [{**asdict(verdict), "verdict": verdict.word} for verdict in self.verdicts]
        return {
            "title": self.title,
            "seconds": round(self.seconds, 1),
            **self.facts,
            "notes": self.notes,
            "verdicts": verdicts,
        }


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], indent: str = "  ") -> str:
    """Columns as wide as their widest cell; the first is text, the others stand to the right."""
    widths = [max(len(row[column]) for row in [headers, *rows]) for column in range(len(headers))]

    def line(cells: Sequence[str]) -> str:
        first, *rest = (
            cell.ljust(width) if not column else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return (indent + "  ".join([first, *rest])).rstrip()

    return "\n".join(line(cells) for cells in [headers, *rows])


def milliseconds(seconds: float | None) -> str:
    """ "1,234" or "0.42"; "-" for nothing."""
    if seconds is None:
        return "-"
    value = seconds * 1e3
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Raises ``CommandError`` when the file cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    except OSError as fault:
        raise CommandError(f"{path} cannot be written: {fault.strerror or fault}.") from fault
