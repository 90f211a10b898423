"""NVFP4 product for up to eight columns: weights and activations go from global memory straight to ``mma.sync``."""

from __future__ import annotations

from typing import Any

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import mma_v2
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from kernels.fused.nvfp4_fragments import as_operand, decode, load_factors, scale_offsets, store_slot, word_offsets

COLUMNS = 8


def activation_layout(warps: int) -> Any:
    """[8, 2 (b), 64] columns of a chunk: lane (g, t) has column g's 16 values of its t, 32 consecutive bytes of each b:
    the B fragments that go with its weights."""
    registers = [[0, 0, 1], [0, 0, 2], [0, 0, 4], [0, 0, 8], [0, 1, 0]]
    lanes = [[0, 0, 16], [0, 0, 32], [1, 0, 0], [2, 0, 0], [4, 0, 0]]
    return gl.DistributedLinearLayout(registers, lanes, [[0, 0, 0]] * (warps.bit_length() - 1), [], [COLUMNS, 2, 64])


@gluon.jit
def _as_columns(x, OPERAND: gl.constexpr):  # type: ignore[no-untyped-def]
    """A chunk's activations as the eight B [16, 8] of its fragments: moves nothing."""
    x = x.reshape([8, 2, 4, 2, 2, 2, 2]).permute([5, 2, 6, 0, 1, 3, 4]).reshape([16, 8, 2, 2, 2])
    even, odd = gl.split(x)
    even0, even1 = gl.split(even)
    odd0, odd1 = gl.split(odd)
    x0, x4 = gl.split(even0)
    x2, x6 = gl.split(even1)
    x1, x5 = gl.split(odd0)
    x3, x7 = gl.split(odd1)
    return (
        gl.convert_layout(x0, OPERAND, assert_trivial=True),
        gl.convert_layout(x1, OPERAND, assert_trivial=True),
        gl.convert_layout(x2, OPERAND, assert_trivial=True),
        gl.convert_layout(x3, OPERAND, assert_trivial=True),
        gl.convert_layout(x4, OPERAND, assert_trivial=True),
        gl.convert_layout(x5, OPERAND, assert_trivial=True),
        gl.convert_layout(x6, OPERAND, assert_trivial=True),
        gl.convert_layout(x7, OPERAND, assert_trivial=True),
    )


@gluon.jit(do_not_specialize=["columns"])
def registers_kernel(  # type: ignore[no-untyped-def]
    x, words, scales, factors, values, columns, slot_stride, out, k,
    X: gl.constexpr, WARPS: gl.constexpr, DEPENDENT: gl.constexpr,
):  # fmt: skip
    """``values`` += x [columns ≤ 8, k] · weightᵀ, units shared as in :mod:`kernels.fused.partial`; no shared memory."""
    MMA: gl.constexpr = gl.NVMMADistributedLayout(version=[2, 0], warps_per_cta=[WARPS, 1], instr_shape=[16, 8])
    A: gl.constexpr = gl.DotOperandLayout(0, MMA, 2)
    B: gl.constexpr = gl.DotOperandLayout(1, MMA, 2)
    if DEPENDENT:
        gdc_launch_dependents()
    blocks = k // 256
    units = out // (16 * WARPS) * blocks
    start = gl.program_id(0) * units // gl.num_programs(0)
    stop = (gl.program_id(0) + 1) * units // gl.num_programs(0)
    tile = start // blocks
    block = start - tile * blocks
    at = words + (tile * (WARPS * 2 * k) + block * 512) + word_offsets(k, WARPS)
    scale_at = scales + (tile * (WARPS * k // 4) + block * 64) + scale_offsets(k, WARPS)
    # Two units are on their way; that after next starts this much further on, more at a tile's end.
    jump = (WARPS - 1) * blocks
    w0 = gl.load(at, cache_modifier=".cg")
    w1 = gl.load(at + 256, cache_modifier=".cg")
    s0 = gl.load(scale_at, cache_modifier=".cg")
    ahead = block + 1
    step = gl.where(ahead == blocks, jump + 1, 1)
    ahead = gl.where(ahead == blocks, 0, ahead)
    at += step * 512
    scale_at += step * 64
    more = start + 1 < stop
    w2 = gl.load(at, mask=more, cache_modifier=".cg")
    w3 = gl.load(at + 256, mask=more, cache_modifier=".cg")
    s1 = gl.load(scale_at, mask=more, cache_modifier=".cg")
    factor = load_factors(factors, tile, MMA, WARPS)
    # Weights do not change, so they are on their way before the kernel that makes x has ended. (To ask the cache for
    # more of them meanwhile was slower: the first units of programs that start later wait behind it.)
    if DEPENDENT:
        gdc_wait()
    column = gl.arange(0, 8, gl.SliceLayout(1, gl.SliceLayout(2, X)))
    b = gl.arange(0, 2, gl.SliceLayout(0, gl.SliceLayout(2, X)))
    i = gl.arange(0, 64, gl.SliceLayout(0, gl.SliceLayout(1, X)))
    # Columns that are not there repeat the last one: the same bytes, and nobody looks at what comes of them.
    x_offsets = (gl.minimum(column, columns - 1) * k)[:, None][:, :, None] + (b * 64)[None, :][:, :, None]
    x_offsets += i[None, :][:, None, :]
    even = gl.zeros([16 * WARPS, 8], gl.float32, MMA)
    odd = gl.zeros([16 * WARPS, 8], gl.float32, MMA)
    for pair in range(start, stop, 2):
        for half in gl.static_range(2):
            unit = pair + half
            if unit < stop:
                ahead += 1
                step = gl.where(ahead == blocks, jump + 1, 1)
                ahead = gl.where(ahead == blocks, 0, ahead)
                at += step * 512
                scale_at += step * 64
                more = unit + 2 < stop
                for c in gl.static_range(2):
                    x0, x1, x2, x3, x4, x5, x6, x7 = _as_columns(gl.load(x + block * 256 + (x_offsets + c * 128)), B)
                    # The words after next take the place of those just decoded.
                    if half == 0:
                        if c == 0:
                            a = decode(w0, s0, 0, WARPS)
                            w0 = gl.load(at, mask=more, cache_modifier=".cg")
                        else:
                            a = decode(w1, s0, 1, WARPS)
                            w1 = gl.load(at + 256, mask=more, cache_modifier=".cg")
                            s0 = gl.load(scale_at, mask=more, cache_modifier=".cg")
                    else:
                        if c == 0:
                            a = decode(w2, s1, 0, WARPS)
                            w2 = gl.load(at, mask=more, cache_modifier=".cg")
                        else:
                            a = decode(w3, s1, 1, WARPS)
                            w3 = gl.load(at + 256, mask=more, cache_modifier=".cg")
                            s1 = gl.load(scale_at, mask=more, cache_modifier=".cg")
                    even = mma_v2(as_operand(a[0], A, WARPS), x0, even)
                    odd = mma_v2(as_operand(a[1], A, WARPS), x1, odd)
                    even = mma_v2(as_operand(a[2], A, WARPS), x2, even)
                    odd = mma_v2(as_operand(a[3], A, WARPS), x3, odd)
                    even = mma_v2(as_operand(a[4], A, WARPS), x4, even)
                    odd = mma_v2(as_operand(a[5], A, WARPS), x5, odd)
                    even = mma_v2(as_operand(a[6], A, WARPS), x6, even)
                    odd = mma_v2(as_operand(a[7], A, WARPS), x7, odd)
                if (block == blocks - 1) or (unit + 1 == stop):
                    total = even + odd
                    store_slot(total, factor, values, tile, blocks, units, columns, slot_stride, out, MMA, 8, WARPS)
                    even = gl.zeros([16 * WARPS, 8], gl.float32, MMA)
                    odd = gl.zeros([16 * WARPS, 8], gl.float32, MMA)
                    tile += 1
                    if unit + 1 < stop:
                        factor = load_factors(factors, tile, MMA, WARPS)
                    block = -1
                block += 1
