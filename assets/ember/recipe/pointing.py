"""Pointing batches: views of screens, questions about their elements, and where (or nowhere) each is.

The prompt is the product's: ``<|im_start|>user\\n<|vision_start|>IMAGE<|vision_end|>\\n{question}<|point|>``; many
questions share the computation of one picture, each as if it stood alone (``branches.py``). The readout compares the
query at ``<|point|>`` with the keys of the image tokens and with one key more, that of ``<|vision_start|>`` just before
them: the *nothing* slot.

A screen is seen in three ways, as the product sees it: as it is, shrunk (what happens above 1080p), and as a crop
enlarged two to three times (the second look).
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from .screens.pack import Shard
from .shape import Words
from .wordings import Thesaurus

Item = dict[str, Any]
"""``{"box": [x0, y0, x1, y1], "kind": str, "queries": [{"q": str, "by": "text" | "name" | "function"}]}``; a box of
None is an element that is not on the screen."""
Draw = Callable[[random.Random, int, int], tuple[np.ndarray, list[Item]]]

ABSENT = 0.12
"""Of the questions about a view; up to half of them are near to what is there."""
TOKENS = 24
"""Of a question with its leading newline and its ``<|point|>``; longer ones are cut."""
NAMED = 1024
"""Small elements of a batch whose names are learned from their image tokens."""
WAYS = ("text", "name", "function")
FUNCTION, FUNCTION_OF_TEXT = 1.3, 2.0
"""How much more often than another way an element is asked by what it is for, the hardest to learn; and one of
``TEXTS``."""
TEXTS = frozenset(("link", "combo", "header", "tab", "item"))
"""Kinds that on real screens are found least by what they are for."""
PLACED = 0.06
"""Share of questions that say where on the picture the element is, of absent ones too."""
MEANT = 0.3
"""Share of the questions by text that are asked by what the text means, or by a part of it, instead."""
CONTRASTED = 0.05
"""Share of the questions by text that say what is not meant."""
COMMON = frozenset(
    ["the", "and", "for", "with", "from", "that", "this", "all", "your", "you", "not", "are", "can", "has"]
)
SMALL = frozenset(("icon", "check", "radio", "switch", "window-control", "button", "tab", "menu"))
"""Kinds that are asked for twice as often as running text: they are clicked, and they are hard to see."""


@dataclass(frozen=True)
class Bucket:
    """Pictures of one size: (width, height) in pixels, pictures a batch, share of batches, how packed screens are
    viewed, questions a picture. Drawn ones come as whole, shrunk or enlarged screens of their own accord."""

    width: int
    height: int
    rows: int
    weight: float
    view: str
    questions: int = 32


BUCKETS = (
    # Rows are such that every bucket takes about as long as the others: ranks wait for each other.
    Bucket(640, 480, 70, 0.6, "native", 16),
    Bucket(800, 608, 48, 0.8, "native", 24),
    Bucket(1024, 768, 32, 1.6, "native"),
    Bucket(1280, 800, 24, 1.6, "native"),
    Bucket(1376, 768, 23, 1.0, "native"),
    Bucket(1920, 1088, 11, 1.4, "native"),
    Bucket(1920, 1056, 12, 1.8, "shrunk"),
    Bucket(1280, 704, 28, 0.6, "shrunk"),
    Bucket(768, 480, 62, 1.2, "zoom", 16),
    Bucket(960, 640, 38, 1.2, "zoom", 24),
    Bucket(1280, 800, 24, 0.5, "zoom"),  # the shapes of the native one, so that both are one graph
)


@dataclass
class Screen:
    """One picture, uint8 [height, width, 3], and its elements."""

    pixels: np.ndarray
    items: list[Item]

    @property
    def size(self) -> tuple[int, int]:
        return self.pixels.shape[1], self.pixels.shape[0]


def items_of(record: dict[str, Any]) -> list[Item]:
    """A packed screen's elements, with the absent ones it names."""
    return record["items"] + [{"box": None, "kind": "absent", "queries": [query]} for query in record.get("absent", ())]


class Screens:
    """Screens to train on: drawn on the fly, or packed beforehand. Shards are looked up again now and then, so packs
    that arrive while training runs are used too."""

    def __init__(
        self,
        draw: Draw | None,
        shards: Path | None,
        share: float,
        split: str = "train",
        thesaurus: Thesaurus | None = None,
    ) -> None:
        self.thesaurus = thesaurus
        self.draw, self.folder, self.share, self.split = draw, shards, share, split
        self.shards: dict[Path, tuple[Shard, list[int]]] = {}
        self.left = 0

    def _refresh(self) -> None:
        if self.folder is None or self.left > 0:
            self.left -= 1
            return
        self.left = 500
        for path in sorted(self.folder.glob("*.tar")):
            if path not in self.shards:
                shard = Shard(path)
                keep = [i for i, record in enumerate(shard.records) if record["split"] == self.split]
                if keep:
                    self.shards[path] = shard, keep

    def packed(self, rng: random.Random) -> Screen | None:
        """A packed screen of any size, or None when it is the drawer's turn."""
        self._refresh()
        if not self.shards or (self.draw is not None and rng.random() >= self.share):
            return None
        shard, keep = rng.choices(list(self.shards.values()), [len(k) for _, k in self.shards.values()])[0]
        index = rng.choice(keep)
        return Screen(shard.picture(index), items_of(shard.records[index]))

    def drawn(self, rng: random.Random, width: int, height: int) -> Screen:
        if self.draw is None:
            raise ValueError(
                f"no screens: {self.folder} holds no shard with split {self.split} and no drawer was given"
            )
        return Screen(*self.draw(rng, width, height))


def fit(width: int, height: int, cell: int = 32, most: int = 2048) -> tuple[int, int]:
    """The size at which the model sees a picture: multiples of ``cell``, at most ``most`` cells (as the product
    sizes)."""
    w, h = max(cell, round(width / cell) * cell), max(cell, round(height / cell) * cell)
    if w * h > most * cell * cell:
        shrink = (width * height / (most * cell * cell)) ** 0.5
        w, h = (max(cell, int(side / shrink / cell) * cell) for side in (width, height))
    return w, h


def view(
    screen: Screen, window: tuple[float, float, float, float], width: int, height: int, least: float = 4.0
) -> Screen:
    """The part of a screen inside ``window`` (x0, y0, x1, y1), resampled to width × height. Elements partly outside it
    or smaller than ``least`` pixels afterwards are dropped; those all outside are not there (their box is None)."""
    x0, y0, x1, y1 = window
    sx, sy = width / (x1 - x0), height / (y1 - y0)
    pixels = screen.pixels
    if (x0, y0, x1, y1) != (0, 0, *screen.size) or screen.size != (width, height):
        pixels = np.asarray(Image.fromarray(pixels).resize((width, height), Image.Resampling.BICUBIC, box=window))
    items = []
    for item in screen.items:
        if item["box"] is None:
            items.append(item)
            continue
        a, b, c, d = item["box"]
        left, top, right, bottom = max(a, x0), max(b, y0), min(c, x1), min(d, y1)
        if right <= left or bottom <= top:
            items.append({**item, "box": None, "kind": "outside"})
            continue
        if (right - left) * (bottom - top) < 0.6 * (c - a) * (d - b):
            continue
        box = ((left - x0) * sx, (top - y0) * sy, (right - x0) * sx, (bottom - y0) * sy)
        if min(box[2] - box[0], box[3] - box[1]) >= least:
            items.append({**item, "box": box})
    return Screen(pixels, items)


def _window(rng: random.Random, screen: Screen, bucket: Bucket, zoom: float) -> tuple[float, float, float, float]:
    """A window of the bucket's shape at ``zoom`` times enlargement, around a random element but not centred on it."""
    width, height = screen.size
    w, h = min(width, bucket.width / zoom), min(height, bucket.height / zoom)
    boxes = [item["box"] for item in screen.items if item["box"] is not None]
    if boxes:
        a, b, c, d = rng.choice(boxes)
        x, y = (a + c) / 2 - w * rng.uniform(0.15, 0.85), (b + d) / 2 - h * rng.uniform(0.15, 0.85)
    else:
        x, y = rng.uniform(0, width - w), rng.uniform(0, height - h)
    x, y = round(min(max(0, x), width - w)), round(min(max(0, y), height - h))
    return x, y, min(width, x + w), min(height, y + h)


def views(rng: random.Random, screens: Screens, bucket: Bucket) -> list[Screen]:
    """One or more views of one screen at the bucket's size; several crops of a packed screen for a zoom bucket."""
    w, h = bucket.width, bucket.height
    screen = screens.packed(rng)
    if screen is None:
        return [screens.drawn(rng, w, h)]
    width, height = screen.size
    if bucket.view == "zoom":
        return [view(screen, _window(rng, screen, bucket, rng.uniform(1.4, 2.7)), w, h) for _ in range(3)]
    same = abs(width / height / (w / h) - 1) < 0.08
    if same and (bucket.view == "shrunk" or width <= 1.1 * w):
        return [view(screen, (0, 0, width, height), w, h)]
    least = max(w / width, h / height)  # enlargement at which the window still fits the screen
    zoom = least if bucket.view == "shrunk" else max(1.0, least)
    return [view(screen, _window(rng, screen, bucket, zoom), w, h)]


_DRESSED = re.compile(
    r"\b(click|press|open|select|choose|find|where|how|the|icon|button|tab|menu|item|field|link)\b", re.IGNORECASE
)


def wording(rng: random.Random, question: str, by: str) -> str:
    """A question as people type it: sometimes as an order, in any case."""
    text = question
    if by != "function" and rng.random() < 0.25 and not _DRESSED.search(text):
        text = rng.choice(
            ("click {}", "click on {}", "press {}", "{}, please", "where is {}?", "find {}", '"{}"')
        ).format(text)
    x = rng.random()
    return text.lower() if x < 0.25 else text.upper() if x < 0.27 else text[:1].upper() + text[1:] if x < 0.35 else text


def _content(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]{3,}", text.lower()))


def place(box: tuple[float, ...], size: tuple[int, int]) -> str:
    """Where on the picture a box lies, as people say it; empty for what lies in between."""
    x, y = (box[0] + box[2]) / 2 / size[0], (box[1] + box[3]) / 2 / size[1]
    across = "left" if x < 0.3 else "right" if x > 0.7 else ""
    down = "top" if y < 0.25 else "bottom" if y > 0.75 else ""
    if across and down:
        return f"at the {down} {across}"
    if down:
        return f"at the {down}"
    return f"on the {across}" if across else "in the middle" if 0.4 < x < 0.6 and 0.4 < y < 0.6 else ""


def _placed(rng: random.Random, question: str, where: str) -> str:
    """The question with the place it speaks of, before it or at its end."""
    if rng.random() < 0.3:
        return f"{where}: {question}"
    return f"{question.rstrip('?')} {where}{'?' if question.endswith('?') else ''}"


def _texts(item: Item) -> list[str]:
    """What is written on an element."""
    return [query["q"] for query in item["queries"][:1] if query["by"] == "text"]


def _contrasted(rng: random.Random, question: str, item: Item, present: list[Item]) -> str:
    """A question by text with the name of a similar element that is not meant."""
    words = _content(question)
    near = [t for other in present if other is not item for t in _texts(other) if words & _content(t)]
    near = [t for t in near if t.lower() not in question.lower()]
    return (
        rng.choice(("{}, not {}", "{} and not {}", "{} (not {})")).format(question, rng.choice(near))
        if near
        else question
    )


_PART = (
    "something about {w}",
    "the one with {w}",
    "anything to do with {w}",
    "I want to know about {w}",
    "take me to {w}",
    "it has to do with {w}",
    "where do I find {w}?",
    "{w}",
)
_SENSE = (
    "{w}",
    "{w}",
    "the one that means this: {w}",
    "it is about this: {w}",
    "another word for {w}?",
    "I want this: {w}",
)


def meant(rng: random.Random, item: Item, present: list[Item], thesaurus: Thesaurus | None) -> str | None:
    """A question by what an element's text means, or by one or two of its words that no other text has; None where
    there is no way to say it."""
    texts = _texts(item)
    words = [w for w in re.findall(r"[A-Za-z]{3,}", texts[0]) if w.lower() not in COMMON] if texts else []
    if not 0 < len(words) < 8:
        return None
    if thesaurus and rng.random() < 0.65:
        said = thesaurus.described(rng, words[:3], rng.choice((0.0, 0.0, 0.4)))
        if said:
            return rng.choice(_SENSE).format(w=said.rstrip("."))
    elsewhere = {w for other in present if other is not item for text in _texts(other) for w in _content(text)}
    own = [w for w in words if w.lower() not in elsewhere]
    if len(words) < 2 or not own:
        return None
    picked = [w.lower() for w in own if rng.random() < 0.6][:2] or [rng.choice(own).lower()]
    return rng.choice(_PART).format(w=" ".join(picked))


def _missing(
    rng: random.Random, screen: Screen, others: list[Item], present: list[Item], wanted: int
) -> list[tuple[str, None, str, str]]:
    """Questions about ``wanted`` elements that the view does not have. Those that a screen is known to lack may share
    words with what is there; of the others only those that share none are surely absent, or whose whole text is
    nowhere."""
    here = {word for item in present for query in item["queries"] for word in _content(query["q"])}
    written = " \n ".join(t.lower() for item in present for t in _texts(item))
    known = [item for item in screen.items if item["box"] is None]
    rng.shuffle(known)
    near: list[tuple[str, None, str, str]] = []
    far: list[tuple[str, None, str, str]] = []
    elsewhere = rng.sample(others, min(len(others), 6 * wanted))
    for item, own in [(item, True) for item in known] + [(item, False) for item in elsewhere]:
        if not item["queries"]:
            continue
        query = rng.choice(item["queries"])
        words = _content(query["q"])
        if own and item["kind"] == "absent":
            near.append((query["q"], None, "absent", query["by"]))
        elif words and not words & here:
            far.append((query["q"], None, item["kind"], query["by"]))
        elif query["by"] == "text" and len(words) > 1 and query["q"].lower() not in written and words - here:
            near.append((query["q"], None, item["kind"], "text"))
    some = near[: wanted // 2 + rng.randint(0, wanted % 2)]
    found = (some + far + near[len(some) :])[:wanted]
    return [(wording(rng, question, by), None, kind, by) for question, _, kind, by in found]


def questions(
    rng: random.Random, screen: Screen, others: list[Item], most: int, thesaurus: Thesaurus | None = None
) -> list[tuple[str, tuple | None, str, str]]:
    """Up to ``most`` (question, box or None when absent, kind, by) for a view; ``others`` come from other screens."""
    present = [item for item in screen.items if item["box"] is not None]
    said = Counter(text for item in present for text in {query["q"].lower() for query in item["queries"]})

    def weight(item: Item) -> float:
        x0, y0, x1, y1 = item["box"]
        return (2.0 if min(x1 - x0, y1 - y0) < 26 else 1.0) * (2.0 if item["kind"] in SMALL else 1.0)

    found: list[tuple[str, tuple | None, str, str]] = []
    for item in sorted(present, key=lambda item: rng.random() ** (1 / weight(item)), reverse=True)[:most]:
        choices = [query for query in item["queries"] if said[query["q"].lower()] == 1]
        if not choices:
            continue
        ways = sorted({query["by"] for query in choices})
        function = FUNCTION_OF_TEXT if item["kind"] in TEXTS else FUNCTION
        by = rng.choices(ways, [function if way == "function" else 1.0 for way in ways])[0]
        query = rng.choice([query for query in choices if query["by"] == by])
        text, box = wording(rng, query["q"], by), tuple(item["box"])
        if by == "text" and rng.random() < MEANT and (sense := meant(rng, item, present, thesaurus)):
            text, by = sense, "function"
        elif by == "text" and rng.random() < CONTRASTED:
            text = _contrasted(rng, text, item, present)
        elif rng.random() < PLACED and (where := place(box, screen.size)):
            text = _placed(rng, text, where)
        found.append((text, box, item["kind"], by))
    wanted = max(1, round(ABSENT * len(found)))
    del found[most - wanted :]
    for text, _, kind, by in _missing(rng, screen, others, present, wanted):
        where = place((rng.random() * 2, rng.random() * 2, 0, 0), (1, 1)) if rng.random() < PLACED else ""
        found.append((_placed(rng, text, where) if where else text, None, kind, by))
    rng.shuffle(found)
    return found


def collate(
    rng: random.Random, shown: list[Screen], asked: list[list[tuple]], words: Words, most: int, cell: int = 32
) -> dict[str, np.ndarray]:
    """A batch whose shapes depend on the bucket alone, B pictures with Q = ``most`` questions each: images uint8
    [B, H, W, 3]; ids [B, Q, TOKENS] (newline, question, ``<|point|>``, padding) and at [B, Q], the index of its
    ``<|point|>``; box [B, Q, 4]; absent, asked [B, Q]; by [B, Q], index into ``WAYS``; named [NAMED, 2]: (token of the
    batch's pictures in a row, vocabulary token of the name of the small element there), -100 for none."""
    rows = len(shown)
    out = {
        "images": np.stack([s.pixels for s in shown]),
        "ids": np.zeros((rows, most, TOKENS), np.int64),
        "at": np.zeros((rows, most), np.int64),
        "box": np.zeros((rows, most, 4), np.float32),
        "absent": np.zeros((rows, most), bool),
        "asked": np.zeros((rows, most), bool),
        "by": np.zeros((rows, most), np.int64),
        "named": np.tile(np.array([0, -100], np.int64), (NAMED, 1)),
    }
    names: list[tuple[int, str]] = []
    for i, (screen, row) in enumerate(zip(shown, asked, strict=True)):
        for j, (tokens, (_, box, _, by)) in enumerate(zip(words.encode_many([q for q, *_ in row]), row, strict=True)):
            ids = [words.newline, *tokens[: TOKENS - 2], words.point]
            out["ids"][i, j, : len(ids)] = ids
            out["at"][i, j], out["asked"][i, j], out["absent"][i, j] = len(ids) - 1, True, box is None
            out["by"][i, j] = WAYS.index(by)
            if box is not None:
                out["box"][i, j] = box
        columns, lines = screen.size[0] // cell, screen.size[1] // cell
        for item in screen.items:
            if item["box"] is None:
                continue
            x0, y0, x1, y1 = item["box"]
            found = [q["q"] for q in item["queries"] if q["by"] == "name"]
            if found and max(x1 - x0, y1 - y0) < 2.5 * cell:
                at = int((y0 + y1) / 2) // cell * columns + int((x0 + x1) / 2) // cell
                names.append((i * columns * lines + at, rng.choice(found)))
    names = rng.sample(names, min(len(names), NAMED))
    for index, ((at, _), tokens) in enumerate(zip(names, words.encode_many([f" {n}" for _, n in names]), strict=True)):
        out["named"][index] = at, rng.choice(tokens)
    return out


def batch(rng: random.Random, screens: Screens, words: Words, bucket: Bucket) -> dict[str, np.ndarray]:
    """One batch of a bucket. Views with fewer than two elements are passed over."""
    shown: list[Screen] = []
    while len(shown) < bucket.rows:
        shown += [s for s in views(rng, screens, bucket) if sum(item["box"] is not None for item in s.items) > 1]
    shown = shown[: bucket.rows]
    rng.shuffle(shown)
    asked = []
    for index, screen in enumerate(shown):
        others = [item for k in (1, 5, 9) if len(shown) > k for item in shown[index - k].items]
        asked.append(questions(rng, screen, others, bucket.questions, screens.thesaurus))
    return collate(rng, shown, asked, words, bucket.questions)
