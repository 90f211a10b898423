"""Paraphrase pairs: what something means, and the word, name or message that stands for it.

Every source is a function from a folder of extracted packages, archives or lists to pairs (question, text), which gives
nothing where its material is not in that folder.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from . import dictionaries, docstrings, manuals, messages, packages, postgres, rules, services, settings
from .sentences import LONGEST, Pair, repeats


class Source(NamedTuple):
    name: str
    most: int
    """Pairs that are taken of it, at random."""
    read: Callable[[Path], Iterator[Pair]]
    words: bool = False
    """Whether these are words with their meanings, of which either may stand in the other."""


SOURCES = (
    Source("wordnet", 130_000, dictionaries.words, words=True),
    Source("foldoc", 20_000, dictionaries.terms, words=True),
    Source("manual", 5_000, manuals.names, words=True),
    Source("option", 20_000, manuals.options),
    Source("setting", 10_000, manuals.settings),
    Source("errno", 5_000, manuals.errors),
    Source("perl", 5_000, messages.perl),
    Source("systemd", 1_000, messages.systemd),
    Source("lintian", 5_000, messages.lintian),
    Source("pylint", 5_000, messages.pylint),
    Source("mypy", 100, messages.mypy),
    Source("http", 100, messages.statuses),
    Source("postgres-error", 5_000, postgres.errors),
    Source("postgres-setting", 2_000, postgres.settings),
    Source("git", 2_000, settings.git),
    Source("linux", 3_000, settings.linux),
    Source("apache", 2_000, settings.apache),
    Source("postfix", 2_000, settings.postfix),
    Source("library", 10_000, settings.manuals),
    Source("schema", 2_000, settings.schemas),
    Source("ansible", 6_000, settings.ansible),
    Source("amazon", 12_000, services.amazon),
    Source("google", 6_000, services.google),
    Source("kubernetes", 1_000, services.kubernetes),
    Source("linter", 3_000, rules.linters),
    Source("error", 1_000, rules.errors),
    Source("docstring", 8_000, docstrings.python),
    Source("typing", 10_000, docstrings.types),
    Source("package", 70_000, packages.packages),
)
"""Dictionaries first and in their order: a word's first meanings are its usual ones."""
OFTEN = 8
"""Pairs of one source that may have the same text."""
VAGUE = 3
"""Texts of a source that one question may not stand for; it is left out then, as "Takes a boolean argument." is."""


def fits(pair: Pair, *, words: bool = False) -> bool:
    """Whether a pair is short and plain enough, and its sides differ in more than their spelling."""
    first, second = pair
    if not (
        first.isascii() and second.isascii() and first.strip() and second.strip() and len(first) + len(second) < LONGEST
    ):
        return False
    return first.lower() != second.lower() if words else len(second) > 2 and not repeats(first, second)


def collect(roots: Sequence[Path], sources: Sequence[Source] = SOURCES) -> Iterator[tuple[str, list[Pair]]]:
    """Each source's name with its pairs: every pair once, at most ``most`` of them and in the order they were read."""
    seen: set[Pair] = set()
    for source in sources:
        read = [pair for root in roots for pair in source.read(root)]
        found = [pair for pair in dict.fromkeys(read) if pair not in seen and fits(pair, words=source.words)]
        if not source.words:
            asked = Counter(question for question, _ in found)
            told: Counter[str] = Counter()
            found = [pair for pair in found if asked[pair[0]] < VAGUE and _counted(told, pair[1]) <= OFTEN]
        seen.update(found)
        kept = sorted(random.Random(0).sample(range(len(found)), min(source.most, len(found))))
        yield source.name, [found[i] for i in kept]


def _counted(told: Counter[str], text: str) -> int:
    told[text] += 1
    return told[text]
