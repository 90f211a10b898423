"""Which segments hold a question's words: a cheap prior beside attention, found without taking the text apart.

Scores are those of BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009) with a word counted once
a segment. Words match at their beginning, so that "rejects" finds "rejected", and as logs write them short, so that
"command" finds "CMD"; numbers and short words match as they are. Other words for the same count less.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import islice, zip_longest

import numpy as np
import numpy.typing as npt

from engine.answers.locate.synonyms import synonyms

Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]

SATURATION, LENGTH_SHARE = 1.2, 0.75
"""k1 and b of BM25."""
TAIL, LONG_TAIL, LONG = 3, 5, 6
"""Letters that may follow a word's stem, and a stem of so many letters: "connect" is found in "connections", "form"
not in "formidable"."""
NAME = 2.0
"""What a name counts more than another word as rare as it."""
OTHER = 0.5
"""What another word for it counts of a word."""
OTHERS_WITHIN = 200_000
"""Segments of a text up to which other words are searched: they are several times as many."""
MOST = 24
"""Words of a question that are looked for: the longest."""
_BATCH = 1024
_NOWHERE = np.zeros(0, np.int64)

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
_STOP = frozenset(_COMMON.split())
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
_LETTER = rb"[0-9a-zA-Z\x80-\xff]"
_LETTERS = np.array([re.fullmatch(_LETTER, bytes([byte])) is not None for byte in range(256)])


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
        return re.compile(re.escape(self.stem) + rb"%b{0,%d}%b(?!%b)" % (_LETTER, self.tail, particle, _LETTER))


@dataclass(frozen=True)
class Term:
    """A word in all its forms, and ``others`` for the same. ``name``: it is written with digits, as only names are;
    they are not paraphrased, so that they say more."""

    forms: tuple[Form, ...]
    name: bool
    others: tuple[Form, ...] = ()


@dataclass(frozen=True)
class Words:
    """By segment: ``scores`` of BM25, 0 without any of the words; ``held``: the share of the words, by weight, that
    stands there, 0 to 1."""

    scores: Floats
    held: Floats


def terms_of(question: str) -> list[Term]:
    """The words of a question that say what is looked for; if it has no others, all of them."""
    written = _WORD.findall(question)
    shouted = {word.lower() for word in written if word.isupper() and len(word) > 1}  # GET is no common word
    found: dict[str, str] = {}
    for word, after in zip_longest(written, written[1:], fillvalue=""):
        found[word.lower()] = found.get(word.lower()) or (after if after in _PARTICLES else "")
    chosen = [word for word in found if word not in _STOP or word in shouted] or list(found)
    terms = (_term(word, found[word]) for word in sorted(chosen, key=len, reverse=True)[:MOST])
    by_stem = {term.forms[-1].stem: term for term in terms}
    return [replace(term, others=_others().get(stem, ())) for stem, term in by_stem.items()]


def match(blocks: Iterable[bytes], segments: int, question: str) -> Words:
    """Scores segments: those of all blocks in their order, as UTF-8, each ended by a newline."""
    terms = terms_of(question)
    searched = [(term.forms, term.others if segments <= OTHERS_WITHIN else ()) for term in terms]
    hits: list[tuple[list[Numbers], list[Numbers]]] = [([], []) for _ in terms]
    lengths = np.zeros(segments, np.uint16)
    first = 0
    for block in blocks:
        data = lowered(block)
        view = np.frombuffer(data, np.uint8)
        ends = np.flatnonzero(view == 10)
        lengths[first : first + len(ends)] = np.minimum(np.diff(ends, prepend=-1), 65535)
        for groups, founds in zip(searched, hits, strict=True):
            for forms, found in zip(groups, founds, strict=True):
                places = np.concatenate([_NOWHERE, *(_places(data, view, form) for form in forms)])
                if len(places):
                    found.append(np.unique(np.searchsorted(ends, places)) + first)
        first += len(ends)
    return _scored(hits, lengths, [NAME if term.name else 1.0 for term in terms])


def run_of(row: bytes, question: str) -> tuple[int, int, int]:
    """The shortest piece of a row that holds all of a question's words that the row has: where it begins and ends,
    and how many words that are."""
    data = lowered(row) + b"\n"
    view = np.frombuffer(data, np.uint8)
    places = sorted(
        (int(at), int(at) + len(form.stem), number)
        for number, term in enumerate(terms_of(question))
        for form in term.forms
        for at in _places(data, view, form).tolist()
    )
    wanted = len({number for *_, number in places})
    best = (0, len(data))
    latest: dict[int, tuple[int, int]] = {}  # by word, where it stood last
    for at, end, number in places:
        latest[number] = (at, end)
        if len(latest) == wanted:
            run = (min(start for start, _ in latest.values()), max(stop for _, stop in latest.values()))
            best = min(best, run, key=lambda span: span[1] - span[0])
    return *(best if wanted else (0, 0)), wanted


def blocks_of(texts: Iterable[str]) -> Iterator[bytes]:
    """Texts as :func:`match` takes them."""
    rest = iter(texts)
    while batch := list(islice(rest, _BATCH)):
        yield "".join(" ".join(text.split("\n")) + "\n" for text in batch).encode("utf-8", "replace")


def lowered(text: bytes) -> bytes:
    return text.lower() if text.isascii() else text.decode("utf-8", "replace").lower().encode()


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


def _places(data: bytes, view: Bytes, form: Form) -> Numbers:
    """Where a form stands at a word's beginning."""
    at = np.array([found.start() for found in form.pattern.finditer(data)], np.int64)
    return at[(at == 0) | ~_LETTERS[view[at - 1]]] if len(at) else at


def _scored(
    hits: list[tuple[list[Numbers], list[Numbers]]], lengths: npt.NDArray[np.uint16], factors: list[float]
) -> Words:
    scores, held = np.zeros((2, len(lengths)), np.float32)
    average = max(1.0, float(lengths.mean())) if len(lengths) else 1.0
    total = 0.0
    for founds, factor in zip(hits, factors, strict=True):
        own, others = (np.concatenate([_NOWHERE, *found]) for found in founds)
        others = np.setdiff1d(others, own)
        weights = [factor * _rarity(len(own), len(lengths)), OTHER * _rarity(len(own) + len(others), len(lengths))]
        total += weights[0]
        for rows, weight in zip((own, others), weights, strict=True):
            spread = 1 - LENGTH_SHARE + LENGTH_SHARE * lengths[rows] / average
            scores[rows] += (weight * (SATURATION + 1) / (1 + SATURATION * spread)).astype(np.float32)
            held[rows] += np.float32(weight)
    return Words(scores, held / np.float32(total) if total else held)


def _rarity(count: int, segments: int) -> float:
    return math.log1p((segments - count + 0.5) / (count + 0.5))
