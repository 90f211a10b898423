"""How people ask for what something is for: a phrase in a sentence that suits what sort of phrase it is.

Phrases are orders ("find the latest files"), wishes about oneself ("be told about news"), refusals ("not let others
see me"), questions ("how do I adapt it") or things ("red lines below mistakes"). ``verbs.txt`` tells orders.
"""

from __future__ import annotations

import random
import re
from pathlib import Path


def _read() -> tuple[frozenset[str], frozenset[str], tuple[str, ...]]:
    verbs: list[str] = []
    before_of: list[str] = []
    others: list[str] = []
    for line in Path(__file__).with_name("verbs.txt").read_text().splitlines():
        if line.startswith("+-"):
            others += [beginning.strip() for beginning in line[2:].split(";") if beginning.strip()]
        elif line.startswith("+of"):
            before_of += line[3:].split()
        elif not line.startswith("#"):
            verbs += line.lstrip("+").split()
    return frozenset(verbs), frozenset(before_of), tuple(f"{beginning} " for beginning in others)


VERBS, _BEFORE_OF, _OTHERS = _read()
"""What an order begins with; of these, what may stand before "of"; beginnings of what is none all the same."""
_WISHES = [
    "{f}",
    "{f}",
    "{f}",
    "I want to {f}",
    "I would like to {f}",
    "I need to {f}",
    "I wish to {f}",
    "help me {f}",
    "let me {f}",
    "where can I {f}?",
    "where do I click to {f}?",
    "what do I press to {f}?",
    "which one lets me {f}",
    "how can I {f}?",
    "how do I {f}?",
    "is there a way to {f}?",
    "can I {f}?",
    "so that I can {f}",
    "my aim is to {f}",
]
_ORDERS = [
    *_WISHES,
    "{f}, please",
    "please {f}",
    "the button to {f}",
    "the control to {f}",
    "the command to {f}",
    "which of these is used to {f}?",
    "it is time to {f}",
]
_FOR_ALL = "the thing for people who want to {f}"
"""For orders that do not speak of me."""
_REFUSALS = [
    "{f}",
    "{f}",
    "{f}, please",
    "please do {f}",
    "I would rather {f}",
    "I prefer to {f}",
    "how can I choose to {f}?",
    "it is better to {f}",
]
_QUESTIONS = ["{f}", "{f}?", "{f}?", "tell me: {f}?"]
_THINGS = ["{f}", "{f}", "{f}", "{f}, please", "the one for this: {f}", "what I want: {f}", "I look for this: {f}"]
_STATES = frozenset(
    ("be", "become", "dislike", "feel", "happen", "have", "hear", "know", "like", "need", "own", "remain", "stay")
)
"""Verbs with which one says how one wants to be rather than what is to be done."""
_NEGATIVE = ("not", "never")
_DIRECT = re.compile(
    r"(how|where|when|why|what|who|which( \w+)?|how (much|many|long|often)( \w+)?) "
    r"(do|does|did|is|are|was|were|can|could|will|would|should|shall|may|must|has|have)\b|"
    r"(is|are|was|will|does|do|did|can|may|must|shall) (it|they|he|she|we|i|you|there|this|that|the|my|others) |"
    r"(how|why) to\b|what now\b",
    re.IGNORECASE,
)
_OWN = re.compile(r"\b(I|me|my|mine|myself|we|us|our|ours)\b")


def is_order(phrase: str) -> bool:
    """Whether a phrase can follow "I want to", a refusal among them."""
    first, _, rest = phrase.lower().partition(" ")
    if not rest or first not in VERBS or f"{first} {rest} ".startswith(_OTHERS):
        return False
    if first in _NEGATIVE:
        return rest.split()[0] in VERBS
    return first in _BEFORE_OF or not rest.startswith("of ")


def _frames(phrase: str) -> list[str]:
    first = phrase.split(maxsplit=1)[0].lower()
    if _DIRECT.match(phrase):
        return _QUESTIONS
    if not is_order(phrase):
        return _THINGS
    if first in _NEGATIVE:
        return _REFUSALS if first == "not" else [frame for frame in _REFUSALS if frame != "please do {f}"]
    if first in _STATES:
        return _WISHES
    return _ORDERS if _OWN.search(phrase) else [*_ORDERS, _FOR_ALL]


def spoken(phrase: str) -> str:
    """A phrase or tooltip without "Whether to" and its full stop; its first letter is small unless it is one of a name
    or of "I"."""
    said = re.sub(r"^(Whether (or not )?(to )?|If (true|enabled|set|checked),? ?)", "", phrase).strip().rstrip(".")
    if said[1:2].isupper() or re.match(r"I\b", said):
        return said
    return said[:1].lower() + said[1:]


def asked(said: str, rng: random.Random) -> str:
    """What ``spoken`` gave, as somebody would ask for the thing. What is a question or polite already stays."""
    if said.endswith(("?", "please")):
        return said
    return rng.choice(_frames(said)).format(f=said)
