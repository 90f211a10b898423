"""NVFP4 product for 9 to 64 columns on cards without ``wgmma``: ``mma.sync`` with the weights from registers and the
activations from shared memory, where they lie as the fragments count their columns (:mod:`kernels.fused.activations`).
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy, mma_v2
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from kernels.fused.nvfp4_fragments import as_operand, decode, load_factors, scale_offsets, store_slot, word_offsets


@gluon.jit(do_not_specialize=["columns"])
def shared_kernel(  # type: ignore[no-untyped-def]
    x, words, scales, factors, values, columns, slot_stride, out, k,
    COLUMNS: gl.constexpr, WARPS: gl.constexpr, STAGES: gl.constexpr, DEPENDENT: gl.constexpr,
):  # fmt: skip
    """Units shared as in :mod:`kernels.fused.partial`."""
    MMA: gl.constexpr = gl.NVMMADistributedLayout(version=[2, 0], warps_per_cta=[WARPS, 1], instr_shape=[16, 8])
    A: gl.constexpr = gl.DotOperandLayout(0, MMA, 2)
    B: gl.constexpr = gl.DotOperandLayout(1, MMA, 2)
    COPY: gl.constexpr = gl.BlockedLayout([1, 8], [2, 16], [WARPS, 1], [1, 0])
    SHARED: gl.constexpr = gl.SwizzledSharedLayout(vec=8, per_phase=1, max_phase=8, order=[1, 0])
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
    accumulator = gl.zeros([16 * WARPS, COLUMNS], gl.float32, MMA)
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
            async_copy.wait_group(STAGES - 2)
            here = ring.index(stage % STAGES)
            for d in gl.static_range(8):
                b = here.slice(16 * d, 16, dim=1).permute((1, 0)).load(B)
                accumulator = mma_v2(as_operand(a[d], A, WARPS), b, accumulator)
            if left > 0:
                async_copy.async_copy_global_to_shared(ring.index((stage + STAGES - 1) % STAGES), x_at + chunk * 128)
            async_copy.commit_group()
            stage += 1
            left -= 1
            chunk += 1
            if chunk == blocks * 4:
                chunk = 0
        if last or (not more):
            store_slot(accumulator, factor, values, tile, blocks, units, columns, slot_stride, out, MMA, COLUMNS, WARPS)
            accumulator = gl.zeros([16 * WARPS, COLUMNS], gl.float32, MMA)
            tile += 1
            if more:
                factor = load_factors(factors, tile, MMA, WARPS)
            block = -1
        block += 1
    async_copy.wait_group(0)
