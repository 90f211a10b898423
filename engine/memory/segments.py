"""What torch takes of a card for tensors of given sizes, in plain arithmetic.

Its allocator (``c10/cuda/CUDACachingAllocator.cpp``, without expandable segments, which Windows does not have) takes
*segments* of the driver and cuts tensors from them: one of 2 MiB for tensors of up to 1 MiB, one of 20 MiB for those
below 10 MiB, for larger ones a segment each, in steps of 2 MiB. A rest of more than 1 MiB of a large segment serves
another tensor; a smaller one is lost.
"""

from __future__ import annotations

from collections.abc import Iterable

MIB = 1 << 20
ALIGNMENT = 512
"""Tensors begin on multiples of this, in an arena too: kernels find no difference."""
SMALL = MIB
"""The largest tensor that is cut from small segments."""
STEP = 2 * MIB
"""Of segments for one tensor, and the size of small ones."""
SHARED, SHARED_BELOW = 20 * MIB, 10 * MIB
"""Size of the segments that tensors of middling size share, and the size from which they do not."""


def aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def whole(size: int) -> int:
    """A segment for one large tensor."""
    return -(-size // STEP) * STEP


def taken(sizes: Iterable[int]) -> int:
    """Bytes of the segments for tensors of more than 1 MiB that come in this order and stay."""
    total, rests = 0, list[int]()
    for size in map(aligned, sizes):
        rest = min((rest for rest in rests if rest >= size), default=0)
        if rest:
            rests.remove(rest)
        else:
            rest = SHARED if size < SHARED_BELOW else whole(size)
            total += rest
        if rest - size > SMALL:
            rests.append(rest - size)
    return total
