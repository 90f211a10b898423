"""Questions with their right answers, from a folder such as ``tests/data/answers``; its README tells the format."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import zstandard

from ignis_desktop.cli.errors import CommandError

Kind = Literal["log", "prose", "records"]
KINDS: tuple[Kind, ...] = ("log", "prose", "records")
SPLITS = ("tune", "test")
FOLDER = Path(__file__).resolve().parents[3] / "tests" / "data" / "answers"
"""Of a checkout; an installed program has none."""


@dataclass(frozen=True)
class Text:
    """What questions are asked about. ``source`` is where it comes from: all texts of one are in one split."""

    name: str
    path: Path
    kind: Kind
    split: str
    source: str

    def read(self) -> bytes:
        """Its bytes, unpacked."""
        data = self.path.read_bytes()
        if self.path.suffix == ".gz":
            return gzip.decompress(data)
        if self.path.suffix == ".zst":
            return zstandard.ZstdDecompressor().decompress(data)
        return data


@dataclass(frozen=True)
class Case:
    """One question. ``lines`` (from 1) or ``records`` (from 0) are all that answer it; none: nothing does.

    ``targets``: one of them stands in the sentence that answers. ``asks`` is set when the index answers, ``count``
    when it asks how many.
    """

    text: Text
    question: str
    lines: tuple[int, ...] = ()
    records: tuple[int, ...] = ()
    targets: tuple[str, ...] = ()
    asks: Literal["", "order", "time", "count"] = ""
    count: int | None = None

    @property
    def absent(self) -> bool:
        return not self.lines and not self.records


def read_cases(folder: Path | None, split: str = "test", kinds: Sequence[str] = KINDS, limit: int = 0) -> list[Case]:
    """The questions of a split in the order of their texts; ``limit``: at most so many of each kind, from all texts.

    Raises ``CommandError`` when there are none or they cannot be read.
    """
    folder = folder or FOLDER
    try:
        cases = [case for case in _all_cases(folder) if case.text.split == split and case.text.kind in kinds]
    except (OSError, ValueError, KeyError, TypeError) as fault:
        raise CommandError(
            f"No questions can be read from {folder} ({fault}). They come with the source checkout; --cases names "
            "another folder."
        ) from fault
    if limit:
        cases = [case for kind in KINDS for case in _spread([c for c in cases if c.text.kind == kind], limit)]
    if not cases:
        raise CommandError(f"{folder} has no such questions.")
    return cases


def _all_cases(folder: Path) -> list[Case]:
    texts = {}
    for source in _json(folder / "sources.json"):
        path = folder / source["text"]
        texts[source["text"]] = Text(source["text"], path, source["kind"], source["split"], source["source"])
    asked: list[dict[str, Any]] = _json(folder / "questions.json")
    logs = folder.parent / "logs" / "questions.json"
    if logs.exists():
        asked += [
            {"text": f"../logs/{row['log']}", "question": row["question"], "lines": row["lines"]} for row in _json(logs)
        ]
    by_text: dict[str, list[Case]] = {name: [] for name in texts}
    for row in asked:
        fields = {name: tuple(row.get(name, ())) for name in ("lines", "records", "targets")}
        case = Case(
            texts[row["text"]],
            row["question"],
            **fields,
            asks=row.get("asks", ""),
            count=row.get("count"),
        )
        by_text[row["text"]].append(case)
    return [case for cases in by_text.values() for case in cases]


def _spread(cases: list[Case], limit: int) -> list[Case]:
    """``limit`` of them at equal distances."""
    if len(cases) <= limit:
        return cases
    return [cases[i * len(cases) // limit] for i in range(limit)]


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
