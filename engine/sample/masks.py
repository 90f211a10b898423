"""Masks of the lanes that are held to something, at fixed addresses on the device."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor, ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from engine.messages import EngineError
from engine.sample.grammar import BITS, mask_words
from engine.sample.guide import Guide

THREADS = 4
"""That work out masks; one takes some ten microseconds, and rarely milliseconds."""


class Masks:
    """One bit a token and lane; all ones where anything may come."""

    def __init__(self, lanes: int, vocabulary: int, device: torch.device | str) -> None:
        self._vocabulary = vocabulary
        pinned = torch.device(device).type == "cuda"
        words = mask_words(vocabulary)
        self._staged = torch.full((lanes, words), -1, dtype=torch.int32, pin_memory=pinned)
        self._bits = torch.full((lanes, words), -1, dtype=torch.int32, device=device)
        """What a round reads: int32 [lanes, words]."""
        self._pool: Executor | None = None

    @property
    def nbytes(self) -> int:
        return self._bits.nbytes

    @property
    def bits(self) -> Tensor:
        """int32 [lanes, words], bit i % 32 of word i // 32 set where token i may come."""
        return self._bits

    @property
    def pool(self) -> Executor:
        """Threads for guides, started with the first."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(THREADS, "grammar")
        return self._pool

    def bring(self, guides: Mapping[int, Guide]) -> tuple[list[int], dict[int, EngineError]]:
        """Put the masks of the guides' lanes on the device.

        Returns:
            (the lanes that have one, what went wrong by lane).
        """
        held: list[int] = []
        faults: dict[int, EngineError] = {}
        for lane, guide in guides.items():
            try:
                bits = guide.mask()
            except EngineError as error:
                faults[lane] = error
                continue
            if bits is not None:
                self._staged[lane] = bits
                held.append(lane)
        if held:
            self._bits.copy_(self._staged, non_blocking=True)
        return held, faults

    def banned(self, lanes: list[int]) -> Tensor:
        """bool [len(lanes), V]: the tokens that may not come next."""
        if self._bits.device.type == "cpu":  # an order of magnitude faster than shifting
            packed = (~self._bits[lanes]).numpy().view(np.uint8)
            return torch.from_numpy(np.unpackbits(packed, axis=1, bitorder="little")[:, : self._vocabulary].view(bool))
        places = torch.arange(BITS, dtype=torch.int32, device=self._bits.device)
        bits = self._bits[lanes, :, None] >> places
        return ((bits & 1) == 0).flatten(1)[:, : self._vocabulary]
