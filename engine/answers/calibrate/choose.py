"""From samples to a head list: heads ranked by their attention on what answers, the best list among some of them, and
how good it is on samples that had no say in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.answers.calibrate.forms import Form
from engine.answers.calibrate.judge import Rows, gold_mass, judge, log_shares
from engine.answers.calibrate.samples import Sample
from engine.answers.readouts import Combine, Decode, Head, Nothing, Readout

FOLDS = 5
SCALES = (0.0625, 0.125, 0.25, 1 / 3, 0.5, 1.0, 2.0)
SUMS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
SETS = (8, 16, 32, 64, 96)
LEAST_BALANCED = 0.7
"""What tells present from absent is used when its balanced accuracy is at least this; one half is chance."""
LEAST_Z = 4.0
"""Standard deviations above chance from which a list counts as better than that."""
_DECODES: dict[Combine, Decode] = {
    "sum": "segment_mass",
    "vote": "segment_vote",
    "end": "segment_end",
    "anchor_set": "set_extent",
}


@dataclass(frozen=True)
class Figures:
    """On samples that had no say in the choice."""

    questions: int
    right: float
    """Share of questions with an answer that are answered rightly (whether or not they are then refused)."""
    chance: float
    """Share that the same answers would get right, were the questions of each scene or text shuffled."""
    z: float
    """How many standard deviations ``right`` is above ``chance``."""
    folds: tuple[float, ...]
    absent: int
    absent_refused: float | None
    present_refused: float | None
    """None where nothing is refused."""

    @property
    def tells_absent(self) -> bool:
        if self.absent_refused is None or self.present_refused is None:
            return False
        return (self.absent_refused + 1 - self.present_refused) / 2 >= LEAST_BALANCED

    @property
    def better_than_chance(self) -> bool:
        return self.z >= LEAST_Z


@dataclass(frozen=True)
class Chosen:
    readout: Readout
    figures: Figures


def choose(form: Form, heads: Sequence[Head], samples: Sequence[Sample], cell: int | None) -> Chosen:
    """The list for all samples, with figures from five folds: each judged by the list of the other four.

    Args:
        heads: what the rows of the samples' scores are.
        cell: pixels a side of a picture's key.
    """
    rows = {head: row for row, head in enumerate(heads)}
    folds = []
    groups = sorted({sample.group for sample in samples})
    for number in range(min(FOLDS, len(groups))):
        held = set(groups[number::FOLDS])
        list_ = _best(form, rows, [sample for sample in samples if sample.group not in held], cell)
        folds.append(_Judged(list_, rows, [sample for sample in samples if sample.group in held]))
    readout, figures = _best(form, rows, samples, cell), _figures(folds)
    if figures.tells_absent:
        return Chosen(readout, figures)
    # What told present from absent where it was chosen and does not elsewhere is left out.
    return Chosen(
        replace(readout, nothing=None, found_threshold=None),
        replace(figures, absent_refused=None, present_refused=None),
    )


def best_mass(samples: Sequence[Sample]) -> float:
    """Mean attention of the best head on what answers: how well a form suits the model."""
    return float(_masses(samples).max())


class _Judged:
    """Verdicts on samples that had no say."""

    def __init__(self, readout: Readout, rows: Rows, samples: Sequence[Sample]) -> None:
        verdicts = [(bool(sample.gold), judge(readout, rows, sample)) for sample in samples]
        self.present = [verdict for there, verdict in verdicts if there]
        self.absent = [verdict for there, verdict in verdicts if not there]
        self.refuses = readout.nothing is not None or readout.found_threshold is not None
        threshold = readout.found_threshold or 0.0
        self.refused = [
            [v.nothing >= readout.refuse_above or v.confidence < threshold for v in group]
            for group in (self.present, self.absent)
        ]


def _figures(folds: Sequence[_Judged]) -> Figures:
    present = [verdict for fold in folds for verdict in fold.present]
    right = np.array([verdict.right for verdict in present], np.float64)
    chance = np.array([verdict.chance for verdict in present])
    # A list that never answers anything that was asked about is right in vain: a little variance is always there.
    deviation = float(np.sqrt((chance * (1 - chance)).sum() + 0.25))
    refuses = any(fold.refuses for fold in folds)
    refused = [[said for fold in folds for said in fold.refused[group]] for group in (0, 1)]
    return Figures(
        questions=len(present),
        right=float(right.mean()),
        chance=float(chance.mean()),
        z=float((right - chance).sum()) / deviation,
        folds=tuple(float(np.mean([v.right for v in fold.present])) for fold in folds if fold.present),
        absent=len(refused[1]),
        absent_refused=float(np.mean(refused[1])) if refuses and refused[1] else None,
        present_refused=float(np.mean(refused[0])) if refuses else None,
    )


def _masses(samples: Sequence[Sample]) -> np.ndarray:
    out: np.ndarray = np.mean([gold_mass(sample) for sample in samples if sample.gold], axis=0)
    return out


def _best(form: Form, rows: Rows, samples: Sequence[Sample], cell: int | None) -> Readout:
    """Of each way to combine heads the best list, and of these the one that is right most often.

    Sums are compared by the probability that they give to what answers, which tells lists apart that are right equally
    often; other lists by how often they are right, then by their heads' attention on what answers.
    """
    present = [sample for sample in samples if sample.gold]
    masses = _masses(samples)
    ranked = [head for head, _ in sorted(rows.items(), key=lambda item: -masses[item[1]])]
    best: dict[Combine, tuple[tuple[float, float], Readout]] = {}
    for candidate in _candidates(form, ranked, cell):
        readout = candidate
        if readout.combine == "sum":
            readout, likely = _scaled(readout, rows, present)
            merit = likely, 0.0
        else:
            merit = _right(readout, rows, present), float(masses[[rows[head] for head in readout.heads]].mean())
        if readout.combine not in best or merit > best[readout.combine][0]:
            best[readout.combine] = merit, readout
    found = max((readout for _, readout in best.values()), key=lambda readout: _right(readout, rows, present))
    return _refusing(found, rows, samples)


def _right(readout: Readout, rows: Rows, present: Sequence[Sample]) -> float:
    return float(np.mean([judge(readout, rows, sample).right for sample in present]))


def _candidates(form: Form, ranked: Sequence[Head], cell: int | None) -> Iterator[Readout]:
    def make(heads: Sequence[Head], combine: Combine, anchor: Head | None = None) -> Readout:
        decode: Decode = "peak_3x3" if form.over == "image" and combine == "sum" else _DECODES[combine]
        every = form.every_head(tuple(heads))
        return replace(every, combine=combine, decode=decode, anchor=anchor, cell=cell)

    for combine in form.combines:
        if combine == "anchor_set":
            for count in (count for count in SETS if count <= len(ranked)):
                yield make(ranked[:count], combine, ranked[0])
        else:
            for count in (count for count in SUMS if count <= len(ranked)):
                yield make(ranked[:count], combine)
        if combine == "sum":
            for layer in sorted({layer for layer, _ in ranked}):
                yield make(sorted(head for head in ranked if head[0] == layer), combine)


def _scaled(readout: Readout, rows: Rows, present: Sequence[Sample]) -> tuple[Readout, float]:
    """With the factor that gives most probability to what answers, and the mean of that probability's logarithm."""
    heads = [rows[head] for head in readout.heads]
    likely = np.mean([log_shares(heads, SCALES, sample) for sample in present], axis=0)
    best = int(likely.argmax())
    return replace(readout, scale=SCALES[best]), float(likely[best])


def _refusing(readout: Readout, rows: Rows, samples: Sequence[Sample]) -> Readout:
    """With what tells best that nothing answers, if anything tells it well enough: a key beside the span, or else the
    confidence."""
    if all(sample.gold for sample in samples):
        return readout
    there = np.array([bool(sample.gold) for sample in samples])
    if readout.combine == "sum":
        places: tuple[Nothing, ...] = ("before", "after")
        told = {place: _by_key(readout, rows, samples, there, place) for place in places}
        place = max(places, key=told.__getitem__)
        if told[place] >= LEAST_BALANCED:
            return replace(readout, nothing=place)
    if readout.over != "image":
        return readout  # what locate compares with a threshold is not the heads' share alone
    sure = np.array([judge(readout, rows, sample).confidence for sample in samples])
    levels = np.unique(np.quantile(sure, np.linspace(0.02, 0.98, 49)).round(4))
    balanced = [(_balanced(sure >= level, there), -level) for level in levels]
    share, level = max(balanced)
    return replace(readout, found_threshold=float(-level)) if share >= LEAST_BALANCED else readout


def _by_key(readout: Readout, rows: Rows, samples: Sequence[Sample], there: np.ndarray, place: Nothing) -> float:
    tried = replace(readout, nothing=place)
    found = np.array([judge(tried, rows, sample).nothing < tried.refuse_above for sample in samples])
    return _balanced(found, there)


def _balanced(found: np.ndarray, there: np.ndarray) -> float:
    """Mean of the shares of present and of absent things that are told rightly."""
    return float((found[there].mean() + (~found[~there]).mean()) / 2)
