"""Encoded pictures are kept by content, within their bytes, the least recently used going first."""

from __future__ import annotations

import numpy as np
import torch

from engine.messages import ImageInput
from engine.schedule.prefill import VisionCache


def image(name: str) -> ImageInput:
    return ImageInput(np.zeros((8, 8, 3), np.uint8), name.encode(), (8, 8))


def tokens(rows: int) -> torch.Tensor:
    return torch.zeros(rows, 25)  # 100 bytes a row


def test_the_least_recently_used_goes() -> None:
    cache = VisionCache(1_000)
    cache.put(image("a"), tokens(4))
    cache.put(image("b"), tokens(4))
    assert cache.get(image("a")) is not None
    cache.put(image("c"), tokens(4))
    assert cache.get(image("b")) is None
    assert cache.get(image("a")) is not None
    assert cache.get(image("c")) is not None


def test_what_is_larger_than_the_cache_displaces_nothing() -> None:
    cache = VisionCache(1_000)
    cache.put(image("a"), tokens(4))
    cache.put(image("huge"), tokens(11))
    assert cache.get(image("huge")) is None
    assert cache.get(image("a")) is not None


def test_the_same_picture_counts_once() -> None:
    cache = VisionCache(1_000)
    for _ in range(5):
        cache.put(image("a"), tokens(6))
    cache.put(image("b"), tokens(4))
    assert cache.get(image("a")) is not None
    assert cache.get(image("b")) is not None


def test_nothing_is_kept_without_room() -> None:
    cache = VisionCache(0)
    cache.put(image("a"), tokens(1))
    assert cache.get(image("a")) is None
