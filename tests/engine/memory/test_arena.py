"""One block for many tensors."""

from __future__ import annotations

import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from engine.memory.arena import Arena, each_its_own
from engine.memory.segments import ALIGNMENT

CPU = torch.device("cpu")


def test_tensors_lie_side_by_side() -> None:
    arena = Arena(4 * ALIGNMENT, CPU)
    parts = [arena.take((3, 5), torch.bfloat16), arena.take((200,), torch.float32), arena.take((), torch.int32)]
    assert [(tuple(part.shape), part.dtype) for part in parts] == [
        ((3, 5), torch.bfloat16),
        ((200,), torch.float32),
        ((), torch.int32),
    ]
    start = parts[0].data_ptr()
    assert [part.data_ptr() - start for part in parts] == [0, ALIGNMENT, 3 * ALIGNMENT]
    assert arena.left == 0
    for number, part in enumerate(parts):
        part.fill_(number)
    assert [float(part.sum()) for part in parts] == [0.0, 200.0, 2.0]


def test_a_block_may_end_with_its_last_tensor() -> None:
    arena = Arena(ALIGNMENT + 12, CPU)
    arena.take((1,), torch.uint8)
    assert arena.take((3,), torch.float32).untyped_storage().nbytes() == ALIGNMENT + 12
    assert arena.left == 0


def test_what_does_not_fit_is_no_part_of_it() -> None:
    arena = Arena(1000, CPU)
    arena.take((100,), torch.int32)
    apart = arena.take((200,), torch.int32)
    assert apart.untyped_storage().nbytes() == 800
    assert arena.left == 1000 - ALIGNMENT


def test_the_block_goes_with_the_last_tensor() -> None:
    arena = Arena(2 * ALIGNMENT, CPU)
    one, other = arena.take((4,), torch.int32), arena.take((4,), torch.int32)
    block = StorageWeakRef(other.untyped_storage())
    del arena, one
    assert not block.expired()
    del other
    assert block.expired()


@pytest.mark.parametrize("shape", [(2, 3), ()])
def test_tensors_of_their_own(shape: tuple[int, ...]) -> None:
    part = each_its_own(CPU)(shape, torch.float32)
    assert part.shape == shape
    assert part.untyped_storage().nbytes() == part.nbytes
