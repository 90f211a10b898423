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
def decode_codes(codes):  # type: ignore[no-untyped-def]
    """FP8 e4m3 codes (uint8, a multiple of four in each thread) → their values in BF16, exactly.

    A code's bits s eeee mmm become the BF16 s 0000eeee mmm0000, which is the value · 2⁻¹²⁰ (subnormals included, as the
    code's are the BF16's); one multiplication brings it back. Five integer operations for two codes, where the
    conversions of the hardware (to FP16, to FP32, to BF16) have a quarter of the rate of arithmetic.
    """
    return tl.inline_asm_elementwise(
        """
        {
            .reg .b32 low, high, mag, two120;
            prmt.b32 low, $2, 0, 0x1404;
            prmt.b32 high, $2, 0, 0x3424;
            mov.b32 two120, 0x7B807B80;
            shr.u32 mag, low, 4;
            and.b32 mag, mag, 0x07F007F0;
            and.b32 low, low, 0x80008000;
            or.b32 low, low, mag;
            shr.u32 mag, high, 4;
            and.b32 mag, mag, 0x07F007F0;
            and.b32 high, high, 0x80008000;
            or.b32 high, high, mag;
            mul.rn.bf16x2 $0, low, two120;
            mul.rn.bf16x2 $1, high, two120;
        }
        """,
        "=r,=r,r",
        [codes],
        dtype=tl.bfloat16,
        is_pure=True,
        pack=4,
    )


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
    """Values of a tile of a pool as the matrix units take them: as stored, or the values of FP8 codes in BF16.

    ``where``: pointers, to bytes where PACKED. Where MASKED, zero where ``mask`` is false.
    """
    if MASKED:
        x = tl.load(where, mask=mask, other=0)
    else:
        x = tl.load(where)
    if PACKED:
        if INTERPRET:
            x = x.to(tl.float8e4nv, bitcast=True).to(tl.float32).to(tl.bfloat16)
        else:
            x = decode_codes(x)
    return x
