"""Every head's scores for labelled questions, read through the engine's door."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine.answers.asking import Terms, prompt_parts, run, run_all
from engine.answers.calibrate.forms import Form
from engine.answers.calibrate.scenes import Scene
from engine.answers.calibrate.texts import Document
from engine.answers.looks import Framed
from engine.answers.readouts import Head
from engine.answers.regions import Box
from engine.messages import EngineError, HeadSpan, Prompt, RetainRequest

if TYPE_CHECKING:
    from engine.engine import Engine

ASKED, ABSENT = 8, 2
"""Questions about one scene or text: about what is there, and about what is not."""


@dataclass(frozen=True)
class Sample:
    """One question's scores, q·k/√d, and what is right."""

    group: int
    """Number of its scene or text: those of one are never split between choosing and judging."""
    scores: np.ndarray
    """float32 [heads, keys]."""
    before: np.ndarray
    after: np.ndarray
    """float32 [heads], the keys beside the span: candidates for one that says that nothing answers."""
    gold: tuple[int, ...]
    """Keys that answer; none when nothing does."""


@dataclass(frozen=True)
class PictureSample(Sample):
    grid: tuple[int, int]
    box: Box | None
    """What answers, in cells."""
    others: tuple[Box, ...]
    """All that was asked about on the same scene, in cells."""


@dataclass(frozen=True)
class TextSample(Sample):
    lengths: tuple[int, ...]
    """Keys of each line."""
    line: int | None
    others: tuple[int, ...]
    """Lines that were asked about in the same text."""
    baseline: np.ndarray | None
    """Scores of the form's baseline question."""


def all_heads(engine: Engine) -> tuple[Head, ...]:
    """Every head that can be read, layer by layer."""
    text = engine.loaded.config.text
    return tuple((layer, head) for layer in text.full_layers for head in range(text.num_heads))


def read_scene(
    engine: Engine, form: Form, scene: Scene, group: int, rng: random.Random, terms: Terms
) -> list[PictureSample]:
    """Some questions about a scene; ``rng`` says which."""
    heads = all_heads(engine)
    framed = Framed(engine, form.every_head(heads), engine.prepare_image(scene.picture))
    rows, columns = framed.grid
    across, down = columns / scene.picture.width, rows / scene.picture.height
    items = rng.sample(scene.items, min(ASKED, len(scene.items)))
    boxes = [Box(*item.box).scaled(across, down) for item in items]
    questions = [item.question for item in items] + list(scene.absent[:ABSENT])
    found = []
    suffixes = [framed.question(text) for text in questions]
    for number, (scores, before, after) in enumerate(
        _read(engine, heads, framed.prefix, suffixes, (framed.start, framed.end), terms)
    ):
        box = boxes[number] if number < len(boxes) else None
        gold = () if box is None else _cells(box, framed.grid)
        found.append(PictureSample(group, scores, before, after, gold, framed.grid, box, tuple(boxes)))
    return found


def read_document(engine: Engine, form: Form, document: Document, group: int, terms: Terms) -> list[TextSample]:
    """The questions about a text."""
    heads, encode = all_heads(engine), engine.tokenizer.encode
    parts = prompt_parts(form.every_head(heads), engine.tokenizer)
    lines = [encode(line + "\n") for line in document.lines]
    lengths = tuple(map(len, lines))
    start = len(parts.before)
    span = start, start + sum(lengths)
    asked = [*document.questions[:ASKED], *((text, None) for text in document.absent[:ABSENT])]
    texts = [text for text, _ in asked] + ([] if form.baseline is None else [form.baseline])
    prefix = Prompt((*parts.before, *(token for line in lines for token in line)))
    suffixes = [(*parts.between, *encode(text), *parts.after) for text in texts]
    read = list(_read(engine, heads, prefix, suffixes, span, terms))
    baseline = None if form.baseline is None else read.pop()[0]
    others = tuple(line for _, line in document.questions[:ASKED])
    edges = np.cumsum([0, *lengths])
    found = []
    for (_, line), (scores, before, after) in zip(asked, read, strict=True):
        gold = () if line is None else tuple(range(int(edges[line]), int(edges[line + 1])))
        found.append(TextSample(group, scores, before, after, gold, lengths, line, others, baseline))
    return found


def _cells(box: Box, grid: tuple[int, int]) -> tuple[int, ...]:
    """Cells that the middle of a box touches: three fifths of it each way."""
    rows, columns = grid
    x, y = box.centre
    half_x, half_y = 0.3 * (box.x1 - box.x0), 0.3 * (box.y1 - box.y0)
    across = range(max(0, int(x - half_x)), min(columns, int(x + half_x) + 1))
    down = range(max(0, int(y - half_y)), min(rows, int(y + half_y) + 1))
    return tuple(row * columns + column for row in down for column in across)


def _read(
    engine: Engine,
    heads: tuple[Head, ...],
    prefix: Prompt,
    suffixes: Sequence[tuple[int, ...]],
    span: tuple[int, int],
    terms: Terms,
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(scores [heads, keys], those of the key before them [heads], of the key after them [heads]) for each suffix."""
    start, end = span
    with _retained(engine, prefix, 1 + heads[-1][0], terms) as held:
        wanted = HeadSpan(heads, start, end, (start - 1, end))
        requests = [terms.read(Prompt(suffix), wanted, "calibration", held) for suffix in suffixes]
        for outcome in run_all(engine, requests, terms.cancelled, first_alone=False):
            if isinstance(outcome, EngineError):
                raise outcome
            scores = outcome[0]
            assert scores is not None
            assert scores.heads is not None
            if not np.isfinite(scores.heads).all():
                raise EngineError("An attention head could not be read.", code="readout_failed")
            yield scores.heads[:, :-2], scores.heads[:, -2], scores.heads[:, -1]


@contextmanager
def _retained(engine: Engine, prefix: Prompt, layers: int, terms: Terms) -> Iterator[str]:
    from engine.engine import new_id

    name = new_id("calibrate")
    request = RetainRequest(
        id=name,
        prompt=prefix,
        layers=layers,
        request_class=terms.request_class,
        client=terms.client,
        label="calibration",
    )
    try:
        run(engine, request, None, terms.cancelled)
        yield name
    finally:
        engine.release(name)
