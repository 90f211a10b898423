"""What is decided: probabilities of options, and numbers with what is known of their digits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.answers.decide.questions import PLACE_DIGITS
from engine.messages import EngineError


@dataclass(frozen=True)
class Answer:
    """One question's answer."""

    probabilities: np.ndarray
    """float64, over the options in their order (they sum to 1; those of a Multi do not); [true] for a Noul; [digits,
    10] for a Number or a Place."""
    mass: float
    """The labels' share of the whole vocabulary's probability, the least over all readings. Little means that the model
    wanted to say something else."""
    value: float | None = None
    """A Score's expected index, or a Number."""
    uncertainty: float | None = None
    """A Number's standard deviation under its digits' probabilities."""

    @property
    def best(self) -> int:
        """Index of the likeliest option."""
        return int(self.probabilities.argmax())


@dataclass(frozen=True)
class Located:
    """A Place as shares of the picture's sides: ``edges`` are left, top, right and bottom, of a point those of its
    uncertainty. ``spread``: standard deviations across and down. ``confidence``: how likely the tenths of the sides are
    that it begins in."""

    middle: tuple[float, float]
    edges: tuple[float, float, float, float]
    spread: tuple[float, float]
    confidence: float


def located(digits: np.ndarray) -> Located:
    """What the digits of a Place [6 or 12, 10] say."""
    chains = digits.reshape(-1, PLACE_DIGITS, 10)
    read = [number(list(chain), fraction=True) for chain in chains]
    half = 0.5 * 10.0**-PLACE_DIGITS  # a number stands for the middle of its thousandth
    values, spreads = [value + half for value, _ in read], [spread for _, spread in read]
    confidence = math.prod(float(chain[0].max()) for chain in chains)
    if len(read) == 4:
        (left, right), (top, bottom) = sorted(values[::2]), sorted(values[1::2])
        spread = (math.hypot(*spreads[::2]) / 2, math.hypot(*spreads[1::2]) / 2)
        return Located(((left + right) / 2, (top + bottom) / 2), (left, top, right, bottom), spread, confidence)
    (x, y), (across, down) = values, spreads
    edges = (max(0.0, x - across), max(0.0, y - down), min(1.0, x + across), min(1.0, y + down))
    return Located((x, y), edges, (across, down), confidence)


@dataclass
class Decision:
    """All answers and what they took."""

    answers: dict[str, Answer | EngineError] = field(default_factory=dict)
    """By question id. A fault while answering is that question's alone."""
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    """Digits that were put into a prompt; nothing else is generated."""
    seconds: float = 0.0


def softmax(logprobs: np.ndarray) -> tuple[np.ndarray, float]:
    """(probabilities of the labels among themselves, their mass in the whole vocabulary)."""
    weights = np.exp(logprobs.astype(np.float64) - logprobs.max())
    return weights / weights.sum(), float(np.exp(logprobs.astype(np.float64)).sum())


def number(digits: Sequence[np.ndarray], *, fraction: bool) -> tuple[float, float]:
    """(value, standard deviation) of a chain of digit distributions, most significant first.

    The value takes each place's likeliest digit. Places count as independent: each was read behind the chosen ones.
    """
    count = len(digits)
    places = 10.0 ** np.arange(count - 1, -1, -1)
    chosen = np.array([place.argmax() for place in digits], dtype=np.float64)
    spread = [float(place @ (np.arange(10) - best) ** 2) for place, best in zip(digits, chosen, strict=True)]
    scale = 10.0**-count if fraction else 1.0
    return float(chosen @ places) * scale, float(np.sqrt(np.array(spread) @ places**2)) * scale
