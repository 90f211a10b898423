"""Gluon: from NVFP4 words in global memory to matrix fragments in registers, and from accumulators to slots.

A program of W warps works on tiles of 16·W rows, warp i on fragment i, and on units of 512 columns in four chunks of
128 (see :mod:`kernels.fused.nvfp4_layout` for the order). Of a chunk each lane holds eight words, decodes them to 64
weights and so has eight A fragments of ``m16k16``: fragment d = (b, w, j1) takes columns
64b + 16t + 8w + 4·j1 + 2·j0 + i at k = 8·j0 + 2t + i.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

barrier = getattr(gl, "thread_barrier", None) or gl.barrier  # renamed in Triton 3.7


def _assembly(half: int) -> str:
    """PTX that decodes the eight words of a chunk: c = 2h + ``half``.

    In: words [b][r][w] as operands 32 … 39, scale words [b][r][·] as 40 … 47, of which those of b = 0 are as those of
    b = 1. Out: fragment d's registers [j0][r] as operands 4d … 4d + 3, pairs of columns i = 0, 1.
    """
    lines = ["{", ".reg .b32 t, s0, s1, s2, s3;"]
    for b in range(2):
        for r in range(2):
            byte, scale = 2 * half + b, f"s{2 * b + r}"
            lines += [
                f"prmt.b32 {scale}, ${40 + 4 * b + 2 * r}, 0, 0x4{byte}4{byte};",
                f"mad.lo.u32 {scale}, {scale}, 16, 0x60006000;",
            ]
    for b in range(2):
        for w in range(2):
            for r in range(2):
                word = f"${32 + 4 * b + 2 * r + w}"
                out = [f"${4 * (4 * b + 2 * w + (j >> 1)) + 2 * (j & 1) + r}" for j in range(4)]
                lines += [
                    f"and.b32 {out[0]}, {word}, 0x81C081C0;",
                    f"shf.r.wrap.b32 t, {word}, {word}, 3;",
                    f"and.b32 {out[1]}, t, 0x81C081C0;",
                    f"shf.r.wrap.b32 t, {word}, {word}, 6;",
                    f"and.b32 {out[2]}, t, 0x81C081C0;",
                    f"and.b32 t, {word}, 0x001B001B;",
                    "mul.lo.u32 t, t, 0x888;",
                    f"and.b32 {out[3]}, t, 0x81C081C0;",
                    *(f"mul.rn.bf16x2 {pair}, {pair}, s{2 * b + r};" for pair in out),
                ]
    return "\n".join([*lines, "}"])


_EVEN = gl.constexpr(_assembly(0))
_ODD = gl.constexpr(_assembly(1))
_OPERANDS = gl.constexpr(",".join(["=&r"] * 32 + ["r"] * 16))


@gluon.jit
def word_offsets(k, WARPS: gl.constexpr):  # type: ignore[no-untyped-def]
    """Where a chunk's words stand, [2 (b), 32 · WARPS, 4 (r, w)], counted from the tile's first; a lane's are
    2 × 16 consecutive bytes. The next chunk's are 256 words on."""
    LAYOUT: gl.constexpr = gl.BlockedLayout([2, 1, 4], [1, 32, 1], [1, WARPS, 1], [2, 1, 0])
    b = gl.arange(0, 2, gl.SliceLayout(1, gl.SliceLayout(2, LAYOUT)))
    lane = gl.arange(0, 32 * WARPS, gl.SliceLayout(0, gl.SliceLayout(2, LAYOUT)))
    word = gl.arange(0, 4, gl.SliceLayout(0, gl.SliceLayout(1, LAYOUT)))
    fragment = lane // 32 * (2 * k) + lane % 32 * 4
    return (b * 128)[:, None][:, :, None] + fragment[None, :][:, :, None] + word[None, :][:, None, :]


@gluon.jit
def scale_offsets(k, WARPS: gl.constexpr):  # type: ignore[no-untyped-def]
    """Where the scale words of two chunks stand, [32 · WARPS, 2 (r)]; the next two chunks' are 64 words on."""
    LAYOUT: gl.constexpr = gl.BlockedLayout([1, 2], [32, 1], [WARPS, 1], [1, 0])
    lane = gl.arange(0, 32 * WARPS, gl.SliceLayout(1, LAYOUT))
    r = gl.arange(0, 2, gl.SliceLayout(0, LAYOUT))
    return (lane // 32 * (k // 4) + lane % 32 * 2)[:, None] + r[None, :]


@gluon.jit
def decode(words, scales, odd: gl.constexpr, WARPS: gl.constexpr):  # type: ignore[no-untyped-def]
    """Words of a chunk [2, 32 · WARPS, 4] and the scale words of its h [32 · WARPS, 2] → its eight fragments, bfloat16
    [2, 32 · WARPS, 2, 2] each, times 2⁻⁴⁵."""
    LAYOUT: gl.constexpr = gl.BlockedLayout([2, 1, 2, 2], [1, 32, 1, 1], [1, WARPS, 1, 1], [3, 2, 1, 0])
    s = gl.convert_layout(scales.reshape([1, 32 * WARPS, 2, 1]), LAYOUT)
    w = gl.convert_layout(words.reshape([2, 32 * WARPS, 2, 2]), LAYOUT)
    if odd:
        a = gl.inline_asm_elementwise(_ODD, _OPERANDS, [w, s], dtype=(gl.bfloat16,) * 8, is_pure=True, pack=8)
    else:
        a = gl.inline_asm_elementwise(_EVEN, _OPERANDS, [w, s], dtype=(gl.bfloat16,) * 8, is_pure=True, pack=8)
    return a


@gluon.jit
def as_operand(fragment, OPERAND: gl.constexpr, WARPS: gl.constexpr):  # type: ignore[no-untyped-def]
    """One fragment of each warp as A [16 · WARPS, 16]: moves nothing, names what lies where."""
    a = fragment.reshape([2, WARPS, 8, 4, 2, 2]).permute([1, 4, 2, 0, 3, 5]).reshape([16 * WARPS, 16])
    return gl.convert_layout(a, OPERAND, assert_trivial=True)


@gluon.jit
def as_wide_operand(a, OPERAND: gl.constexpr, WARPS: gl.constexpr):  # type: ignore[no-untyped-def]
    """A chunk's eight fragments as A [16 · WARPS, 128], likewise."""
    even = gl.join(gl.join(a[0], a[4]), gl.join(a[2], a[6]))
    odd = gl.join(gl.join(a[1], a[5]), gl.join(a[3], a[7]))
    whole = gl.join(even, odd).reshape([2, WARPS, 8, 4, 2, 2, 8])
    whole = whole.permute([1, 4, 2, 6, 0, 3, 5]).reshape([16 * WARPS, 128])
    return gl.convert_layout(whole, OPERAND, assert_trivial=True)


@gluon.jit
def load_factors(factors, tile, MMA: gl.constexpr, WARPS: gl.constexpr):  # type: ignore[no-untyped-def]
    """What the rows of a tile are to be multiplied with, [16 · WARPS]."""
    row = gl.arange(0, 16 * WARPS, gl.SliceLayout(1, MMA))
    return gl.load(factors + tile * WARPS + row // 16)


@gluon.jit
def store_slot(  # type: ignore[no-untyped-def]
    accumulator, factor, values, tile, blocks, units, columns, slot_stride, out,
    MMA: gl.constexpr, COLUMNS: gl.constexpr, WARPS: gl.constexpr,
):  # fmt: skip
    """Write this program's part [16 · WARPS, COLUMNS] of a tile to its slot, of which the first ``columns`` count."""
    first = ((tile * blocks + 1) * gl.num_programs(0) - 1) // units
    row = tile * (16 * WARPS) + gl.arange(0, 16 * WARPS, gl.SliceLayout(1, MMA))
    column = gl.arange(0, COLUMNS, gl.SliceLayout(0, MMA))
    where = values + (gl.program_id(0) - first) * slot_stride + (column[None, :] * out + row[:, None])
    gl.store(where, accumulator * factor[:, None], mask=(column[None, :] < columns) & (row[:, None] >= 0))
