"""Reads out what training would see: shares of every kind, and questions of each kind with their answers.

    python -m assets.ember.recipe.sample --data DATA [--each 20] [--seed 1]

A run is only as good as its questions; read a hundred of each kind before spending a GPU on them.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter, defaultdict
from pathlib import Path

from . import decide, lines, pointing, replies
from .data import Data
from .retrieval import document

Samples = dict[str, list[str]]
"""Kind -> questions with their answers, in the order they were drawn."""


def points(rng: random.Random, data: Data, screens: int) -> Samples:
    """Questions about views of screens: "point text link", "point absent function", …"""
    source, found = data.screens(0.35), defaultdict(list)
    before: list[pointing.Item] = []
    buckets = [bucket for bucket in pointing.BUCKETS if bucket.width <= 1280]
    while sum(map(len, found.values())) < 20 * screens:
        bucket = rng.choices(buckets, [bucket.weight for bucket in buckets])[0]
        for view in pointing.views(rng, source, bucket):
            names = {
                tuple(item["box"]): item["queries"][0]["q"] for item in view.items if item["box"] and item["queries"]
            }
            for question, box, kind, by in pointing.questions(rng, view, before[-300:], 24, source.thesaurus):
                way = f"point absent {by}" if box is None else f"point {by} {kind}"
                found[way].append(f"{question}  ->  {'nothing' if box is None else names.get(box)}")
            before += view.items
    return found


def about_lines(rng: random.Random, data: Data, documents: int) -> Samples:
    found = defaultdict(list)
    for _ in range(documents):
        doc = lines.balanced(rng, document(rng, 60, data.material, wanted=lines.QUESTIONS))
        for question, answer in doc.questions:
            shown = "nothing" if answer is None else doc.lines[answer][:140]
            found["line absent" if answer is None else "line present"].append(f"{question}  ->  {shown}")
    return found


def choices(rng: random.Random, data: Data, count: int) -> Samples:
    found = defaultdict(list)
    makers, weights = zip(*decide.MAKERS, strict=True)
    for _ in range(count):
        maker = rng.choices(makers, weights)[0]
        choice = maker(rng, data.material, False)
        if choice is not None:
            text, answer = decide.prompt(rng, choice)
            found[f"choice {maker.__name__}"].append(f"{text[-300:]!r}  ->  {answer}")
    return found


def conversations(rng: random.Random, data: Data, count: int) -> Samples:
    found = defaultdict(list)
    makers, weights = zip(*replies.MAKERS, strict=True)
    for _ in range(count):
        maker = rng.choices(makers, weights)[0]
        talk = maker(rng, data.material)
        if talk is not None:
            prompt, answer = replies.rendered(talk)
            found[f"reply {maker.__name__}"].append(f"{prompt[-200:]!r}  ->  {answer!r}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--each", type=int, default=20, help="questions of each kind to print")
    parser.add_argument("--screens", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng, data = random.Random(args.seed), Data.load(args.data)
    groups = [
        points(rng, data, args.screens),
        about_lines(rng, data, args.screens),
        choices(rng, data, 10 * args.screens),
        conversations(rng, data, 10 * args.screens),
    ]
    for group in groups:
        for kind, found in sorted(group.items()):
            print(f"\n## {kind}")
            print("\n".join(rng.sample(found, min(args.each, len(found)))))
    print("\n## shares within each job")
    for group in groups:
        counts = Counter({kind: len(found) for kind, found in group.items()})
        for kind, count in counts.most_common():
            print(f"{kind:32s} {100 * count / counts.total():5.1f} %")


if __name__ == "__main__":
    main()
