"""Evidence lines of every kind but logs, with questions and which line (or nothing) answers each; their material."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

import numpy as np

from .access import access_document
from .logs import FORMATS, Document, Line, lexical, log_document, unique
from .meanings import meaning_document, meanings
from .shape import Words
from .values import SERVICES, Values
from .wordings import Thesaurus

STOP = frozenset(
    [
        "with",
        "that",
        "this",
        "from",
        "which",
        "their",
        "have",
        "been",
        "other",
        "used",
        "using",
        "such",
        "into",
        "than",
        "when",
        "also",
        "each",
        "more",
        "only",
        "does",
    ]
)


FIELDS = {
    "name": ("person", "full name", "who it is"),
    "email": ("mail address", "electronic address", "where mail goes"),
    "city": ("town", "place", "where they live"),
    "age": ("years", "how old"),
    "order": ("order number", "purchase"),
    "customer": ("buyer", "client", "who bought it"),
    "item": ("article", "thing bought", "goods"),
    "total": ("sum", "amount to pay", "price"),
    "state": ("status", "how far it is"),
    "host": ("machine", "computer"),
    "ip": ("address", "network address"),
    "mac": ("hardware address",),
    "owner": ("whose it is", "person responsible"),
    "os": ("operating system", "system"),
    "path": ("location", "where it lies"),
    "size": ("bytes", "how large"),
    "sha": ("checksum", "hash", "fingerprint"),
    "date": ("day", "when"),
    "sku": ("article number", "product code"),
    "title": ("name", "what it is called"),
    "price": ("cost", "how much it costs"),
    "stock": ("number left", "how many there are"),
}
"""Fields of records in other words."""


class Pairs:
    """Paraphrase pairs (question, text) with an index from content words to pairs, for hard negatives. ``sources`` says
    where each comes from; without it all are of one."""

    def __init__(self, rows: list[tuple[str, str]], sources: list[str] | None = None) -> None:
        self.rows = rows
        counts = Counter(sources or ())
        # A source is drawn by the root of its size, so that a few hundred messages are not lost among dictionaries.
        self._bounds = list(accumulate(counts[name] ** -0.5 for name in sources or ())) or list(range(1, len(rows) + 1))
        self.with_word: dict[str, list[int]] = defaultdict(list)
        for index, (question, text) in enumerate(rows):
            for word in set(re.findall(r"[a-z]{4,}", f"{question} {text}".lower())) - STOP:
                self.with_word[word].append(index)

    def draw(self, rng: random.Random, count: int) -> list[int]:
        """Indices of ``count`` pairs at random, some maybe more than once."""
        return rng.choices(range(len(self.rows)), cum_weights=self._bounds, k=count)

    def alike(self, rng: random.Random) -> list[int]:
        """Indices of the pairs, 4 to 600, that share a word of one at random; empty when that has none such."""
        words = set(re.findall(r"[a-z]{4,}", " ".join(self.rows[self.draw(rng, 1)[0]]).lower())) - STOP
        fit = sorted(word for word in words if 4 <= len(self.with_word[word]) <= 600)
        return self.with_word[rng.choice(fit)] if fit else []

    def near(self, rng: random.Random, text: str) -> tuple[str, str] | None:
        """A pair that shares a content word with ``text`` and is not it, or None."""
        words = [w for w in re.findall(r"[a-z]{4,}", text.lower()) if 2 <= len(self.with_word.get(w, ())) <= 600]
        if not words:
            return None
        pair = self.rows[rng.choice(self.with_word[rng.choice(words)])]
        return None if text in pair else pair

    @classmethod
    def load(cls, path: Path, *, held_out: bool) -> Pairs:
        """Read ``{"q", "t"}`` JSON lines (gzip); one pair in 50 is held out."""
        rows, sources = [], []
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for row in map(json.loads, file):
                question, text = row["q"].strip(), row["t"].strip()
                out = hashlib.sha256(text.encode()).digest()[0] < 5
                if out == held_out and question and text and len(question) + len(text) < 400:
                    rows.append((question, text))
                    sources.append(row.get("src", ""))
        return cls(rows, sources)


@dataclass
class Material:
    """What the documents are made of; empty lists leave their kinds out."""

    words: list[str]
    pairs: Pairs | None = None
    sentences: list[str] | None = None
    common: list[str] = field(default_factory=list)
    """Words with a meaning in ``thesaurus`` that a tokenizer has as one token."""

    def __post_init__(self) -> None:
        self.thesaurus = Thesaurus(self.pairs.rows if self.pairs else [])


def sentences_of(documents: np.ndarray, words: Words, count: int, seed: int) -> list[str]:
    """Up to ``count`` sentences from random places of a packed document array."""
    rng, found = random.Random(seed), []
    for _ in range(10 + count // 4):  # a window gives dozens; text without sentences must not loop for ever
        if len(found) >= count:
            break
        start = rng.randrange(max(1, len(documents) - 4000))
        text = words.tokenizer.decode(documents[start : start + 4000].tolist())
        found += [
            s.strip()
            for s in re.split(r"(?<=[.!?])\s+|\n", text)[1:-1]
            if 30 < len(s.strip()) < 260 and len(s.split()) > 4
        ]
    return found[:count]


LITERAL = 0.15
"""Share of the questions about pairs in the line's own words, which must not be forgotten over others."""
PAIR_FRAMES = (
    "{}",
    "{}",
    "which line means: {}",
    "the one about {}",
    "{}?",
    "what is described as {}",
    "Which line is about this: {}?",
    "Where is it a matter of this: {}?",
    "Which one could be described like this: {}?",
    "What would you call this: {}?",
    "Where do we read about this: {}?",
)


def pair_document(rng: random.Random, count: int, pairs: Pairs, *, wanted: int, literal: float = LITERAL) -> Document:
    """Lines that mostly share a topic word, so that the right one is told by meaning."""
    chosen: list[int] = []
    for _ in range(rng.choice((1, 2, 4))):
        if rng.random() < 0.8:
            found = pairs.alike(rng)
            chosen += rng.sample(found, min(len(found), max(2, count // 2)))
    chosen += pairs.draw(rng, max(0, count + wanted - len(chosen)))
    chosen = list(dict.fromkeys(chosen))
    rng.shuffle(chosen)
    swap = rng.random() < 0.4
    rows = [pairs.rows[i][::-1] if swap else pairs.rows[i] for i in chosen]
    inside, outside = rows[:count], rows[count:]
    lines = [text for _, text in inside]
    if rng.random() < 0.35:
        style, when = rng.choice(list(FORMATS.values())), rng.randint(1_500_000_000, 1_800_000_000)
        service = rng.sample(SERVICES, 4)
        lines = [
            style(Line(when + 13 * i, i % 1000, "host", rng.choice(service), 100 + i, rng.choice(("info", "warn")), t))
            for i, t in enumerate(lines)
        ]
    document = Document(lines)
    wording = rng.choice(PAIR_FRAMES)
    once = {text for text in (t for _, t in inside) if sum(t == text for _, t in inside) == 1}
    for index in rng.sample(range(len(inside)), min(len(inside), wanted)):
        if outside and rng.random() < 0.15:
            question, text = outside.pop()
            if text not in once:
                document.questions.append((wording.format(question), None))
        elif inside[index][1] in once:
            said = lexical(rng, lines, index) if rng.random() < literal else None
            document.questions.append((said or wording.format(inside[index][0]), index))
    return document


def prose_document(
    rng: random.Random, count: int, sentences: list[str], *, wanted: int, thesaurus: Thesaurus | None = None
) -> Document:
    """Sentences of documentation asked by words that only one of them holds together, or by what these words mean."""
    lines = rng.sample(sentences, min(count, len(sentences)))
    document = Document(lines)
    for index in rng.sample(range(len(lines)), min(len(lines), wanted)):
        words = [w for w in re.findall(r"[\w'-]+", lines[index]) if len(w) > 3]
        way, question = rng.random(), None
        if thesaurus and way < 0.4 and len(words) > 2:
            picked = sorted(rng.sample(range(len(words)), min(len(words), rng.randint(2, 5))))
            if unique(lines, index, [words[i] for i in picked]):
                question = thesaurus.described(rng, [words[i] for i in picked], rng.choice((0.0, 0.3, 0.5)))
        if question is None and way < 0.7:
            question = " ".join(w for w in words if rng.random() < 0.6).lower()
        question = question or lexical(rng, lines, index)
        if question and len(question.split()) > 1:
            document.questions.append((question, index))
    if len(sentences) > count and rng.random() < 0.5:
        other = rng.choice(sentences)
        if other not in lines:
            document.questions.append((" ".join(re.findall(r"[\w'-]{4,}", other)[:5]).lower(), None))
    return document


def record_document(rng: random.Random, count: int, words: list[str], *, wanted: int) -> Document:
    """One-line JSON or table records asked by one field's value or for another field of it."""
    values = Values(rng, words)
    person = lambda v: f"{v['user'].split('.')[0].rstrip('0123456789').title()} {v['word'].title()}"  # noqa: E731
    makers = {
        "user": lambda v: {"name": person(v), "email": v["mail"], "city": v["word2"].title(), "age": int(v["n"])},
        "order": lambda v: {
            "order": v["id"],
            "customer": person(v),
            "item": v["word2"],
            "total": float(v["amt"]),
            "state": rng.choice(("paid", "open", "shipped")),
        },
        "device": lambda v: {
            "host": v["host"],
            "ip": v["ip"],
            "mac": v["mac"],
            "owner": v["user"],
            "os": rng.choice(("debian", "windows", "macos")),
        },
        "file": lambda v: {
            "path": v["path"],
            "size": int(v["num"]),
            "sha": v["hex"],
            "owner": v["user"],
            "date": v["date"],
        },
        "product": lambda v: {
            "sku": v["id"],
            "title": f"{v['word']} {v['word2']}",
            "price": float(v["amt"]),
            "stock": int(v["n2"]),
        },
    }
    make = makers[rng.choice(list(makers))]
    rows = []
    for _ in range(count):
        row = make(values.draw())
        if rows and rng.random() < 0.4:  # a near-duplicate of an earlier record
            row = dict(rng.choice(rows))
            key = rng.choice(list(row))
            new = values.nudge(str(row[key]))
            row[key] = type(row[key])(new) if not isinstance(row[key], str) else new
        rows.append(row)
    style = rng.choice(("json", "json", "json,", "csv", "pipe", "yaml"))
    render = {
        "json": json.dumps,
        "json,": lambda r: json.dumps(r) + ",",
        "csv": lambda r: ",".join(map(str, r.values())),
        "pipe": lambda r: "| " + " | ".join(map(str, r.values())) + " |",
        "yaml": lambda r: ", ".join(f"{k}: {v}" for k, v in r.items()),
    }[style]
    lines = list(map(render, rows))
    document = Document(lines)
    for index in rng.sample(range(count), min(count, 2 * wanted)):
        row, others = rows[index], [r for i, r in enumerate(rows) if i != index]
        key = rng.choice(list(row))
        if any(r[key] == row[key] for r in others):
            continue
        other = rng.choice([k for k in row if k != key])
        wording = rng.choice(
            (
                "the record whose {k} is {v}",
                "{v}",
                "{o} of {v}",
                "the {o} of the {k} {v}",
                "which entry has {k} {v}",
                "find {v}",
                "what is the {o} where the {k} is {v}?",
                "{k}: {v}",
                "the one with {v} as {k}",
            )
        )
        said, asked = (rng.choice([k, *FIELDS.get(k, ())]) for k in (key, other))
        value, answer = str(row[key]), index
        if rng.random() < 0.15:
            value, answer = values.nudge(value), None
            if any(value in line for line in lines):
                continue
        document.questions.append((wording.format(k=said, v=value, o=asked), answer))
        if len(document.questions) >= wanted:
            break
    return document


def around(rng: random.Random, material: Material, count: int) -> list[str]:
    """Texts for written sentences to stand among: sentences of documents and both sides of pairs."""
    texts: list[str] = []
    if material.sentences:
        texts += rng.sample(material.sentences, min(len(material.sentences), count))
    if material.pairs:
        drawn = (rng.choice(material.pairs.rows[i]) for i in material.pairs.draw(rng, count))
        texts += [text for text in drawn if len(text.split()) > 4]
    return list(dict.fromkeys(texts))


def document(rng: random.Random, count: int, material: Material, *, wanted: int, held_out: bool = False) -> Document:
    """One document of a random kind with about ``count`` lines."""
    kinds = [("log", 5.5), ("access", 0.6), ("record", 1.0)]
    kinds += [("pair", 4.0)] if material.pairs else []
    kinds += [("prose", 1.0)] if material.sentences else []
    kinds += [("meaning", 2.5)] if meanings() else []
    kind = rng.choices([k for k, _ in kinds], [w for _, w in kinds])[0]
    if kind == "log":
        return log_document(
            rng,
            count,
            material.words,
            wanted=wanted,
            held_out=held_out,
            pairs=material.pairs,
            thesaurus=material.thesaurus,
        )
    if kind == "access":
        return access_document(rng, max(4, count // 2), material.words, wanted=wanted)
    if kind == "record":
        return record_document(rng, count, material.words, wanted=wanted)
    if kind == "pair":
        return pair_document(rng, count, material.pairs, wanted=wanted)
    if kind == "meaning":
        return meaning_document(rng, count, around(rng, material, count), wanted=wanted, held_out=held_out)
    return prose_document(rng, count, material.sentences, wanted=wanted, thesaurus=material.thesaurus)
