"""Commands put together from a verb and an object, with many ways to say what they are for.

``actions.txt`` holds verbs, nouns and paraphrases of both, so that a few hundred lines give some ten thousand labels
("Remove Account", "Show Line Numbers", "Backups") and a hundred ways to ask for each without its own words.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_BARE = re.compile(
    r"(my|what|whatever|where|who|whoever|somebody|someone|another|one|it|its|how|the|several|file,|everything|English|"
    r"less|second proof|today's|that|more|looking|keeping|letting|making|matching|fetching|putting|taking|finding|"
    r"bringing|telling|teaching|squeezing|packing|saving|working|reaching|measuring|turning|not having|being)\b"
)
"""Names that stand without an article."""
_TOGETHER = frozenset(("Sort", "Manage", "Merge", "Compare", "Group"))
"""Verbs that take several objects at a time."""
_SWITCHES = frozenset(("Show", "Hide", "Enable"))
_OPPOSITES = (
    ("Show", "Hide"),
    ("Enable", "Disable"),
    ("Lock", "Unlock"),
    ("Add", "Remove"),
    ("Open", "Close"),
    ("Start", "Stop"),
    ("Pause", "Resume"),
    ("Merge", "Split"),
    ("Import", "Export"),
    ("Download", "Upload"),
    ("Connect to", "Disconnect from"),
    ("Install", "Remove"),
)
_COUNTED = frozenset(("item", "content", "person", "money"))


@dataclass(frozen=True)
class Row:
    """One line of ``actions.txt``; ``plural`` nouns take no "a"."""

    words: tuple[str, ...]
    kinds: frozenset[str]
    ways: tuple[str, ...]
    plural: bool

    def said(self, held: bool) -> tuple[str, ...]:
        """The paraphrases of one side: the last is for held-out screens."""
        return self.ways[-1:] if held else self.ways[:-1]


@dataclass(frozen=True)
class Action:
    """A label with phrases for what it is for; those that begin with "=" are sentences of their own. ``sense`` tells
    actions apart: no two on a screen may share one."""

    text: str
    sense: str
    ways: tuple[str, ...]


_COLUMN = Row(
    ("-",),
    frozenset(("item", "person", "money", "option", "net", "job", "content")),
    (
        "order the list by {o}",
        "arrange the rows by {o}",
        "put those together that share {o}",
        "see at a glance {o} of each row",
        "compare the rows by {o}",
        "=what is {o} of each one",
        "=the rows should follow this: {o}",
        "line everything up by {o}",
    ),
    False,
)
"""A noun alone as the heading of a column."""
_TABLED = frozenset(
    re.findall(
        r"\w[\w ]+",
        "Account, Tag, Contact, Folder, Album, Task, Event, Project, Profile, Printer, Server, Device, Network, Group, "
        "Workspace, Font, Repository, Branch, Invoice, Order, Subscription, Payment Method, Customer, Member, Ticket, "
        "Template, Calendar, Feed, Language, Time Zone, Resolution, Color, Quality, Permissions, Volume, Process, "
        "Service, Training, Chapter",
    )
)
"""Nouns that head columns."""


@lru_cache
def rows() -> dict[str, tuple[Row, ...]]:
    """Lines by sort: verb, page, ask, column, noun."""
    found: dict[str, list[Row]] = {}
    for line in Path(__file__).with_name("actions.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            sort, words, kinds, ways = (part.strip() for part in line.split("|"))
            found.setdefault(sort, []).append(
                Row(
                    tuple(w.strip() for w in words.split(";")),
                    frozenset(kinds.split()),
                    tuple(w.strip() for w in ways.lstrip("+").split(";")),
                    ways.startswith("+"),
                )
            )
    return {sort: tuple(lines) for sort, lines in found.items()} | {"column": (_COLUMN,)}


@lru_cache
def fitting(head: Row) -> tuple[Row, ...]:
    """The nouns that ``head`` goes with."""
    nouns = tuple(noun for noun in rows()["noun"] if noun.kinds & head.kinds)
    return tuple(noun for noun in nouns if noun.words[0] in _TABLED) if head is _COLUMN else nouns


def several(noun: Row, word: str) -> str:
    """An English plural of one of a noun's words; what is not counted stays."""
    if noun.plural or not noun.kinds & _COUNTED or word.endswith("s"):
        return word
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies"
    return f"{word}es" if re.search(r"(ch|sh|x)$", word) else f"{word}s"


def _named(name: str, row: Row, definite: bool, rng: random.Random) -> str:
    """A paraphrase with the article that its place in a sentence asks for."""
    if _BARE.match(name):
        return name
    if definite:
        short = len(name.split()) < 3 and row.kinds & _COUNTED and not name.endswith("s")
        return f"{rng.choice(('the', 'the', 'my', 'this')) if short else 'the'} {name}"
    if row.plural or re.match(r"\S+s\b", name):
        return name
    article = "an" if name[0] in "aeiou" else "a"
    return rng.choice((f"{article} {name}", f"{article} {name}", f"another {name}", f"a new {name}"))


def _ways(rng: random.Random, head: Row, noun: Row, held: bool, most: int = 6) -> tuple[str, ...]:
    """Phrases for ``head`` done to ``noun``; one in five names the object in the label's own word."""
    found = []
    for _ in range(most):
        way, name = rng.choice(head.said(held)), rng.choice(noun.said(held))
        if not held and rng.random() < 0.2:
            name = noun.words[0].lower()
        found.append(way.format(o=_named(name, noun, True, rng), a=_named(name, noun, False, rng)))
    return tuple(dict.fromkeys(found))


def _label(rng: random.Random, verb: str, noun: str, kind: str) -> str:
    text = f"{verb} {noun}".strip()
    if rng.random() < 0.5:  # sentence case; abbreviations and names keep theirs
        first, *rest = text.split(" ")
        text = " ".join([first, *(w.lower() if w[1:].islower() else w for w in rest)])
    if kind in ("b", "m") and verb and verb not in ("Show", "Hide", "Enable", "Disable") and rng.random() < 0.2:
        text += "..."
    return text


def _made(rng: random.Random, head: Row, noun: Row, kind: str, held: bool) -> Action:
    if head.words == ("-",):
        verb, word = "", noun.words[0] if kind in "fh" else several(noun, rng.choice(noun.words))
    else:
        verb, word = rng.choice(head.words), rng.choice(noun.words)
        word = several(noun, word) if head.words[0] in _TOGETHER else word
        if kind == "c" and head.words[0] in ("Show", "Enable") and rng.random() < 0.4:
            verb = ""
    sense = f"{head.words[0]} {noun.words[0]}"
    return Action(_label(rng, verb, word, kind), sense, _ways(rng, head, noun, held))


def action(rng: random.Random, kind: str, held: bool = False) -> tuple[Action, Action]:
    """A label for an element (b button, m menu item, c check or switch, t tab or page, l link, n menu, f field,
    h table heading), and one near it that means something else: the same verb for another object, or another verb for
    the same one. Verbs that are not opposites may be said in the same words, so such a neighbour has no ways."""
    table = rows()
    if kind == "f":
        heads: tuple[Row, ...] = table["ask"]
    elif kind == "h":
        heads = table["column"]
    elif kind in ("t", "n") or (kind == "l" and rng.random() < 0.5):
        heads = table["page"]
    elif kind == "c":
        heads = tuple(verb for verb in table["verb"] if verb.words[0] in _SWITCHES)
    else:
        heads = table["verb"]
    head = rng.choice(heads)
    noun = rng.choice(fitting(head))
    found = _made(rng, head, noun, kind, held)
    others = [h for h in heads if h is not head and h.kinds & noun.kinds]
    if heads is table["verb"] and others and rng.random() < 0.5:
        against = [h for h in others if any({h.words[0], head.words[0]} == set(pair) for pair in _OPPOSITES)]
        near = _made(rng, rng.choice(against or others), noun, kind, held)
        return found, near if against else Action(near.text, near.sense, ())
    other = rng.choice([n for n in fitting(head) if n is not noun])
    return found, _made(rng, head, other, kind, held)
