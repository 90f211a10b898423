"""What is measured on: held-out screens and logs, always the same ones."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
from PIL import Image

from . import pointing
from .data import Data
from .logs import log_document
from .meanings import meaning_document, meanings
from .pointing import Screen
from .retrieval import around, pair_document, prose_document, record_document
from .shape import Words


def drawn_screens(data: Data, each: int, seed: int = 99) -> list[Screen]:
    """Held-out drawn screens of several sizes, always the same for a seed."""
    source = data.screens(0.0, "heldout")
    if source.draw is None:
        return []
    sizes = ((1024, 768), (1280, 800), (1366, 768), (1920, 1080), (2560, 1440), (3840, 2160))
    return [Screen(*source.draw(random.Random(f"{seed} {w} {i}"), w, h)) for w, h in sizes for i in range(each)]


def packed_screens(data: Data, most: int) -> list[Screen]:
    """The packed held-out screens, at most ``most``, spread evenly."""
    found: list[Screen] = []
    for path in sorted((data.folder / "shards").glob("*.tar")):
        shard = pointing.Shard(path)
        found += [
            Screen(shard.picture(i), pointing.items_of(r))
            for i, r in enumerate(shard.records)
            if r["split"] == "heldout"
        ]
    step = max(1, -(-len(found) // most))
    return found[::step]


def real_screens(folder: Path | None) -> list[Screen]:
    """Screenshots with questions: ``screens.json`` and the pictures it names, as in ``tests/data/screens``."""
    if folder is None:
        return []
    records = json.loads((folder / "screens.json").read_text())
    pictures = [np.asarray(Image.open(folder / r["file"]).convert("RGB")) for r in records]
    return [Screen(p, pointing.items_of(r)) for p, r in zip(pictures, records, strict=True)]


def real_logs(folder: Path | None, words: Words, tokens: int = 3000, seed: int = 3) -> list[dict]:
    """Questions about whole log files, as in ``tests/data/logs``, each about one window of ``tokens`` tokens around a
    line that answers it: documents for ``evaluate_lines``, whose answers are lists of lines."""
    if folder is None:
        return []
    rng, found = random.Random(seed), []
    questions = json.loads((folder / "questions.json").read_text())
    for log in sorted({q["log"] for q in questions}):
        lines = (folder / log).read_text(encoding="utf-8", errors="replace").splitlines()
        sizes = [len(ids) for ids in words.encode_many([f"{line}\n" for line in lines])]
        for question in (q for q in questions if q["log"] == log):
            middle = question["lines"][0] - 1 if question["lines"] else rng.randrange(len(lines))
            first, last, used, before = middle, middle + 1, sizes[middle], rng.random()
            while True:  # grow to both sides, on average ``before`` of it upwards
                up = first > 0 and (rng.random() < before or last == len(lines))
                if not up and last == len(lines):
                    break
                used += sizes[first - 1] if up else sizes[last]
                if used > tokens:
                    break
                first, last = (first - 1, last) if up else (first, last + 1)
            answers = [number - 1 - first for number in question["lines"] if first < number <= last]
            found.append(
                {
                    "name": f"real logs {question['kind']}",
                    "lines": lines[first:last],
                    "questions": [[question["question"], answers or None]],
                }
            )
    return found


def made_lines(data: Data, each: int, seed: int = 11) -> list[dict]:
    """``each`` documents of every kind the recipe makes, of held-out questions, texts and pairs (``data`` loaded with
    ``held_out``): documents for ``evaluate_lines``."""
    material = data.material
    kinds = {
        "logs, 60 lines": lambda rng: log_document(rng, 60, material.words, wanted=8, held_out=True),
        "logs of unseen events, 60 lines": lambda rng: log_document(
            rng, 60, material.words, wanted=8, held_out=True, unseen=True
        ),
        "records, 60": lambda rng: record_document(rng, 60, material.words, wanted=8),
    }
    if material.pairs:
        kinds["paraphrase pairs, 60 lines"] = lambda rng: pair_document(rng, 60, material.pairs, wanted=8, literal=0)
    if material.sentences:
        kinds["prose, 60 sentences"] = lambda rng: prose_document(rng, 60, material.sentences, wanted=8)
    if meanings():
        kinds["meanings, 40 lines"] = lambda rng: meaning_document(
            rng, 40, around(rng, material, 40), wanted=8, held_out=True
        )
    found = []
    for name, make in kinds.items():
        for index in range(each):
            document = make(random.Random(f"{seed} {name} {index}"))
            found.append({"name": name, "lines": document.lines, "questions": [list(q) for q in document.questions]})
    return found
