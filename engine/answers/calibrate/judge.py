"""What a head list would answer to a sample, by the same code that answers with it later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.answers.calibrate.samples import PictureSample, Sample, TextSample
from engine.answers.locate.combine import evidence
from engine.answers.looks import heat_of, look_of
from engine.answers.readouts import Head, Nothing, Readout
from engine.answers.regions import Box, place_of
from engine.messages import Peaks, Scores

Rows = dict[Head, int]
"""Where each head stands among a sample's scores."""


@dataclass(frozen=True)
class Verdict:
    right: bool
    """Of a sample that has an answer: whether this is it."""
    chance: float
    """Share of all that was asked about in the same scene or text that the answer would also be right for: how often
    who does not understand the question is right by answering so."""
    confidence: float
    nothing: float


def judge(readout: Readout, rows: Rows, sample: Sample) -> Verdict:
    if isinstance(sample, PictureSample):
        return _pointed(readout, rows, sample)
    assert isinstance(sample, TextSample)
    return _located(readout, rows, sample)


def _extra(nothing: Nothing | None, sample: Sample) -> np.ndarray | None:
    """Scores of the nothing key, [heads]."""
    if nothing is None:
        return None
    return sample.before if nothing == "before" else sample.after


def _pointed(readout: Readout, rows: Rows, sample: PictureSample) -> Verdict:
    chosen = [rows[head] for head in ([readout.anchor] if readout.anchor is not None else readout.heads)]
    scores, extra = sample.scores[chosen], _extra(readout.nothing, sample)
    if extra is not None:
        scores = np.concatenate([scores, extra[chosen][:, None]], axis=1)
    if readout.anchor is None:  # as look_of, less the box
        heat, nothing = heat_of(readout, Scores(scores), sample.grid)
        place = place_of(heat, 1)
        x, y, confidence = place.x, place.y, place.share * (1 - nothing)
    else:
        peaks = peaks_of(sample.scores[[rows[head] for head in readout.heads]], sample.grid)
        look = look_of(readout, Scores(scores, None, peaks), sample.grid)
        x, y, confidence, nothing = look.x, look.y, look.confidence, look.nothing
    chance = float(np.mean([_inside(x, y, box) for box in sample.others]))
    return Verdict(sample.box is not None and _inside(x, y, sample.box), chance, confidence, nothing)


def _inside(x: float, y: float, box: Box) -> bool:
    return box.x0 <= x <= box.x1 and box.y0 <= y <= box.y1


def _located(readout: Readout, rows: Rows, sample: TextSample) -> Verdict:
    chosen = [rows[head] for head in readout.heads]
    scores, extra = sample.scores[chosen], _extra(readout.nothing, sample)
    if extra is not None:
        scores = np.concatenate([scores, extra[chosen][:, None]], axis=1)
    baseline = sample.baseline[chosen] if readout.baseline is not None and sample.baseline is not None else None
    said = evidence(readout, scores, baseline, sample.lengths)
    line = int(said.segments.argmax())
    chance = float(np.mean([line == other for other in sample.others]))
    return Verdict(line == sample.line, chance, float(said.shares[line]) * (1 - said.nothing), said.nothing)


def peaks_of(scores: np.ndarray, grid: tuple[int, int]) -> Peaks:
    """Best cells and neighbours of whole rows of scores [heads, cells], as ``kernels.attention.read_peaks`` reads
    them."""
    rows, columns = grid
    cells = scores.argmax(1)
    row, column = cells // columns + 1, cells % columns + 1
    padded = np.pad(scores.reshape(-1, rows, columns), ((0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    head = np.arange(len(scores))
    near = [padded[head, row + down, column + across] for down, across in ((0, 0), (0, -1), (0, 1), (-1, 0), (1, 0))]
    return Peaks(cells, np.stack(near, axis=1).astype(np.float32))


def gold_mass(sample: Sample) -> np.ndarray:
    """Share of each head's attention on the keys that answer, less what the baseline question has there: [heads]."""
    mass = _shares(sample.scores)[:, list(sample.gold)].sum(1)
    if isinstance(sample, TextSample) and sample.baseline is not None:
        mass = mass - _shares(sample.baseline)[:, list(sample.gold)].sum(1)
    out: np.ndarray = mass
    return out


def log_shares(heads: list[int], scales: Sequence[float], sample: Sample) -> np.ndarray:
    """Natural logarithm of the share that a sum of heads gives to the keys that answer, for each scale: [scales]."""
    total = np.outer(scales, sample.scores[heads].astype(np.float64).sum(0))
    weights = np.exp(total - total.max(1, keepdims=True))
    out: np.ndarray = np.log(weights[:, list(sample.gold)].sum(1) / weights.sum(1) + 1e-12)
    return out


def _shares(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores.astype(np.float64) - scores.max(1, keepdims=True))
    out: np.ndarray = weights / weights.sum(1, keepdims=True)
    return out
