"""What the sampler knows of one request."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from torch import Tensor

from engine.messages import SamplingParams
from engine.sample.guide import Guide
from engine.sample.random import uniform


@dataclass
class Lane:
    """A request on a lane."""

    params: SamplingParams
    seed: int
    step: int = 0
    counts: Counter[int] = field(default_factory=Counter)
    """How often each token was generated, if a penalty asks."""
    guide: Guide | None = None
    bias: dict[int, float] = field(init=False)
    counted: bool = field(init=False)
    """Presence or frequency penalties."""
    repetition: bool = field(init=False)

    def __post_init__(self) -> None:
        self.bias = dict(self.params.logit_bias)
        self.counted = bool(self.params.presence_penalty or self.params.frequency_penalty)
        self.repetition = self.params.repetition_penalty != 1.0

    @property
    def additive(self) -> bool:
        """Something is taken off its logits."""
        return self.counted or bool(self.bias)

    @property
    def uniform(self) -> float:
        return uniform(self.seed, self.step)


@dataclass(frozen=True)
class SavedLane:
    """What the sampler knows of a request that holds no lane."""

    state: Lane
    divisor: Tensor | None
    """float32 [V]; None where the request has no such penalty."""
    reduction: Tensor | None
