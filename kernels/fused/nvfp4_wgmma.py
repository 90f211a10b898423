"""NVFP4 product for 9 to 64 columns on SM90: ``wgmma`` with the weights as A from registers, activations from shared
memory.

There they must lie as the fragments count their columns, see :func:`kernels.fused.activations.fragment_column`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_init,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from kernels.fused.nvfp4_fragments import (
    as_wide_operand,
    barrier,
    decode,
    load_factors,
    scale_offsets,
    store_slot,
    word_offsets,
)

SHARED = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)


def describe(x: Tensor, columns: int) -> Any:
    """Descriptor of x [N, K] by which the tensor memory engine copies [columns, 128]; rows beyond N read as zero."""
    if x.dtype != torch.bfloat16 or not x.is_contiguous():
        raise ValueError(f"Activations must be contiguous bfloat16, not {x.dtype} with strides {x.stride()}.")
    return TensorDescriptor.from_tensor(x, [columns, 128], SHARED)


@gluon.jit(do_not_specialize=["columns"])
def stream_kernel(  # type: ignore[no-untyped-def]
    x, words, scales, factors, values, columns, slot_stride, out, k,
    COLUMNS: gl.constexpr, WARPS: gl.constexpr, STAGES: gl.constexpr, DEPENDENT: gl.constexpr,
):  # fmt: skip
    """Few columns: units shared as in :mod:`kernels.fused.partial`, activations by ``cp.async``."""
    MMA: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[WARPS, 1], instr_shape=[16, COLUMNS, 16]
    )
    A: gl.constexpr = gl.DotOperandLayout(0, MMA, 2)
    COPY: gl.constexpr = gl.BlockedLayout([1, 8], [2, 16], [WARPS, 1], [1, 0])
    SHARED: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)
    if DEPENDENT:
        gdc_launch_dependents()
    blocks = k // 512
    units = out // (16 * WARPS) * blocks
    start = gl.program_id(0) * units // gl.num_programs(0)
    stop = (gl.program_id(0) + 1) * units // gl.num_programs(0)
    tile = start // blocks
    block = start - tile * blocks
    at = words + (tile * WARPS * blocks + block) * 1024 + word_offsets(k, WARPS)
    scale_at = scales + (tile * WARPS * blocks + block) * 128 + scale_offsets(k, WARPS)
    w0 = gl.load(at, cache_modifier=".cg")
    w1 = gl.load(at + 256, cache_modifier=".cg")
    w2 = gl.load(at + 512, cache_modifier=".cg")
    w3 = gl.load(at + 768, cache_modifier=".cg")
    s0 = gl.load(scale_at, cache_modifier=".cg")
    s1 = gl.load(scale_at + 64, cache_modifier=".cg")
    factor = load_factors(factors, tile, MMA, WARPS)
    if DEPENDENT:
        gdc_wait()
    column = gl.arange(0, COLUMNS, gl.SliceLayout(1, COPY))
    i = gl.arange(0, 128, gl.SliceLayout(0, COPY))
    x_at = x + (gl.minimum(column, columns - 1)[:, None] * k + i[None, :])
    ring = gl.allocate_shared_memory(gl.bfloat16, [STAGES, COLUMNS, 128], SHARED)
    # The chunk to be copied next, and how many are left.
    chunk = block * 4
    left = (stop - start) * 4
    for stage in gl.static_range(STAGES - 1):
        if left > 0:
            async_copy.async_copy_global_to_shared(ring.index(stage), x_at + chunk * 128)
        async_copy.commit_group()
        left -= 1
        chunk += 1
        if chunk == blocks * 4:
            chunk = 0
    stage = 0
    pending = warpgroup_mma_init(gl.zeros([16 * WARPS, COLUMNS], gl.float32, MMA))
    begun = False
    for unit in range(start, stop):
        last = block == blocks - 1
        more = unit + 1 < stop
        step = gl.where(last, (WARPS - 1) * blocks + 1, 1)
        at += step * 1024
        scale_at += step * 128
        for c in gl.static_range(4):
            if c == 0:
                a = decode(w0, s0, 0, WARPS)
                w0 = gl.load(at, mask=more, cache_modifier=".cg")
            elif c == 1:
                a = decode(w1, s0, 1, WARPS)
                w1 = gl.load(at + 256, mask=more, cache_modifier=".cg")
                s0 = gl.load(scale_at, mask=more, cache_modifier=".cg")
            elif c == 2:
                a = decode(w2, s1, 0, WARPS)
                w2 = gl.load(at + 512, mask=more, cache_modifier=".cg")
            else:
                a = decode(w3, s1, 1, WARPS)
                w3 = gl.load(at + 768, mask=more, cache_modifier=".cg")
                s1 = gl.load(scale_at + 64, mask=more, cache_modifier=".cg")
            operand = as_wide_operand(a, A, WARPS)
            accumulator = warpgroup_mma_wait(0, deps=[pending])
            async_copy.wait_group(STAGES - 2)
            fence_async_shared()
            here = ring.index(stage % STAGES).permute((1, 0))
            if c == 0:
                pending = warpgroup_mma(operand, here, accumulator, use_acc=begun, is_async=True)
            else:
                pending = warpgroup_mma(operand, here, accumulator, is_async=True)
            if left > 0:
                async_copy.async_copy_global_to_shared(ring.index((stage + STAGES - 1) % STAGES), x_at + chunk * 128)
            async_copy.commit_group()
            stage += 1
            left -= 1
            chunk += 1
            if chunk == blocks * 4:
                chunk = 0
        begun = True
        if last or (not more):
            total = warpgroup_mma_wait(0, deps=[pending])
            store_slot(total, factor, values, tile, blocks, units, columns, slot_stride, out, MMA, COLUMNS, WARPS)
            pending = warpgroup_mma_init(total)
            begun = False
            tile += 1
            if more:
                factor = load_factors(factors, tile, MMA, WARPS)
            block = -1
        block += 1
    async_copy.wait_group(0)


@gluon.jit
def _copy(x, column, ready, ring, stage, BYTES: gl.constexpr):  # type: ignore[no-untyped-def]
    """Start to copy a chunk of activations."""
    mbarrier.expect(ready.index(stage), BYTES)
    tma.async_copy_global_to_shared(x, [0, column], ready.index(stage), ring.index(stage))


@gluon.jit(do_not_specialize=["columns"])
def persistent_kernel(  # type: ignore[no-untyped-def]
    x, words, scales, factors, values, columns, slot_stride, out, k,
    COLUMNS: gl.constexpr, WARPS: gl.constexpr, STAGES: gl.constexpr, HALVES: gl.constexpr, DEPENDENT: gl.constexpr,
):  # fmt: skip
    """Units of HALVES · 256 columns, shared as in :mod:`kernels.fused.partial`; activations by the tensor memory
    engine."""
    MMA: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[WARPS, 1], instr_shape=[16, COLUMNS, 16]
    )
    A: gl.constexpr = gl.DotOperandLayout(0, MMA, 2)
    SHARED: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)
    BYTES: gl.constexpr = COLUMNS * 256
    if DEPENDENT:
        gdc_launch_dependents()
    blocks = k // (256 * HALVES)
    units = out // (16 * WARPS) * blocks
    start = gl.program_id(0) * units // gl.num_programs(0)
    stop = (gl.program_id(0) + 1) * units // gl.num_programs(0)
    first = start // blocks
    last = (stop - 1) // blocks
    block = start - first * blocks
    at = words + (first * (WARPS * 2 * k) + block * (512 * HALVES)) + word_offsets(k, WARPS)
    scale_at = scales + (first * (WARPS * k // 4) + block * (64 * HALVES)) + scale_offsets(k, WARPS)
    w0 = gl.load(at, cache_modifier=".cg")
    w1 = gl.load(at + 256, cache_modifier=".cg")
    s0 = gl.load(scale_at, cache_modifier=".cg")
    if HALVES == 2:
        w2 = gl.load(at + 512, cache_modifier=".cg")
        w3 = gl.load(at + 768, cache_modifier=".cg")
        s1 = gl.load(scale_at + 64, cache_modifier=".cg")
    ring = gl.allocate_shared_memory(gl.bfloat16, [STAGES, COLUMNS, 128], SHARED)
    ready = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES):
        mbarrier.init(ready.index(stage), count=1)
    if DEPENDENT:
        gdc_wait()
    barrier()
    chunks = (stop - start) * (2 * HALVES)
    column = block * (256 * HALVES)
    for stage in gl.static_range(STAGES - 1):
        if stage < chunks:
            _copy(x, column, ready, ring, stage, BYTES)
            column += 128
            if column == k:
                column = 0
    chunk = 0
    pending = warpgroup_mma_init(gl.zeros([16 * WARPS, COLUMNS], gl.float32, MMA))
    for tile in range(first, last + 1):
        bottom = gl.maximum(start - tile * blocks, 0)
        top = gl.minimum(stop - tile * blocks, blocks)
        for block in range(bottom, top):
            jump = gl.where(block == blocks - 1, (WARPS - 1) * blocks + 1, 1)
            more = (block + 1 < top) | (tile < last)
            at += jump * (512 * HALVES)
            scale_at += jump * (64 * HALVES)
            for c in gl.static_range(2 * HALVES):
                if c == 0:
                    a = decode(w0, s0, 0, WARPS)
                    w0 = gl.load(at, mask=more, cache_modifier=".cg")
                elif c == 1:
                    a = decode(w1, s0, 1, WARPS)
                    w1 = gl.load(at + 256, mask=more, cache_modifier=".cg")
                    s0 = gl.load(scale_at, mask=more, cache_modifier=".cg")
                elif c == 2:
                    a = decode(w2, s1, 0, WARPS)
                    w2 = gl.load(at + 512, mask=more, cache_modifier=".cg")
                else:
                    a = decode(w3, s1, 1, WARPS)
                    w3 = gl.load(at + 768, mask=more, cache_modifier=".cg")
                    s1 = gl.load(scale_at + 64, mask=more, cache_modifier=".cg")
                operand = as_wide_operand(a, A, WARPS)
                accumulator = warpgroup_mma_wait(0, deps=[pending])
                # All warps have read the chunk before: its place is free for the one STAGES − 1 further on.
                barrier()
                later = chunk + STAGES - 1
                if later < chunks:
                    _copy(x, column, ready, ring, later % STAGES, BYTES)
                    column += 128
                    if column == k:
                        column = 0
                mbarrier.wait(ready.index(chunk % STAGES), (chunk // STAGES) & 1)
                here = ring.index(chunk % STAGES).permute((1, 0))
                if c == 0:
                    pending = warpgroup_mma(operand, here, accumulator, use_acc=block != bottom, is_async=True)
                else:
                    pending = warpgroup_mma(operand, here, accumulator, is_async=True)
                chunk += 1
        total = warpgroup_mma_wait(0, deps=[pending])
        factor = load_factors(factors, tile, MMA, WARPS)
        store_slot(total, factor, values, tile, blocks, units, columns, slot_stride, out, MMA, COLUMNS, WARPS)
        pending = warpgroup_mma_init(total)
