"""A model of torch's caching allocator on a card, fed with what is created and freed on the ``meta`` device.

Its rules are those of ``c10/cuda/CUDACachingAllocator.cpp`` without expandable segments: sizes are multiples of 512
bytes; up to 1 MiB they are cut from segments of 2 MiB, below 10 MiB from segments of 20 MiB, others get a segment of
their own, a multiple of 2 MiB; the smallest free block that fits is taken, and its rest stays a block unless that is
1 MiB or less of a large one; neighbours that are free become one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

MIB = 1 << 20


@dataclass(eq=False)
class Segment:
    small: bool
    total: int
    blocks: list[Block] = field(default_factory=list)

    @property
    def allocated(self) -> int:
        return sum(block.size for block in self.blocks if block.used)


@dataclass(eq=False)
class Block:
    segment: Segment
    size: int
    asked: int = 0

    @property
    def used(self) -> bool:
        return self.asked > 0


class CachingAllocator:
    def __init__(self) -> None:
        self.segments: list[Segment] = []

    @property
    def reserved(self) -> int:
        return sum(segment.total for segment in self.segments)

    def take(self, asked: int) -> Block:
        size = -(-asked // 512) * 512
        small = size <= MIB
        fitting = [
            block
            for segment in self.segments
            if segment.small == small
            for block in segment.blocks
            if not block.used and block.size >= size
        ]
        block = min(fitting, key=lambda block: block.size) if fitting else self._segment(size, small)
        rest = block.size - size
        if rest >= 512 if small else rest > MIB:
            place = block.segment.blocks.index(block)
            block.segment.blocks.insert(place + 1, Block(block.segment, rest))
            block.size = size
        block.asked = asked
        return block

    def give(self, block: Block) -> None:
        block.asked = 0
        blocks = block.segment.blocks
        place = blocks.index(block)
        if place + 1 < len(blocks) and not blocks[place + 1].used:
            block.size += blocks.pop(place + 1).size
        if place and not blocks[place - 1].used:
            blocks[place - 1].size += block.size
            blocks.remove(block)

    def empty_cache(self) -> None:
        self.segments = [segment for segment in self.segments if segment.allocated]

    def _segment(self, size: int, small: bool) -> Block:
        total = 2 * MIB if small else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
        segment = Segment(small, total)
        segment.blocks.append(Block(segment, total))
        self.segments.append(segment)
        return segment.blocks[0]


class OnMeta(TorchDispatchMode):
    """While entered, every storage on ``meta`` is a block of the allocator, until it is gone."""

    def __init__(self, allocator: CachingAllocator) -> None:
        super().__init__()
        self._allocator = allocator
        self._held: dict[int, tuple[StorageWeakRef, Block]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.sweep()
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor) and leaf.device.type == "meta" and leaf.untyped_storage().nbytes():
                reference = StorageWeakRef(leaf.untyped_storage())
                if reference.cdata not in self._held:
                    self._held[reference.cdata] = reference, self._allocator.take(leaf.untyped_storage().nbytes())
        return result

    def sweep(self) -> None:
        """Give back the blocks of storages that are gone."""
        for key, (reference, block) in list(self._held.items()):
            if reference.expired():
                del self._held[key]
                self._allocator.give(block)
