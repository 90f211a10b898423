"""The matrix product of two tiles, also where Triton's interpreter runs it."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def dot(a, b, acc, INTERPRET: tl.constexpr):  # type: ignore[no-untyped-def]
    """acc + a · b in float32; the operands BF16, or float32 taken at full precision.

    The interpreter multiplies the bits of BF16 values as if they were integers, so there they are widened first.
    """
    if INTERPRET:
        a, b = a.to(tl.float32), b.to(tl.float32)
    return tl.dot(a, b, acc, input_precision="ieee")
