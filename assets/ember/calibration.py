"""What the network sees in use: second moments of every projection's inputs over texts, logs and pictures.

All of it is at hand wherever Python is: documentation of the language (``pydoc_data.topics``, PSF licence), logs made
by the recipe, simple windows drawn here.
"""

from __future__ import annotations

import pydoc_data.topics
import random
from collections.abc import Iterator

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor, nn

from assets.ember.recipe.logs import log_document
from assets.ember.recipe.model import Ember, image_positions
from assets.ember.recipe.shape import Words

LENGTH = 512
TEXTS, CHATS, LOGS, PICTURES = 12, 4, 8, 20
SIZE = (512, 384)


@torch.no_grad()
def second_moments(model: Ember, words: Words, seed: int = 0) -> dict[str, Tensor]:
    """Module name → Σ x xᵀ over its inputs, float32 [columns, columns], for every projection of the text
    layers and of the merger."""
    moments: dict[str, Tensor] = {}

    def hook(name: str):
        def add(_module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            rows = inputs[0].flatten(0, -2).float()
            moments[name] = moments.get(name, 0) + rows.T @ rows

        return add

    handles = [
        module.register_forward_pre_hook(hook(name))
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and (".layers." in name or ".merger." in name)
    ]
    for embedded, positions in _inputs(model, words, random.Random(seed)):
        model.text(embedded, positions)
    for handle in handles:
        handle.remove()
    return moments


def _inputs(model: Ember, words: Words, rng: random.Random) -> Iterator[tuple[Tensor, Tensor | None]]:
    """(embedded tokens [1, L, hidden], positions or None) of each calibration prompt."""
    topics = sorted(pydoc_data.topics.topics.values(), key=len)[-4 * (TEXTS + CHATS) :]
    rng.shuffle(topics)
    for text in topics[:TEXTS]:
        yield _embed(model, words.encode(text)[:LENGTH]), None
    for text in topics[TEXTS : TEXTS + CHATS]:
        turns = f"<|im_start|>user\nExplain this.<|im_end|>\n<|im_start|>assistant\n{text[:1200]}<|im_end|>\n"
        yield _embed(model, words.encode(turns)[:LENGTH]), None
    vocabulary = sorted({word for text in topics for word in text.split() if word.isalpha() and len(word) > 3})
    for _ in range(LOGS):
        log = log_document(rng, 20, vocabulary, wanted=3)
        evidence = [token for line in log.lines for token in words.encode(line + "\n")][: LENGTH - 100]
        yield _embed(model, [*words.user, *evidence, *_asked(words, [q for q, _ in log.questions], words.line)]), None
    for _ in range(PICTURES):
        pixels, labels = _window(rng, vocabulary)
        tokens = model.vision(torch.from_numpy(pixels)[None])
        before = [*words.user, words.vision_start]
        after = [words.vision_end, *_asked(words, [f"the {label} button" for label in labels], words.point)]
        embedded = torch.cat((_embed(model, before), tokens, _embed(model, after)), 1)
        cell = model.shape.cell
        rows, columns = pixels.shape[0] // cell, pixels.shape[1] // cell
        yield embedded, image_positions(len(before), rows, columns, len(after), embedded.device)[:, None]


def _embed(model: Ember, ids: list[int]) -> Tensor:
    return model.embed(torch.tensor([ids]))


def _asked(words: Words, questions: list[str], read: int) -> list[int]:
    return [token for question in questions for token in (words.newline, *words.encode(question), read)]


def _window(rng: random.Random, vocabulary: list[str]) -> tuple[np.ndarray, list[str]]:
    """A plain window: light or dark, rows of labelled buttons and lines of text; uint8 [H, W, 3] and the labels."""
    dark = rng.random() < 0.5
    paper, ink, face = (
        ((32, 34, 38), (230, 230, 230), (60, 63, 70)) if dark else ((246, 246, 246), (20, 20, 20), (222,) * 3)
    )
    image = Image.new("RGB", SIZE, paper)
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(rng.choice((12, 14, 16)))
    labels = []
    for top in range(10, SIZE[1] - 40, 44):
        label = rng.choice(vocabulary).title()
        width = int(draw.textlength(label, font)) + 24
        draw.rounded_rectangle((12, top, 12 + width, top + 30), 5, fill=face, outline=ink)
        draw.text((24, top + 7), label, fill=ink, font=font)
        draw.text((40 + width, top + 7), " ".join(rng.sample(vocabulary, 6)), fill=ink, font=font)
        labels.append(label)
    return np.array(image), labels[:6]
