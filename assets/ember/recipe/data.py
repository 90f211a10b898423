"""Material on disk and the loaders that turn it into endless batches.

A data folder holds ``tokenizer.json``, ``config.json`` and, as far as they were made, ``documents.npz``,
``chats*.npy``,
``paraphrase_pairs.jsonl.gz``, ``screens.pack`` and ``shards/*.tar``. What is missing is left out of the mix.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from . import decide, lines, pointing, replies
from .chats import SYSTEM
from .retrieval import Document, Material, Pairs, sentences_of
from .screens import drawer
from .shape import Shape, Words
from .text import TextStream

_LABEL = re.compile(r"[A-Za-z][a-z]+( ([A-Za-z]?[a-z]+|[A-Z]{2,5}|\d+)){0,4}")


def _is_label(text: str) -> bool:
    return len(text) <= 26 and _LABEL.fullmatch(text) is not None


def _says(text: str) -> bool:
    """Whether a text is long enough to describe and short enough to be asked."""
    return 12 <= len(text) <= 100 and text.count(" ") > 1 and not re.search(r"[<>{}|=_]", text)


Arrays = dict[str, np.ndarray]
Make = Callable[[random.Random], Arrays]
CHOICES = (lines.Bucket(128, 320, 1.0), lines.Bucket(384, 110, 1.0))
"""Half of all prompts have fewer than 100 tokens."""
REPLIES = (lines.Bucket(384, 64, 1.0),)


@dataclass
class Data:
    """A data folder, read."""

    folder: Path
    words: Words
    shape: Shape
    documents: np.ndarray | None
    material: Material

    @classmethod
    def load(cls, folder: Path, *, held_out: bool = False) -> Data:
        words = Words(folder / "tokenizer.json")
        documents, sentences, pairs, vocabulary = None, None, None, []
        if (folder / "documents.npz").exists():
            documents = np.load(folder / "documents.npz")["heldout" if held_out else "train"]
            sentences = sentences_of(documents, words, 20_000 if len(documents) > 1_000_000 else 300, seed=1)
        if (folder / "paraphrase_pairs.jsonl.gz").exists():
            pairs = Pairs.load(folder / "paraphrase_pairs.jsonl.gz", held_out=held_out)
            found = sorted({w for _, text in pairs.rows for w in re.findall(r"\b[a-z]{4,10}\b", text)})
            random.Random(2).shuffle(found)
            vocabulary = found[:20_000]
        material = Material(vocabulary, pairs, sentences)
        known = list(material.thesaurus.meanings)
        spelt = words.encode_many([f" {word}" for word in known])
        material.common = [word for word, ids in zip(known, spelt, strict=True) if len(ids) == 1]
        return cls(folder, words, Shape.from_config(folder / "config.json"), documents, material)

    def text(self, seed: int) -> TextStream:
        """The stream for distillation. Chats that appear in the folder later are not picked up."""
        if self.documents is None:
            raise ValueError(f"{self.folder} has no documents.npz; make it with `python -m assets.ember.recipe.text`")
        chats = [np.load(path) for path in sorted(self.folder.glob("chats*.npy"))]
        return TextStream(
            self.documents, np.concatenate(chats) if chats else None, len(self.words.encode(SYSTEM)), seed
        )

    def glosses(self, most: int = 40_000) -> list[tuple[str, str]]:
        """(label, meaning) from the pairs: common words and short names, which stand on screens like any label. Sources
        weigh as they do in lines."""
        pairs = self.material.pairs
        if not pairs:
            return []
        rng = random.Random(4)
        rows = (pairs.rows[i] for i in dict.fromkeys(pairs.draw(rng, 6 * most)))
        short = [(text, said) for row in rows for said, text in (row, row[::-1]) if _is_label(text) and _says(said)]
        tokens = self.words.encode_many([f" {text}" for text, _ in short])
        # One word of many tokens is a rare one; a name of several words is told by them.
        return [pair for pair, ids in zip(short, tokens, strict=True) if len(ids) <= 2 * len(pair[0].split())][:most]

    def screens(self, share: float, split: str = "train") -> pointing.Screens:
        """Drawn screens when ``screens.pack`` is there, packed ones (``share`` of the views) when shards are."""
        draw = None
        if (self.folder / "screens.pack").exists():
            draw = drawer(self.folder / "screens.pack", split != "train", self.glosses())
        thesaurus = self.material.thesaurus if split == "train" else None
        return pointing.Screens(draw, self.folder / "shards", share, split, thesaurus)


class Endless(IterableDataset):
    """(bucket, batch) for ever; every worker of every rank has its own random stream. A batch that cannot be made is
    reported and passed over, so that one bad picture does not end a run."""

    def __init__(self, buckets: list[tuple[float, Make]], seed: int) -> None:
        self.buckets, self.seed = buckets, seed

    def __iter__(self) -> Iterator[tuple[int, dict[str, torch.Tensor]]]:
        worker = get_worker_info()
        torch.set_num_threads(1)
        rng = random.Random(self.seed * 1009 + (worker.id if worker else 0))
        weights = [weight for weight, _ in self.buckets]
        failures = 0
        while True:
            bucket = rng.choices(range(len(weights)), weights)[0]
            try:
                arrays = self.buckets[bucket][1](rng)
            except (ValueError, OSError, IndexError, KeyError) as error:
                failures += 1
                print(f"passed over a batch: {error!r}", flush=True)
                if failures > 200:
                    raise
                continue
            yield bucket, {name: torch.from_numpy(array) for name, array in arrays.items()}


@dataclass(frozen=True)
class Sizes:
    """Batch sizes of each kind; ``tiny`` is for dry runs on a CPU. text: (rows, tokens)."""

    points: tuple[pointing.Bucket, ...]
    lines: tuple[lines.Bucket, ...]
    choices: tuple[lines.Bucket, ...]
    replies: tuple[lines.Bucket, ...]
    text: tuple[int, int]

    @classmethod
    def full(cls) -> Sizes:
        return cls(pointing.BUCKETS, lines.BUCKETS, CHOICES, REPLIES, (20, 1024))

    @classmethod
    def tiny(cls) -> Sizes:
        buckets = (pointing.Bucket(192, 128, 2, 1.0, "native", 6), pointing.Bucket(192, 128, 2, 1.0, "zoom", 6))
        return cls(
            buckets, (lines.Bucket(160, 2, 1.0),), (lines.Bucket(160, 2, 1.0),), (lines.Bucket(512, 2, 1.0),), (2, 96)
        )


def makers(data: Data, sizes: Sizes, share: float) -> dict[str, list[tuple[float, Make]]]:
    """For "point", "line", "choice" and "reply" their buckets: (share of batches, maker). A bucket fixes a batch's
    shapes."""
    screens = data.screens(share)

    def point(bucket: pointing.Bucket) -> Make:
        return lambda rng: pointing.batch(rng, screens, data.words, bucket)

    def line(bucket: lines.Bucket) -> Make:
        return lambda rng: lines.batch(rng, data.material, data.words, bucket)

    def choice(bucket: lines.Bucket) -> Make:
        return lambda rng: decide.batch(rng, data.material, data.words, bucket.rows, bucket.tokens)

    def reply(bucket: lines.Bucket) -> Make:
        return lambda rng: replies.batch(rng, data.material, data.words, bucket.rows, bucket.tokens)

    return {
        "point": [(bucket.weight, point(bucket)) for bucket in sizes.points],
        "line": [(bucket.weight, line(bucket)) for bucket in sizes.lines],
        "choice": [(bucket.weight, choice(bucket)) for bucket in sizes.choices],
        "reply": [(bucket.weight, reply(bucket)) for bucket in sizes.replies],
    }


def examples(data: Data, sizes: Sizes) -> dict[tuple[str, int], Arrays]:
    """A batch of each shape that loaders yield, by ("point" | "line" | "choice" | "reply", bucket), without much in
    it."""
    rng, found = random.Random(0), {}
    for index, bucket in enumerate(sizes.points):
        screen = pointing.Screen(np.zeros((bucket.height, bucket.width, 3), np.uint8), [])
        asked = [("here", (0.0, 0.0, 40.0, 40.0), "button", "text")]
        found["point", index] = pointing.collate(
            rng, [screen] * bucket.rows, [asked] * bucket.rows, data.words, bucket.questions
        )
    for index, size in enumerate(sizes.lines):
        document = Document(["here"], [("here", 0)])
        found["line", index] = lines.collate([document] * size.rows, data.words, size.tokens)
    for index, size in enumerate(sizes.choices):
        found["choice", index] = decide.batch(rng, data.material, data.words, size.rows, size.tokens)
    for index, size in enumerate(sizes.replies):
        found["reply", index] = replies.batch(rng, data.material, data.words, size.rows, size.tokens)
    return found


def loaders(data: Data, sizes: Sizes, share: float, seed: int, workers: tuple[int, ...]) -> dict[str, Iterator]:
    """Iterators "point", "line", "choice" and "reply" of (bucket's index, batch); ``workers`` processes for each (0:
    batches are made in this process)."""
    found = {}
    for offset, ((name, buckets), count) in enumerate(zip(makers(data, sizes, share).items(), workers, strict=True)):
        loader = DataLoader(
            Endless(buckets, seed * 10 + offset),
            batch_size=None,
            num_workers=count,
            prefetch_factor=3 if count else None,
            pin_memory=torch.cuda.is_available(),
            persistent_workers=count > 0,
        )
        found[name] = iter(loader)
    return found
