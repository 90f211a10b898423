"""Evidence lines, questions about them, and which line (or nothing) answers each; whole prompts for evaluation.

The prompt is the product's: ``<|im_start|>user\\n{line}\\n…{line}\\n`` then per question ``\\n{question}<|line|>``.
Each line is
tokenised with its own newline. The readout compares the query at ``<|line|>`` with the keys of the evidence tokens
and with one key more, the newline of ``user\\n`` just before the evidence: the *nothing* slot.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .logs import FORMATS, Document, Line, lexical, log_document
from .shape import Words
from .values import SERVICES, Values

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


class Pairs:
    """Paraphrase pairs (question, text) with an index from content words to pairs, for hard negatives."""

    def __init__(self, rows: list[tuple[str, str]]) -> None:
        self.rows = rows
        self.with_word: dict[str, list[int]] = defaultdict(list)
        for index, (question, text) in enumerate(rows):
            for word in set(re.findall(r"[a-z]{4,}", f"{question} {text}".lower())) - STOP:
                self.with_word[word].append(index)
        self.topics = [word for word, found in self.with_word.items() if 4 <= len(found) <= 600]

    @classmethod
    def load(cls, path: Path, *, held_out: bool) -> Pairs:
        """Read ``{"q", "t"}`` JSON lines (gzip); one pair in 50 is held out."""
        rows = []
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for row in map(json.loads, file):
                question, text = row["q"].strip(), row["t"].strip()
                out = hashlib.sha256(text.encode()).digest()[0] < 5
                if out == held_out and question and text and len(question) + len(text) < 400:
                    rows.append((question, text))
        return cls(rows)


@dataclass
class Material:
    """What the documents are made of; empty lists leave their kinds out."""

    words: list[str]
    pairs: Pairs | None = None
    sentences: list[str] | None = None


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


def pair_document(rng: random.Random, count: int, pairs: Pairs, *, wanted: int) -> Document:
    """Lines that mostly share a topic word, so that the right one is told by meaning."""
    chosen: list[int] = []
    for _ in range(rng.choice((1, 2, 4))):
        if pairs.topics and rng.random() < 0.8:
            found = pairs.with_word[rng.choice(pairs.topics)]
            chosen += rng.sample(found, min(len(found), max(2, count // 2)))
    chosen += rng.choices(range(len(pairs.rows)), k=max(0, count + wanted - len(chosen)))
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
    wording = rng.choice(("{}", "{}", "which line means: {}", "the one about {}", "{}?", "what is described as {}"))
    once = {text for text in (t for _, t in inside) if sum(t == text for _, t in inside) == 1}
    for index in rng.sample(range(len(inside)), min(len(inside), wanted)):
        if outside and rng.random() < 0.15:
            question, text = outside.pop()
            if text not in once:
                document.questions.append((wording.format(question), None))
        elif inside[index][1] in once:
            document.questions.append((wording.format(inside[index][0]), index))
    return document


def prose_document(rng: random.Random, count: int, sentences: list[str], *, wanted: int) -> Document:
    """Sentences of documentation asked by words that only one of them holds together."""
    lines = rng.sample(sentences, min(count, len(sentences)))
    document = Document(lines)
    for index in rng.sample(range(len(lines)), min(len(lines), wanted)):
        words = [w for w in re.findall(r"[\w'-]+", lines[index]) if len(w) > 3]
        question = (
            " ".join(w for w in words if rng.random() < 0.6).lower()
            if rng.random() < 0.5
            else lexical(rng, lines, index)
        )
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
            )
        )
        value, answer = str(row[key]), index
        if rng.random() < 0.15:
            value, answer = values.nudge(value), None
            if any(value in line for line in lines):
                continue
        document.questions.append((wording.format(k=key, v=value, o=other), answer))
        if len(document.questions) >= wanted:
            break
    return document


def document(rng: random.Random, count: int, material: Material, *, wanted: int, held_out: bool = False) -> Document:
    """One document of a random kind with about ``count`` lines."""
    kinds = [("log", 5.0), ("record", 1.3)]
    kinds += [("pair", 4.0)] if material.pairs else []
    kinds += [("prose", 1.0)] if material.sentences else []
    kind = rng.choices([k for k, _ in kinds], [w for _, w in kinds])[0]
    if kind == "log":
        return log_document(rng, count, material.words, wanted=wanted, held_out=held_out)
    if kind == "record":
        return record_document(rng, count, material.words, wanted=wanted)
    if kind == "pair":
        return pair_document(rng, count, material.pairs, wanted=wanted)
    return prose_document(rng, count, material.sentences, wanted=wanted)


@dataclass
class Encoded:
    """A document as tokens: ``line_of`` names the line of each prefix token, -1 for those outside the evidence."""

    ids: list[int]
    line_of: list[int]
    at: list[int]
    answers: list[int]
    """Line index, or -1 when nothing answers."""


def encode(doc: Document, words: Words, limit: int, questions: int = 48) -> Encoded:
    """Tokenise up to ``limit`` tokens; lines that do not fit are dropped and questions about them with them."""
    ids, line_of = list(words.user), [-1] * len(words.user)
    asked = [
        [words.newline, *tokens[:questions], words.line] for tokens in words.encode_many([q for q, _ in doc.questions])
    ]
    room = limit - min(limit // 3, sum(map(len, asked)))
    kept = 0
    for index, tokens in enumerate(words.encode_many([line + "\n" for line in doc.lines])):
        if len(ids) + len(tokens) > room:
            break
        ids += tokens
        line_of += [index] * len(tokens)
        kept += 1
    at, answers = [], []
    for tokens, (_, answer) in zip(asked, doc.questions, strict=True):
        if (answer is not None and answer >= kept) or len(ids) + len(tokens) > limit:
            continue
        ids += tokens
        at.append(len(ids) - 1)
        answers.append(-1 if answer is None else answer)
    return Encoded(ids, line_of, at, answers)


def collate(rows: list[Encoded], length: int) -> dict[str, np.ndarray]:
    """ids [B, L]; line_of [B, L]; at, answer [B, Q]; asked [B, Q] (which of them are real questions)."""
    width = max(1, *(len(r.at) for r in rows))
    out = {
        "ids": np.zeros((len(rows), length), np.int64),
        "line_of": np.full((len(rows), length), -1, np.int64),
        "at": np.zeros((len(rows), width), np.int64),
        "answer": np.full((len(rows), width), -1, np.int64),
        "asked": np.zeros((len(rows), width), bool),
    }
    for i, row in enumerate(rows):
        out["ids"][i, : len(row.ids)] = row.ids
        out["line_of"][i, : len(row.line_of)] = row.line_of
        out["at"][i, : len(row.at)] = row.at
        out["answer"][i, : len(row.at)] = row.answers
        out["asked"][i, : len(row.at)] = True
    return out
