"""Scores of heads over the keys of a window, as evidence for its segments. See docs/answers.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from engine.answers.readouts import Readout
from engine.messages import EngineError

Floats = npt.NDArray[np.float64]
Scores = npt.NDArray[np.float32] | Floats


@dataclass(frozen=True)
class Evidence:
    """``segments``: float64, more is more likely; comparable within a window, and between windows once standardised.
    ``shares``: the same as shares of 1. ``nothing``: the share of the key that stands for no answer, 0 without one."""

    segments: Floats
    shares: Floats
    nothing: float = 0.0

    @property
    def standard(self) -> Floats:
        """Standardised: mean 0, deviation 1."""
        return standardised(self.segments)


def evidence(readout: Readout, scores: Scores, baseline: Scores | None, lengths: Sequence[int]) -> Evidence:
    """What heads say of segments.

    Args:
        scores: q·k/√d [heads, keys], the keys those of all segments in their order; behind them that of the nothing
            key where the list has one.
        baseline: the same for the list's baseline question.
        lengths: keys of each segment, its separator last.

    Raises:
        EngineError: a head could not be read.
    """
    if not np.isfinite(scores).all() or (baseline is not None and not np.isfinite(baseline).all()):
        raise EngineError("An attention head could not be read; the question was not answered.", code="readout_failed")
    keys = int(sum(lengths))
    logits = scores.astype(np.float64) * readout.scale
    if readout.combine == "sum" and baseline is None:
        return _summed(logits.sum(0), keys, lengths)
    masses = _mass(readout, logits[:, :keys], lengths)
    if baseline is not None:
        masses = masses - _mass(readout, baseline.astype(np.float64)[:, :keys] * readout.scale, lengths)
    if readout.combine == "vote":
        votes = np.bincount(masses.argmax(1), minlength=len(lengths)) / len(masses)
        # Segments with as many votes, most of them none, are ranked by their lift over all heads.
        mean = masses.mean(0)
        return Evidence(votes + mean / (4 * len(masses) * max(1e-12, float(np.abs(mean).max()))), votes)
    total = np.mean([standardised(mass) for mass in masses], axis=0)
    weights = np.exp(total - total.max())
    return Evidence(total, weights / weights.sum())


def standardised(values: Floats) -> Floats:
    spread = float(values.std()) if len(values) > 1 else 0.0
    out: Floats = (values - values.mean()) / spread if spread > 1e-9 else np.zeros(len(values))
    return out


def _summed(logits: Floats, keys: int, lengths: Sequence[int]) -> Evidence:
    """One distribution over all keys, and the nothing key against them."""
    spans = np.split(logits[:keys], np.cumsum(lengths)[:-1])
    segments = np.array([np.logaddexp.reduce(span) for span in spans])
    total = float(np.logaddexp.reduce(segments))
    nothing = 0.0
    if len(logits) > keys:
        nothing = float(np.exp(-np.logaddexp(0.0, total - float(logits[keys]))))
    return Evidence(segments - total, np.exp(segments - total), nothing)


def _mass(readout: Readout, logits: Floats, lengths: Sequence[int]) -> Floats:
    """Share of each head's attention on each segment, [heads, segments]; of an ``end`` list on its end alone."""
    weights = np.exp(logits - logits.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    edges = np.cumsum([0, *lengths])
    if readout.combine != "end":
        out: Floats = np.add.reduceat(weights, edges[:-1], axis=1)
        return out
    # Last key, separator, and the key that the next segment begins with.
    places = [range(max(start, end - 2), min(end + 1, weights.shape[1])) for start, end in pairwise(edges)]
    return np.stack([weights[:, place.start : place.stop].sum(1) for place in places], axis=1)
