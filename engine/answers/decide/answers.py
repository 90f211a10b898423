"""What is decided: probabilities of options, and numbers with what is known of their digits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.messages import EngineError


@dataclass(frozen=True)
class Answer:
    """One question's answer."""

    probabilities: np.ndarray
    """float64, over the options in their order (they sum to 1; those of a Multi do not); [true] for a Noul; [digits,
    10] for a Number."""
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
