"""What became of questions, counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ignis_desktop.bench.answers.cases import KINDS, Case
from ignis_desktop.bench.answers.documents import right
from ignis_desktop.bench.answers.finders import Outcome
from ignis_desktop.bench.stats import median

WORDINGS = ("same words", "other words")
NAMES = {"log": "logs", "prose": "prose", "records": "records"}


@dataclass(frozen=True)
class Asked:
    """A question, what a finder said, and how long that took. ``place``: of the right answer in its ranking, from 0."""

    finder: str
    case: Case
    wording: str
    outcome: Outcome
    seconds: float
    first: bool
    """The first question about its text, whose opening is in ``seconds`` too."""

    @property
    def place(self) -> int | None:
        for place, candidate in enumerate(self.outcome.ranking):
            if right(self.case, candidate.line, candidate.number, candidate.value):
                return place
        return None

    @property
    def correct(self) -> bool:
        """Whether a person would be content with it: the right place first, the right number, or no answer."""
        if self.case.absent:
            return not self.outcome.found
        if self.case.asks == "count":
            return self.outcome.count == self.case.count
        return self.place == 0

    @property
    def lost(self) -> bool:
        """An answer that there is was said not to be there."""
        return not self.case.absent and not self.outcome.found

    def json(self) -> dict[str, Any]:
        best = self.outcome.ranking[0] if self.outcome.ranking else None
        return {
            "finder": self.finder,
            "text": self.case.text.name,
            "question": self.case.question,
            "wording": self.wording,
            "asks": self.case.asks,
            "lines": list(self.case.lines[:5]),
            "records": list(self.case.records[:5]),
            "count": self.case.count,
            "correct": self.correct,
            "place": self.place,
            "found": self.outcome.found,
            "got_count": self.outcome.count,
            "got_line": best.line if best else None,
            "got_record": best.number if best else None,
            "got": best.value[:300] if best else "",
            "fault": self.outcome.fault,
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True)
class Share:
    """``right`` of ``of``; of nothing, no share."""

    right: int
    of: int

    @classmethod
    def where(cls, flags: Iterable[bool]) -> Share:
        seen = list(flags)
        return cls(sum(seen), len(seen))

    @property
    def value(self) -> float | None:
        return self.right / self.of if self.of else None

    def __str__(self) -> str:
        return f"{self.right / self.of:.0%}" if self.of else "-"

    def json(self) -> dict[str, int]:
        return {"right": self.right, "of": self.of}


def found_first(asked: Sequence[Asked], finder: str, kind: str, wording: str) -> tuple[Share, Share]:
    """Of questions that name a place: right first, and among five."""
    of = [a for a in asked if _is(a, finder, kind) and not a.case.absent and not a.case.asks and a.wording == wording]
    return Share.where(a.place == 0 for a in of), Share.where(a.place is not None for a in of)


def by_index(asked: Sequence[Asked], finder: str, asks: str) -> Share:
    return Share.where(a.correct for a in asked if a.finder == finder and a.case.asks == asks)


def judged(asked: Sequence[Asked], finder: str, kind: str) -> tuple[Share, Share]:
    """Absent ones said to be absent; present ones said to be absent."""
    of = [a for a in asked if _is(a, finder, kind)]
    return Share.where(not a.outcome.found for a in of if a.case.absent), Share.where(
        a.lost for a in of if not a.case.absent
    )


def seconds(asked: Sequence[Asked], finder: str, kind: str) -> tuple[float | None, float | None, float | None]:
    """Median of the first questions, median and maximum of the next ones. Questions that found no room do not count."""
    of = [a for a in asked if _is(a, finder, kind) and not a.outcome.fault]
    first, then = [a.seconds for a in of if a.first], [a.seconds for a in of if not a.first]
    return (
        median(first) if first else None,
        median(then) if then else None,
        max(then) if then else None,
    )


def kinds_of(asked: Sequence[Asked]) -> list[str]:
    return [kind for kind in KINDS if any(a.case.text.kind == kind for a in asked)]


def _is(asked: Asked, finder: str, kind: str) -> bool:
    return asked.finder == finder and asked.case.text.kind == kind
