"""What a linear layer leaves behind: partial sums in slots, added up by whoever reads them.

A matrix [out, in] is cut into *units* of ``tile`` rows × (in / ``blocks``) columns, numbered along the columns first.
Of U = (out / tile) · blocks units, program p of P does [⌊pU/P⌋, ⌊(p+1)U/P⌋): every program the same share of the
weights, whatever the shape ("stream-K"). A tile is thus the work of one program or of a few neighbours, and each writes
its part to a slot of its own: slot = p − the tile's first program. The reader adds the slots in that order. Nothing is
reduced in the linear layer, no result depends on which program came first, and the sum costs no launch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
import triton
import triton.language as tl
from torch import Tensor

Layout = tuple[int, int, int, int]
"""(slots, tile rows, K blocks, programs) and nothing else: what :func:`load_sum` needs to know at compile time. All
zero where the values are plain."""


@dataclass(frozen=True)
class Partial:
    """The product of a linear layer with N columns, as partial sums or, with ``layout`` all zero, as it is.

    ``values``: float32 [slots, N, out], slots that a tile does not have left as they were; or plain, any float type
    [N, out]. The last dimension is contiguous.
    """

    values: Tensor
    layout: Layout = (0, 0, 0, 0)

    def __post_init__(self) -> None:
        if self.values.dim() != (3 if self.slots else 2) or self.values.stride(-1) != 1:
            raise ValueError(
                f"A product with {self.slots} slots must be [{'slots, ' if self.slots else ''}N, out], contiguous in "
                f"its last dimension, not {list(self.values.shape)} with strides {self.values.stride()}."
            )

    @property
    def slots(self) -> int:
        """Slots in all; 0 where the values are plain."""
        return self.layout[0]

    @property
    def columns(self) -> int:
        return self.values.shape[-2]

    @property
    def out_features(self) -> int:
        return self.values.shape[-1]

    @property
    def arguments(self) -> tuple[Tensor, int, int]:
        """What a reading kernel takes: (values, stride of a slot, stride of a column), in elements."""
        return self.values, self.values.stride(0) if self.slots else 0, self.values.stride(-2)

    def sum(self) -> Tensor:
        """float32 [N, out]: the reference of :func:`load_sum`."""
        if not self.slots:
            return self.values.float()
        count = _slot_counts(self.out_features, self.layout).to(self.values.device)
        total = self.values[0].clone()
        for slot in range(1, self.slots):
            total += torch.where(slot < count, self.values[slot], 0.0)
        return total

    @staticmethod
    def of(values: Tensor) -> Partial:
        """A plain product [N, out], as cuBLAS gives it."""
        return Partial(values)

    @staticmethod
    def split(total: Tensor, generator: torch.Generator | None = None) -> Partial:
        """A product [N, out] at random in slots, with NaN in those that no tile has: to test readers with.

        Its sum is ``total`` up to float32 roundings.
        """

        def pick(low: int, high: int) -> int:
            return int(torch.randint(low, high + 1, (1,), generator=generator))

        out = total.shape[1]
        tile = next(rows for rows in (64, 16, 4, 1) if out % rows == 0)
        blocks = pick(1, 7)
        programs = pick(1, out // tile * blocks)
        layout = (slot_count(out // tile, blocks, programs), tile, blocks, programs)
        count = _slot_counts(out, layout)
        values = torch.randn(layout[0], *total.shape, generator=generator).to(total.device)
        count = count.to(total.device)
        slot = torch.arange(layout[0], device=total.device)[:, None, None]
        values = torch.where(slot < count - 1, values, 0.0)
        rest = total.float() - values.sum(0)
        values = torch.where(slot == count - 1, rest, values)
        return Partial(torch.where(slot < count, values, float("nan")), layout)


@lru_cache(maxsize=1024)
def slot_count(tiles: int, blocks: int, programs: int) -> int:
    """The most programs that share one tile."""
    units = tiles * blocks
    if not 0 < programs <= units:
        raise ValueError(f"{programs} programs cannot share {units} units: each needs one at least.")
    return max(
        ((tile + 1) * blocks * programs - 1) // units - ((tile * blocks + 1) * programs - 1) // units + 1
        for tile in range(tiles)
    )


def _slot_counts(out: int, layout: Layout) -> Tensor:
    """How many slots each row's tile has: int64 [out]."""
    _, tile, blocks, programs = layout
    units = -(-out // tile) * blocks
    start = torch.arange(out) // tile * blocks
    counts: Tensor = ((start + blocks) * programs - 1) // units - ((start + 1) * programs - 1) // units + 1
    return counts


@triton.jit
def load_sum(values, slot_stride, column_stride, column, row, mask, OUT: tl.constexpr, LAYOUT: tl.constexpr):  # type: ignore[no-untyped-def]
    """A product at [``column``, ``row``] in float32, 0 where ``mask`` is false.

    ``values``, ``slot_stride`` and ``column_stride`` are :attr:`Partial.arguments`, ``OUT`` and ``LAYOUT`` its
    ``out_features`` and ``layout``; ``column``, ``row`` and ``mask`` are tensors or scalars that broadcast. The
    slots of an element are added in their order. Under dependent launch, wait (``gdc_wait``) first.
    """
    SLOTS: tl.constexpr = LAYOUT[0]
    where = values + column * column_stride + row
    if SLOTS == 0:
        total = tl.load(where, mask=mask, other=0.0).to(tl.float32)
    elif SLOTS == 1:
        total = tl.load(where, mask=mask, other=0.0)
    else:
        UNITS: tl.constexpr = (OUT + LAYOUT[1] - 1) // LAYOUT[1] * LAYOUT[2]
        start = row // LAYOUT[1] * LAYOUT[2]
        first = ((start + 1) * LAYOUT[3] - 1) // UNITS
        last = ((start + LAYOUT[2]) * LAYOUT[3] - 1) // UNITS
        total = tl.load(where, mask=mask, other=0.0)
        for slot in tl.static_range(1, SLOTS):
            total += tl.load(where + slot * slot_stride, mask=mask & (slot <= last - first), other=0.0)
    return total
