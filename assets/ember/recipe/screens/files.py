"""What files on a screen are about and of what sort they are, from ``files.txt``."""

from __future__ import annotations

import random
import re
from functools import lru_cache
from pathlib import Path

_ABOUT = (
    "the file with the {m}",
    "the {m}",
    "open the {m}",
    "I need the {m}",
    "where is the {m}?",
    "the one about {m}",
)
_CLAUSE = ("the one about {m}", "{m}", "open what is about {m}", "the file: {m}")
_NO_ARTICLE = re.compile(
    r"(how|what|where|who|puts|sets|brings|two|not|about|read|something|somebody|everything|mail)\b"
)
_SORT = ("the {m}", "open the {m}", "the file that is a {m}", "which one is the {m}?")


@lru_cache
def _table() -> dict[str, list[str]]:
    rows = {}
    for line in Path(__file__).with_name("files.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            key, said = line.split("|")
            rows[key.strip()] = [s.strip() for s in said.split(";")]
    return rows


@lru_cache
def stems() -> tuple[str, ...]:
    return tuple(key for key in _table() if not key.startswith("."))


@lru_cache
def extensions() -> tuple[str, ...]:
    return tuple(key[1:] for key in _table() if key.startswith("."))


def phrases(key: str, meaning: str) -> list[str]:
    """All ways to ask for the file by one of its meanings."""
    forms = _SORT if key.startswith(".") else _CLAUSE if _NO_ARTICLE.match(meaning) else _ABOUT
    return [form.format(m=meaning) for form in forms]


def meanings(key: str, held: bool) -> list[str]:
    return _table()[key][-1:] if held else _table()[key][:-1]


def described(rng: random.Random, key: str, held: bool, most: int = 2) -> list[str]:
    """Whole phrases ("=" before each) for a part of a name or for an extension with its dot."""
    said = meanings(key, held)
    return [f"={rng.choice(phrases(key, meaning))}" for meaning in rng.sample(said, min(most, len(said)))]
