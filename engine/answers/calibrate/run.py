"""The whole calibration: material, reads, choice."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from engine.answers.asking import Cancelled, Terms
from engine.answers.calibrate.choose import Chosen, Figures, best_mass, choose
from engine.answers.calibrate.forms import Form, line_forms, point_forms
from engine.answers.calibrate.samples import Sample, all_heads, read_document, read_scene
from engine.answers.calibrate.scenes import make_scenes
from engine.answers.calibrate.texts import make_documents
from engine.answers.readouts import Readout
from engine.messages import RequestError

if TYPE_CHECKING:
    from engine.engine import Engine

Subject = Literal["point", "line"]
OnStep = Callable[[str, int, int], None]
"""Called with what is read, how many are read and how many there are."""
TRIED = 6
"""Scenes or texts on which prompts are compared, where there are several."""


@dataclass(frozen=True)
class Calibration:
    """What was chosen, by the lists' names, and on what."""

    readouts: Mapping[str, Readout]
    figures: Mapping[str, Figures]
    scenes: int
    texts: int
    seed: int

    @property
    def worthless(self) -> list[str]:
        """Names of the lists that are no better than chance."""
        return [name for name, found in self.figures.items() if not found.better_than_chance]


def calibrate(
    engine: Engine,
    *,
    subjects: Sequence[Subject] = ("point", "line"),
    scenes: int = 40,
    texts: int = 36,
    seed: int = 0,
    on_step: OnStep | None = None,
    cancelled: Cancelled | None = None,
) -> Calibration:
    """Choose the heads of the loaded model. Pointing is left out for a model that takes no pictures.

    Raises:
        RequestError: nothing is left to choose heads for.
        CancelledError: ``cancelled`` said so.
    """
    terms = Terms("interactive", "calibrate", None, cancelled)
    tell = on_step or (lambda what, done, total: None)
    chosen: dict[str, Chosen] = {}
    if "point" in subjects and engine.info.vision:
        pictures = make_scenes(scenes, seed)

        def look(form: Form, number: int) -> Sequence[Sample]:
            rng = random.Random(f"{seed} {number}")
            return read_scene(engine, form, pictures[number], number, rng, terms)

        vision = engine.loaded.config.vision
        assert vision is not None
        form, samples = _read(point_forms(engine.tokenizer), look, len(pictures), "screens", tell)
        chosen[form.name] = choose(form, all_heads(engine), samples, vision.cell)
    if "line" in subjects:
        documents = make_documents(texts, seed)

        def read(form: Form, number: int) -> Sequence[Sample]:
            return read_document(engine, form, documents[number], number, terms)

        form, samples = _read(line_forms(engine.tokenizer), read, len(documents), "texts", tell)
        chosen[form.name] = choose(form, all_heads(engine), samples, None)
    if not chosen:
        raise RequestError(f"{engine.info.name} takes no pictures; calibrate it for lines.", code="no_vision")
    return Calibration(
        {name: found.readout for name, found in chosen.items()},
        {name: found.figures for name, found in chosen.items()},
        scenes,
        texts,
        seed,
    )


def _read(
    forms: Sequence[Form], read: Callable[[Form, int], Sequence[Sample]], count: int, what: str, tell: OnStep
) -> tuple[Form, list[Sample]]:
    """Samples of all the material, by the form of which one head sees most of what answers."""
    tried = min(TRIED, count)
    total = tried * len(forms) + count - tried
    done = 0
    best: tuple[float, Form, list[Sample]] | None = None
    for form in forms:
        samples: list[Sample] = []
        for number in range(tried):
            samples += read(form, number)
            done += 1
            tell(what, done, total)
        mass = best_mass(samples)
        if best is None or mass > best[0]:
            best = mass, form, samples
    assert best is not None
    _, form, samples = best
    for number in range(tried, count):
        samples += read(form, number)
        done += 1
        tell(what, done, total)
    return form, samples
