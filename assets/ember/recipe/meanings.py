"""Sentences of manuals, letters, contracts, stories … with questions in other words (``written/meanings``), among other
sentences that could be meant."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from .logs import FORMATS, Document, Line
from .values import SERVICES
from .wordings import reworded
from .written import is_unseen, subjects

SUBJECT = 0.7
"""Share of the documents whose written sentences are of one file."""


@dataclass(frozen=True)
class Meaning:
    """A sentence and questions that it alone answers; the last of them is asked when measuring only."""

    subject: str
    text: str
    questions: tuple[str, ...]

    @cached_property
    def unseen(self) -> bool:
        """Whether training never sees it."""
        return is_unseen(self.text)

    def question(self, rng: random.Random, held_out: bool) -> str:
        if held_out:
            return self.questions[-1]
        return reworded(rng, rng.choice(self.questions[:-1]), 0.15, log=False)


@lru_cache
def meanings(*, held_out: bool = False) -> tuple[Meaning, ...]:
    """Those that training sees, or with ``held_out`` all; none where none are written."""
    found = []
    for subject, rows in subjects("meanings").items():
        for text, questions in (row.split(" | ") for row in rows):
            found.append(Meaning(subject, text.strip(), tuple(q.strip() for q in questions.split(";"))))
    return tuple(meaning for meaning in found if held_out or not meaning.unseen)


def _neighbours(rng: random.Random, known: Sequence[Meaning], count: int) -> list[Meaning]:
    """``count`` sentences, most often of one file and then half of the time such as stand next to each other there,
    because those are alike."""
    if rng.random() < SUBJECT:
        subject = rng.choice(known).subject
        known = [meaning for meaning in known if meaning.subject == subject]
        if rng.random() < 0.5:
            start = rng.randrange(max(1, len(known) - count + 1))
            return list(known[start : start + count])
    return rng.sample(known, min(count, len(known)))


def _laid_out(rng: random.Random, texts: list[str]) -> list[str]:
    """Texts as lines of prose, of a list, or of a log."""
    way = rng.random()
    if way < 0.6:
        return texts
    if way < 0.75:
        mark = rng.choice(("{n}. ", "- ", "* ", "[{n}] ", "{n}) ", "> ", "\t"))
        return [f"{mark.format(n=n)}{text}" for n, text in enumerate(texts, rng.choice((1, 1, rng.randint(2, 900))))]
    style, when = rng.choice(list(FORMATS.values())), rng.randint(1_500_000_000, 1_800_000_000)
    services = rng.sample(SERVICES, 3)
    levels = ("info", "info", "warn", "error")
    return [
        style(Line(when + 17 * n, 7 * n % 1000, "host", rng.choice(services), 100 + n, rng.choice(levels), text))
        for n, text in enumerate(texts)
    ]


def meaning_document(
    rng: random.Random, count: int, others: Sequence[str], *, wanted: int, held_out: bool = False
) -> Document:
    """``count`` lines, some or all of them written sentences and the rest from ``others``, with up to ``wanted``
    questions. Raises ``ValueError`` where nothing is written."""
    known = meanings(held_out=held_out)
    if not known:
        raise ValueError("Nothing lies in written/meanings.")
    own = max(1, round(count * rng.choice((0.3, 0.6, 1.0)))) if others else count
    inside = _neighbours(rng, known, own)
    filled = rng.sample(others, min(len(others), max(0, count - len(inside))))
    meant: list[tuple[str, Meaning | None]] = [(meaning.text, meaning) for meaning in inside]
    meant += [(text, None) for text in filled]
    rng.shuffle(meant)
    document = Document(_laid_out(rng, [text for text, _ in meant]))
    asked = [(index, meaning) for index, (_, meaning) in enumerate(meant) if meaning]
    for index, meaning in rng.sample(asked, min(len(asked), wanted)):
        document.questions.append((meaning.question(rng, held_out), index))
    there = set(inside)
    outside = [meaning for meaning in known if meaning not in there]
    alike = [meaning for meaning in outside if meaning.subject == inside[0].subject] or outside
    for meaning in rng.sample(alike, min(len(alike), max(1, wanted // 6))):
        document.questions.append((meaning.question(rng, held_out), None))
    rng.shuffle(document.questions)
    return document
