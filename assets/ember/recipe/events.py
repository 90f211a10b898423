"""The kinds of events that logs are made of (``written/events``), and which of them stand in one log."""

from __future__ import annotations

import random
import string
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from .written import is_unseen, rows

ALONE = 0.15
"""Share of the logs whose events are of any areas; those of the others belong together."""


def slots_of(text: str) -> frozenset[str]:
    """Names of the slots of a message or question. Raises ``ValueError`` for single braces."""
    return frozenset(name for _, name, _, _ in string.Formatter().parse(text) if name)


@dataclass(frozen=True)
class Event:
    """One kind of event. The last of its questions is asked when measuring only."""

    level: str
    area: str
    message: str
    questions: tuple[str, ...]

    @cached_property
    def slots(self) -> frozenset[str]:
        """Names of what varies in its message."""
        return slots_of(self.message)

    @cached_property
    def unseen(self) -> bool:
        """Whether training never sees it."""
        return is_unseen(self.message)

    def question(self, rng: random.Random, held_out: bool) -> str:
        """One of its questions, for training or for measuring: any of an unseen event's, or else its last."""
        if held_out and not self.unseen:
            return self.questions[-1]
        return rng.choice(self.questions if self.unseen else self.questions[:-1])


@lru_cache
def events(*, held_out: bool = False) -> tuple[Event, ...]:
    """Those that training sees, or with ``held_out`` all. A message that stands in two files is one event, asked in the
    words of both."""
    split = [row.split(" | ") for row in rows("events") if not row.startswith("!")]
    found: dict[str, Event] = {}
    for level, area, message, asked in split:
        questions = tuple(question.strip() for question in asked.split(";"))
        if earlier := found.get(message.strip()):
            found[message.strip()] = replace(earlier, questions=(*questions[:-1], *earlier.questions))
        else:
            found[message.strip()] = Event(level.strip(), area.strip(), message.strip(), questions)
    return tuple(event for event in found.values() if held_out or not event.unseen)


@lru_cache
def areas() -> dict[str, str]:
    """Area -> what it is called, from the lines ``!area | name | description`` of the same files."""
    split = [row.split(" | ") for row in rows("events") if row.startswith("!area | ")]
    return {area.strip(): description.strip() for _, area, description in split}


@lru_cache
def by_area(*, held_out: bool = False) -> dict[str, tuple[Event, ...]]:
    """Area -> its ``events``."""
    found = defaultdict(list)
    for event in events(held_out=held_out):
        found[event.area].append(event)
    return {area: tuple(those) for area, those in found.items()}


def together(rng: random.Random, *, held_out: bool = False, first: Iterable[Event] = ()) -> list[Event]:
    """Events of one log: most often of a few areas, so that its lines belong together and are told apart by what they
    say rather than by their subject. With ``first`` these and events of their areas."""
    known, size = events(held_out=held_out), rng.randint(5, 45)
    chosen = dict.fromkeys(first)
    if not chosen and rng.random() < ALONE:
        return rng.sample(known, min(size, len(known)))
    waiting = list(dict.fromkeys(event.area for event in chosen))
    for _ in range(5):
        # An area is found through one of its events, so that large areas come more often.
        those = by_area(held_out=held_out)[waiting.pop() if waiting else rng.choice(known).area]
        share = max(3, round(rng.choice((0.3, 0.6, 1.0)) * size))
        chosen |= dict.fromkeys(rng.sample(those, min(len(those), share)))
        if len(chosen) >= size and not waiting:
            break
    chosen |= dict.fromkeys(rng.sample(known, min(len(known), rng.choice((0, 0, 1, 4)))))
    return list(chosen)
