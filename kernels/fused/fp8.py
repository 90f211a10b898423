"""FP8 rows: e4m3 codes with one float32 scale a row, so that a value is code · scale."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

FP8 = torch.float8_e4m3fn
FP8_MAX = 448.0


def pack(x: Tensor) -> tuple[Tensor, Tensor]:
    """[..., D] → FP8 codes [..., D] and their scales, float32 [...]: the largest value becomes the largest code."""
    x = x.float()
    scale = x.abs().amax(-1) / FP8_MAX
    return (x * (1.0 / scale.clamp(min=1e-37))[..., None]).clamp(-FP8_MAX, FP8_MAX).to(FP8), scale


def unpack(values: Tensor, scale: Tensor | None, rows: Tensor) -> Tensor:
    """[n, Hkv, D] at ``rows`` of a pool: as stored, or float32 code · scale."""
    if scale is None:
        return values[rows]
    # Indexing an FP8 tensor is not offered everywhere; its bytes can be indexed.
    codes = values.view(torch.uint8)[rows].view(FP8)
    return codes.float() * scale[rows][..., None]


@triton.jit
def decode_pairs(pairs, INTERPRET: tl.constexpr):  # type: ignore[no-untyped-def]
    """Two e4m3 codes in 16 bits (an even number in each thread) → the values of the lower and of the higher, in FP16,
    exactly.

    Matrix units take 16-bit operands from shared memory in any order, bytes in one order only. Read in pairs, codes
    come as 16-bit operands do, and the product over all dimensions is that over the even and that over the odd ones.
    """
    if INTERPRET:
        low = (pairs & 0xFF).to(tl.uint8).to(tl.float8e4nv, bitcast=True).to(tl.float32).to(tl.float16)
        high = ((pairs >> 8) & 0xFF).to(tl.uint8).to(tl.float8e4nv, bitcast=True).to(tl.float32).to(tl.float16)
    else:
        low, high = tl.inline_asm_elementwise(
            """
            {
                .reg .b32 even, odd;
                .reg .b16 e, o;
                prmt.b32 even, $2, 0, 0x4420;
                prmt.b32 odd, $2, 0, 0x4431;
                cvt.u16.u32 e, even;
                cvt.u16.u32 o, odd;
                cvt.rn.f16x2.e4m3x2 $0, e;
                cvt.rn.f16x2.e4m3x2 $1, o;
            }
            """,
            "=r,=r,r",
            [pairs],
            dtype=(tl.float16, tl.float16),
            is_pure=True,
            pack=2,
        )
    return low, high


@triton.jit
def round_to_code(x):  # type: ignore[no-untyped-def]
    """float32 → the nearest value that e4m3 has, ties to even: what the card's conversion does by itself.

    For the interpreter, whose own conversion loses the carry into the next power of two.
    """
    bits = x.to(tl.int32, bitcast=True)
    bits += 0x7FFFF + ((bits >> 20) & 1)
    normal = (bits & -0x100000).to(tl.float32, bitcast=True)
    # Below 2⁻⁶ the values stand 2⁻⁹ apart: adding 1.5 · 2¹⁴ leaves float32 no finer step.
    subnormal = (x + 24576.0) - 24576.0
    return tl.where(tl.abs(x) < 0.015625, subnormal, normal)


@triton.jit
def load_rows(where, mask, MASKED: tl.constexpr, PACKED: tl.constexpr, INTERPRET: tl.constexpr):  # type: ignore[no-untyped-def]
    """Values of a tile of a pool as the matrix units take them: as stored, or the values of FP8 codes in FP16, exactly.

    ``where``: pointers, to bytes where PACKED. Where MASKED, zero where ``mask`` is false.
    """
    if MASKED:
        x = tl.load(where, mask=mask, other=0)
    else:
        x = tl.load(where)
    if PACKED:
        x = x.to(tl.float8e4nv, bitcast=True)
        if INTERPRET:
            x = x.to(tl.float32)
        x = x.to(tl.float16)
    return x
