"""Recorded answers, replayed below sampling: the real sampler is left one token to choose.

Everything above is what a client meets: rounds, streams, parsers, sockets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from engine import Engine
from engine.messages import SamplingParams
from engine.sample.sampler import Draw, Sampler

END = "<|im_end|>"


class Replay:
    """Each request that begins takes the next recording; requests beyond the last are sampled as ever."""

    def __init__(self, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        self._engine = engine
        self._recordings: deque[list[int]] = deque()
        self._lanes: dict[int, deque[int]] = {}
        self.prompts: list[str] = []
        """What the model was shown, one a request."""
        begin, start = Sampler.begin, Sampler.start

        def begin_recorded(
            sampler: Sampler, lane: int, params: SamplingParams, prompt_ids: Sequence[int], seed: int
        ) -> None:
            self.prompts.append(engine.tokenizer.decode(prompt_ids))
            self._lanes[lane] = deque(self._recordings.popleft() if self._recordings else ())
            begin(sampler, lane, params, prompt_ids, seed)

        def start_recorded(sampler: Sampler, logits: Tensor, lanes: Sequence[int], *args: Any) -> Draw:
            mask = torch.ones_like(logits, dtype=torch.bool)
            for row, lane in enumerate(lanes):
                if recorded := self._lanes.get(lane):
                    mask[row] = False
                    mask[row, recorded.popleft()] = True
            return start(sampler, logits, lanes, mask)

        monkeypatch.setattr(Sampler, "begin", begin_recorded)
        monkeypatch.setattr(Sampler, "start", start_recorded)

    def answers(self, *texts: str) -> None:
        """What the model writes to the next requests, each as the tokens that make it up, and its end."""
        self._recordings += [self._engine.tokenizer.encode(text + END, allow_special=True) for text in texts]
