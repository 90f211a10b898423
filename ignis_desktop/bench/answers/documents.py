"""A text cut into what may answer, for those ways of finding that do not cut it themselves; and the words of both."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from ignis_desktop.bench.answers.cases import Case, Text

_WORD = re.compile(r"[^\W_]+")
_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9])")
_SUFFIX = re.compile(r"(?:ing|ed|es|s)$")
SAME_WORDS = 0.5
"""Share of a question's words in what answers from which it counts as asked in the same words."""
_STOPPED = """
a an the this that these those of to in on at by for from with without into over under after before and or nor
not no is are was were be been being am do does did done has have had having can could may might must shall should will
would it its he she they them their his her we us our you your i me my who whom whose which what when where why how
there here than then as if so but because while again once only very too more most any all some somebody someone
something anybody one ones line lines say says said saying record records entry show tell find time times first last
many often"""
STOP_WORDS = frozenset(_STOPPED.split())


@dataclass(frozen=True)
class Unit:
    """A line, sentence or record: ``line`` is its (first) line from 1, ``number`` its place from 0."""

    number: int
    line: int
    text: str


def units_of(text: Text, data: bytes) -> list[Unit]:
    """What of a text may answer; blank lines may not."""
    plain = data.decode("utf-8", "replace")
    if text.kind == "records":
        if plain.lstrip().startswith("["):
            rows = [json.dumps(row, ensure_ascii=False) for row in json.loads(plain)]
        else:
            rows = plain.splitlines()
        return [Unit(number, number + 1, row) for number, row in enumerate(rows)]
    lines = [(number, line) for number, line in enumerate(plain.split("\n"), 1) if line.strip()]
    if text.kind == "prose":
        lines = [(number, sentence) for number, line in lines for sentence in _SENTENCE.split(line)]
    return [Unit(place, number, line) for place, (number, line) in enumerate(lines)]


def words(text: str) -> list[str]:
    """Lower-case words and numbers."""
    return [word.lower() for word in _WORD.findall(text)]


def right(case: Case, line: int | None, number: int | None, value: str) -> bool:
    """Whether a candidate is one of the right ones."""
    if case.text.kind == "records":
        return number in case.records
    if line not in case.lines:
        return False
    if case.text.kind == "log":
        return True
    found = " ".join(value.split())
    return bool(found) and any(target in found or found in target for target in case.targets)


def overlap(question: str, answer: str) -> float:
    """Share of the question's words that stand in the answer, endings aside. A question of stop words alone: 0."""
    asked = {_stem(word) for word in words(question) if word not in STOP_WORDS}
    given = {_stem(word) for word in words(answer)}
    return len(asked & given) / len(asked) if asked else 0.0


def same_words(case: Case, units: list[Unit]) -> bool:
    """Whether a question is asked in the words of (one of) its answers."""
    answers = [unit.text for unit in units if right(case, unit.line, unit.number, unit.text)]
    return max((overlap(case.question, answer) for answer in answers), default=0.0) >= SAME_WORDS


def _stem(word: str) -> str:
    return _SUFFIX.sub("", word) if len(word) > 4 else word
