"""Partial sums of linear layers: what a reader adds up is the product."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

from kernels.fused.partial import Partial, load_sum, slot_count


@triton.jit
def _add_up_kernel(values, slot_stride, column_stride, out, OUT: tl.constexpr, LAYOUT: tl.constexpr):
    column = tl.program_id(0)
    row = tl.program_id(1) * 32 + tl.arange(0, 32)
    total = load_sum(values, slot_stride, column_stride, column, row, row < OUT, OUT, LAYOUT)
    tl.store(out + column * OUT + row, total, mask=row < OUT)


def read(partial: Partial) -> torch.Tensor:
    """The whole product through :func:`load_sum`, 32 rows at a time."""
    out = torch.full((partial.columns, partial.out_features), float("nan"))
    grid = (partial.columns, -(-partial.out_features // 32))
    _add_up_kernel[grid](*partial.arguments, out, partial.out_features, LAYOUT=partial.layout)
    return out


@pytest.mark.parametrize("seed", range(12))
def test_readers_add_the_slots_of_each_tile(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    total = torch.randn(3, (64, 192, 80, 33)[seed % 4], generator=generator)
    partial = Partial.split(total, generator)
    assert partial.values.shape == (partial.slots, *total.shape)
    assert torch.equal(read(partial), partial.sum())
    assert torch.allclose(partial.sum(), total, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_plain_products(dtype: torch.dtype) -> None:
    """Also as a part of a wider one."""
    wide = torch.randn(5, 100).to(dtype)
    partial = Partial.of(wide[1:4, 10:60])
    assert partial.slots == 0
    assert torch.equal(read(partial), wide[1:4, 10:60].float())
    assert torch.equal(partial.sum(), wide[1:4, 10:60].float())


@pytest.mark.parametrize(
    ("tiles", "blocks", "programs"), [(1, 1, 1), (80, 12, 528), (544, 10, 528), (7, 5, 3), (9, 4, 36)]
)
def test_slot_count_is_what_programs_write(tiles: int, blocks: int, programs: int) -> None:
    units = tiles * blocks
    writers: list[set[int]] = [set() for _ in range(tiles)]
    for program in range(programs):
        for unit in range(program * units // programs, (program + 1) * units // programs):
            writers[unit // blocks].add(program)
    assert slot_count(tiles, blocks, programs) == max(len(tile) for tile in writers)


def test_shapes_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="13 programs cannot share 12 units"):
        slot_count(3, 4, 13)
    with pytest.raises(ValueError, match="contiguous in its last dimension"):
        Partial.of(torch.zeros(4, 6).T)
