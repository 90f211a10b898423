"""Reading memory and nothing else: the ceiling that memory-bound kernels are held against."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.registry import use_triton

_BLOCK = 8192


def read_all_reference(source: Tensor, out: Tensor) -> None:
    """:func:`read_all` in plain torch."""
    out.copy_((source == MARK).any().to(out.dtype))


MARK = 0x5EED5EED
"""A number that hardly stands in random data, so that nothing is written and yet everything must be read."""


def read_all(source: Tensor, out: Tensor) -> None:
    """Read int32 ``source`` (its length a multiple of 8192) once; ``out`` int32 [1] becomes 1 where it holds MARK, and
    is left as it is where it does not (0 by the reference)."""
    if not use_triton(source):
        read_all_reference(source, out)
        return
    if source.dtype != torch.int32 or source.numel() % _BLOCK:
        raise ValueError(f"Takes int32, a multiple of {_BLOCK} of them, not {source.dtype} {list(source.shape)}.")
    blocks = source.numel() // _BLOCK
    programs = min(blocks, 2048)
    _read_kernel[(programs,)](source, out, blocks, MARK=MARK, BLOCK=_BLOCK, num_warps=8)


@triton.jit
def _read_kernel(source, out, blocks, MARK: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    found = tl.zeros([BLOCK], tl.int1)
    for block in range(tl.program_id(0), blocks, tl.num_programs(0)):
        at = (tl.zeros([BLOCK], tl.int64) + block) * BLOCK + tl.arange(0, BLOCK)
        values = tl.load(source + at, cache_modifier=".cg")
        found = found | (values == MARK)
    if tl.max(found.to(tl.int32), axis=0) > 0:
        tl.store(out, 1)
