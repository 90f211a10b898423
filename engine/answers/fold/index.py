"""What a question says about time, order and number, so that the fold's index answers it and no model guesses.

When did the replica first lose its connection after 14:02?
  order 1, window after 14:02, remaining "When did the replica lose its connection?"
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.answers.fold.levels import NAMES, Level
from engine.answers.fold.moments import Moment, read_moment, straightened
from engine.answers.fold.wording import (
    BACK,
    BOTH,
    COUNT,
    DURATION,
    EMPTY,
    FIRST,
    LENGTHS,
    LEVEL,
    NTH,
    NUMBERS,
    OF_LEVEL,
    QUOTED,
    RANGE,
    RELATIONS,
    SINGLE,
    TAKES,
    VERB_LAST,
    WORDS,
    Relation,
)


@dataclass(frozen=True)
class Window:
    """``end`` is given with "between" alone. "after" and "before" leave the moment itself out."""

    relation: Relation
    start: Moment
    end: Moment | None = None


@dataclass(frozen=True)
class Span:
    """The first or last part of the log, in microseconds."""

    length: int
    from_end: bool


@dataclass(frozen=True)
class Restriction:
    """``order``: 1 is the first that fits, 2 the second, -1 the last; ``take``: how many from there on.

    ``remaining`` is the question without what the index answers. ``bare``: nothing is left in it to look for, as in
    "What happened at 14:02?". ``level``: nothing but this is looked for, as in "What was the last error?".
    """

    remaining: str
    order: int | None = None
    take: int = 1
    window: Window | Span | None = None
    count: bool = False
    bare: bool = False
    level: Level | None = None

    @property
    def empty(self) -> bool:
        return self.order is None and self.window is None and not self.count


def read_question(question: str) -> Restriction:
    """What a question restricts. Words between quotes belong to what is looked for."""
    text = _Text(question)
    count = text.take(COUNT) is not None
    span = _span(text)
    window, near = (None, None) if span else _window(text)
    order, take = _order(text)
    if order is None and near is not None and window is not None:
        order = -1 if window.relation in ("before", "until") else 1
    remaining = text.remaining()
    bare, level = _nothing_but(remaining)
    return Restriction(remaining, order, take, span or window, count, bare, level)


_CUT = "\x01"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class _Text:
    """A question that is read piece by piece; what was read or stands between quotes is not read again."""

    def __init__(self, question: str) -> None:
        self._text = " ".join(_CONTROL.sub(" ", question).split())
        # Of the same length, so that places agree.
        self._open = QUOTED.sub(lambda match: "\0" * len(match.group()), straightened(self._text))

    def search(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        return pattern.search(self._open)

    def matches(self, pattern: re.Pattern[str]) -> list[re.Match[str]]:
        return list(pattern.finditer(self._open))

    def cut(self, match: re.Match[str]) -> None:
        start, end = match.span()
        self._text = self._text[:start] + _CUT * (end - start) + self._text[end:]
        self._open = self._open[:start] + _CUT * (end - start) + self._open[end:]

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = self.search(pattern)
        if match is not None:
            self.cut(match)
        return match

    def remaining(self) -> str:
        """The question without what was cut, and without the commas that stood there."""
        if _CUT not in self._text:
            return self._text
        text = re.sub(rf"\s*{_CUT}+\s*", " ", self._text)
        text = re.sub(r"\s+([?.,;!])", r"\1", " ".join(text.split()))
        return re.sub(r"^[,;:]\s*|\s*[,;:]+(?=\?|$)", "", text).strip()


def _span(text: _Text) -> Span | None:
    match = text.search(DURATION)
    if match is None or (match["number"] or "a").lower() == "few":
        return None
    word = (match["number"] or "1").lower()
    number = float(word) if word.isdigit() else float(NUMBERS[word])
    if not match["number"] and match["which"].lower() != "first":
        return None  # "the last hour" is a time of the asker's clock
    text.cut(match)
    return Span(int(number * LENGTHS[match["unit"][0].lower()]), match["which"].lower() != "first")


def _window(text: _Text) -> tuple[Window | None, str | None]:
    for match in text.matches(RANGE):
        start, end = read_moment(match["a"] or match["c"]), read_moment(match["b"] or match["d"])
        if start is not None and end is not None:
            text.cut(match)
            return Window("between", start.on(end), end.on(start)), None
    for match in text.matches(SINGLE):
        moment = read_moment(match["m"] or match["alone"])
        if moment is None:
            continue
        relation: Relation = next((name for name, _ in RELATIONS if match[name]), "at")
        text.cut(match)
        return Window(relation, moment), match["near"]
    return None, None


def _order(text: _Text) -> tuple[int | None, int]:
    verb = text.search(VERB_LAST)
    if text.search(BOTH):
        return None, 1
    back = text.take(BACK)
    if back is not None:
        nth = (back["nth"] or "second").lower()
        return -int({"2nd": 2, "3rd": 3, "4th": 4}.get(nth) or WORDS[nth]), 1
    found = [m for m in text.matches(FIRST) if not (verb and m["last"] and m.start("last") >= verb.end() - 4)]
    sides = {bool(match["last"] or match["final"]) for match in found}
    if len(sides) == 1:
        match = found[0]
        text.cut(match)
        take = (match["take"] or "1").lower()
        return (-1 if sides.pop() else 1), int(TAKES.get(take) or take)
    if sides:
        return None, 1  # the first of something and the last of something
    nth_match = text.take(NTH)
    if nth_match is not None:
        return int(nth_match["number"] or WORDS[nth_match["word"].lower()]), 1
    return None, 1


def _nothing_but(remaining: str) -> tuple[bool, Level | None]:
    """Whether nothing is left to look for, and the level that is all that is left."""
    words = [word for word in re.findall(r"[^\W_]+", remaining) if not EMPTY.fullmatch(word)]
    named = [word for word in words if not OF_LEVEL.fullmatch(word)]
    levels = {NAMES[found["name"].lower()] if (found := LEVEL.fullmatch(word)) else None for word in named}
    return not words, levels.pop() if len(levels) == 1 else None
