"""The words of a question in the forms in which a text may have them: as other words of the same stem, written short,
as a verb with its particle, and as other words for the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import zip_longest

from engine.answers.locate.synonyms import synonyms

TAIL, LONG_TAIL, LONG = 3, 5, 6
"""Letters that may follow a word's stem, and a stem of so many letters: "connect" is found in "connections", "form"
not in "formidable"."""
MOST = 24
"""Words of a question that are looked for: the longest."""

_WORD = re.compile(r"[^\W_]+")
_SUFFIX = re.compile(r"(?:(?<=\w{4})(?:ations?|ions?|ments?|ures?)|(?<=\w{3})(?:ings?|ed|es|ly|s|e))$")
_Y = re.compile(r"(?<=[^aeiou])(?:y|ies|ied)$")
_DOUBLED = re.compile(r"([bdgmnprt])\1$")
_COMMON = """
    a about after all an and any are as at be because been before being both but by can could did do does during
    each every few for from get gets got had happen happened happens has have having he her here him his how i if
    in into is it its itself just line lines me more most my no nor not of off on once one only or other our out
    over own please say says said see she should show shows so some someone somebody something such tell than that
    the their them then there these they thing this those through to too under until up us very was we were what
    when where which while who whom whose why will with would you your
"""
COMMON = frozenset(_COMMON.split())
"""Words that say nothing of what is looked for."""
_SHORT = """
    acknowledge ack, address addr, allocate alloc, allocation alloc, argument arg, authentication auth, authorization
    auth, authenticate auth, certificate cert, command cmd, configuration config conf cfg, connection conn, context
    ctx, critical crit, database db, destination dst dest, device dev, directory dir, environment env, error err,
    execute exec, filesystem fs, hardware hw, image img, initialize init, initialization init, interface iface,
    library lib, maximum max, memory mem, message msg, minimum min, network net, number num, package pkg, parameter
    param, password passwd pwd, permission perm, process proc, protocol proto, receive recv, repository repo,
    request req, response resp, sequence seq, server srv, service svc, session sess, signal sig, source src, statement
    stmt, synchronize sync, system sys, table tbl, temporary tmp temp, transaction tx txn, version ver, volume vol
"""
"""Words and how logs write them short."""
_PARTICLES = ("in", "out", "up", "down", "off", "on", "back", "over")
_COMPOUND = re.compile(r"(\w{3,}?)(out|up|down|off|back|over|in)$")
LETTER = rb"[0-9a-zA-Z\x80-\xff]"
"""A byte of a word, in UTF-8."""


@dataclass(frozen=True)
class Form:
    """``stem``: what is searched, in lower case; ``tail``: letters that may follow it; ``particle``: what must stand
    behind these, apart or not: "timed out", "time-out", "timeout"."""

    stem: bytes
    tail: int = 0
    particle: bytes = b""

    @cached_property
    def pattern(self) -> re.Pattern[bytes]:
        particle = b"[ -]?" + self.particle if self.particle else b""
        return re.compile(re.escape(self.stem) + rb"%b{0,%d}%b(?!%b)" % (LETTER, self.tail, particle, LETTER))


@dataclass(frozen=True)
class Term:
    """A word in all its forms, and ``others`` for the same. ``name``: it is written with digits, as only names are;
    they are not paraphrased, so that they say more."""

    forms: tuple[Form, ...]
    name: bool
    others: tuple[Form, ...] = ()


def terms_of(question: str) -> list[Term]:
    """The words of a question that say what is looked for; if it has no others, all of them."""
    written = _WORD.findall(question)
    shouted = {word.lower() for word in written if word.isupper() and len(word) > 1}  # GET is no common word
    found: dict[str, str] = {}
    for word, after in zip_longest(written, written[1:], fillvalue=""):
        found[word.lower()] = found.get(word.lower()) or (after if after in _PARTICLES else "")
    chosen = [word for word in found if word not in COMMON or word in shouted] or list(found)
    terms = (_term(word, found[word]) for word in sorted(chosen, key=len, reverse=True)[:MOST])
    by_stem = {term.forms[-1].stem: term for term in terms}
    return [replace(term, others=_others().get(stem, ())) for stem, term in by_stem.items()]


def plain_words(question: str) -> list[str]:
    """The words of a question that are letters alone and say something, in lower case."""
    words = dict.fromkeys(word.lower() for word in _WORD.findall(question) if word.isalpha() and len(word) > 2)
    return [word for word in words if word not in COMMON][:MOST]


def _term(word: str, particle: str) -> Term:
    forms = [Form(_bytes(short)) for short in _shorts().get(_singular(word), ())]
    if len(word) <= 3 or not word.isalpha():
        return Term((*forms, Form(_bytes(word))), any(map(str.isdigit, word)))
    if _Y.search(word):
        stem = _Y.sub("", word)  # deny, denies, denied, denial
        return Term((*forms, Form(_bytes(stem + "y")), Form(_bytes(stem + "i"), TAIL)), name=False)
    compound = _COMPOUND.match(word)
    stem = _stem(word)
    if particle or compound:
        verb, joined = (stem, particle) if compound is None else (_stem(compound[1]), compound[2])
        forms.append(Form(_bytes(verb), LONG_TAIL, _bytes(joined)))
    tail = max(LONG_TAIL if len(stem) >= LONG else TAIL, len(word) - len(stem))
    return Term((*forms, Form(_bytes(stem), tail)), name=False)


@cache
def _others() -> dict[bytes, tuple[Form, ...]]:
    """Forms of other words, by the last form of a word."""
    found: dict[bytes, dict[Form, None]] = {}
    for word, others in synonyms().items():
        forms = found.setdefault(_term(word, "").forms[-1].stem, {})
        forms.update(dict.fromkeys(form for other in others for form in _term(other, "").forms))
    return {stem: tuple(forms) for stem, forms in found.items()}


def _stem(word: str) -> str:
    stem = _SUFFIX.sub("", word)
    if stem != word:
        stem = _DOUBLED.sub(r"\1", stem)  # stopped, stop
    return stem


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


@cache
def _shorts() -> dict[str, list[str]]:
    """Other spellings by a word, short or long."""
    out: dict[str, list[str]] = {}
    for row in _SHORT.split(","):
        long, *shorts = row.split()
        for word, others in [(long, shorts), *((short, [long]) for short in shorts)]:
            out.setdefault(word, []).extend(others)
    return out


def _singular(word: str) -> str:
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
