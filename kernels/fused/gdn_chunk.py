"""A Gated DeltaNet layer over packed runs of consecutive tokens (prefill), in chunks of 64.

Equations as in ``kernels.gated_delta``: within a chunk with decays G, u = (I + A)⁻¹ (β v − β e^G k̂ S), A the strict
lower part of β k̂ k̂ᵀ ⊙ e^(G_i − G_j); o = e^G q̂ S + (q̂ k̂ᵀ ⊙ e^(G_i − G_j)) u; S ← e^G_last S + Σ e^(G_last − G_j) k̂ ⊗ u.

What depends on no state is made for all chunks at once: the convolution, then per chunk and head M = (I + A)⁻¹ diag(β)
and P, the decayed scores of q and k. The rest walks from chunk to chunk, for every run, value head and part of its
values on its own, with the state transposed in registers: every right operand of a product then comes from memory as
it is. Rounding: q, k, v are of the compute type, BF16; their norms are factors of rows and columns in float32, so that
products with k and q are exact in them. What meets them (the state, u) is split in two BF16 parts, 16 bits of it. M and
P take part in TF32.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.causal_conv import causal_conv_chunk
from kernels.fused.dot import dot
from kernels.fused.gdn import GdnLayer, GdnState, gates_reference, load_gates, precise_dot, silu, two_parts
from kernels.fused.gdn_step import gated_norm_reference, split_heads
from kernels.fused.launch import ceil_div, overlap, power_of_two
from kernels.fused.partial import Partial, load_sum
from kernels.gated_delta import gated_delta_chunked
from kernels.registry import interpreted, use_triton

CHUNK = 64
VALUES = 64
"""Values of a head that one program carries from chunk to chunk: two programs a head of 128, so that the 48 heads of
one run occupy 96 multiprocessors."""


def gdn_chunk_reference(
    product: Partial,
    ba: Tensor,
    layer: GdnLayer,
    state: GdnState,
    slots: Tensor,
    starts: Tensor,
    *,
    dtype: torch.dtype = torch.bfloat16,
    dependent: bool = False,
) -> Tensor:
    """:func:`gdn_chunk` in plain torch, run by run."""
    _check(product, ba, layer, state, slots, starts)
    x = product.sum()[:, : layer.channels].to(state.conv.dtype)
    beta, g = gates_reference(ba, layer)
    out = torch.zeros(len(x), layer.value_heads, layer.value_dim, device=x.device)
    bounds = starts.tolist()
    for slot, start, end in zip(slots.tolist(), bounds, bounds[1:], strict=False):
        if start == end:
            continue
        y, state.conv[slot] = causal_conv_chunk(x[start:end], layer.conv, state.conv[slot])
        q, k, v = split_heads(y, layer)
        own = slice(start, end)
        out[own] = gated_delta_chunked(q, k, v, g[own], beta[own], state.recurrent[slot])
    return gated_norm_reference(out, product, layer, dtype)


def gdn_chunk(
    product: Partial,
    ba: Tensor,
    layer: GdnLayer,
    state: GdnState,
    slots: Tensor,
    starts: Tensor,
    *,
    dtype: torch.dtype = torch.bfloat16,
    dependent: bool = False,
) -> Tensor:
    """R runs of columns, each going on from its lane's state and updating it.

    Args:
        product: [N, q ‖ k ‖ v ‖ z].
        ba: [N, b ‖ a], 2 Hv values of any float type.
        state: convolution and recurrence are updated in place.
        slots: int32 [R], the lanes' slots, no slot twice.
        starts: int32 [R + 1]: run r is columns [starts[r], starts[r + 1]), possibly none; starts[0] = 0. Columns from
            starts[R] on belong to no run; their result is 0.
        dtype: of the result.
        dependent: launched while the kernel before may still run (programmatic dependent launch).

    Returns:
        [N, Hv · Dv]: RMSNorm(Sᵀq / √Dk) · SiLU(z).
    """
    if not use_triton(product.values):
        return gdn_chunk_reference(product, ba, layer, state, slots, starts, dtype=dtype)
    _check(product, ba, layer, state, slots, starts)
    count, heads, dk, dv = product.columns, layer.value_heads, layer.key_dim, layer.value_dim
    device, runs = product.values.device, len(slots)
    # Each run may end in a part of a chunk.
    chunks = ceil_div(count, CHUNK) + runs - 1
    mixed = torch.empty(count, layer.channels, dtype=state.conv.dtype, device=device)
    solved = torch.empty(chunks, heads, CHUNK, CHUNK, dtype=torch.float32, device=device)
    scores = torch.empty_like(solved)
    factors = torch.empty(chunks, heads, 4, CHUNK, dtype=torch.float32, device=device)
    between = torch.empty(count, heads, dv, dtype=torch.float32, device=device)
    out = torch.empty(count, heads * dv, dtype=dtype, device=device)
    shape = {"RUNS": runs, "RUNS_UP": power_of_two(runs), "CHUNK": CHUNK, "C": layer.channels}
    inputs = {"OUT": product.out_features, "LAYOUT": product.layout}
    heads_shape = {"KEY_HEADS": layer.key_heads, "HEADS": heads, "DK": dk, "DV": dv}
    launch = overlap(dependent, out)
    _conv_kernel[(chunks, ceil_div(layer.channels, 64))](
        *product.arguments,
        layer.conv,
        state.conv,
        state.conv.stride(0),
        slots,
        starts,
        mixed,
        **shape,
        **inputs,
        BLOCK=64,
        num_warps=8,
        **launch,
    )
    _solve_kernel[(chunks, heads)](
        mixed,
        ba,
        layer.decay,
        layer.dt_bias,
        starts,
        solved,
        scores,
        factors,
        **shape,
        **heads_shape,
        INTERPRET=interpreted(),
        num_warps=4,
        **launch,
    )
    values = min(VALUES, dv)
    _walk_kernel[(heads * (dv // values), runs)](
        mixed,
        *product.arguments,
        solved,
        scores,
        factors,
        state.conv,
        state.conv.stride(0),
        state.recurrent,
        state.recurrent.stride(0),
        slots,
        starts,
        between,
        **shape,
        **inputs,
        **heads_shape,
        BV=values,
        INTERPRET=interpreted(),
        num_warps=4,
        num_stages=_stages(mixed),
        **launch,
    )
    _norm_kernel[(ceil_div(count * heads, 16),)](
        between,
        *product.arguments,
        layer.norm,
        starts,
        out,
        count * heads,
        layer.eps,
        **inputs,
        RUNS=runs,
        C=layer.channels,
        HEADS=heads,
        DV=dv,
        ROWS=16,
        num_warps=4,
        **launch,
    )
    return out


def _stages(mixed: Tensor) -> int:
    """Chunks whose operands are in shared memory at a time: 72 KiB each in BF16, up to 112 KiB in float32."""
    if interpreted() or mixed.dtype == torch.float32:
        return 1
    # SM90 and SM100 have room for two; a block of SM120 has 99 KiB.
    return 2 if torch.cuda.get_device_capability(mixed.device)[0] in (9, 10) else 1


def _check(product: Partial, ba: Tensor, layer: GdnLayer, state: GdnState, slots: Tensor, starts: Tensor) -> None:
    layer.check(product.out_features, state)
    if ba.shape != (product.columns, 2 * layer.value_heads):
        raise ValueError(
            f"{product.columns} columns take {2 * layer.value_heads} values of b and a each, not {list(ba.shape)}."
        )
    if starts.shape != (len(slots) + 1,):
        raise ValueError(f"{len(slots)} runs have {len(slots) + 1} bounds, not {list(starts.shape)}.")


@triton.jit
def _find_chunk(starts, chunk, RUNS: tl.constexpr, RUNS_UP: tl.constexpr, CHUNK: tl.constexpr):  # type: ignore[no-untyped-def]
    """(run, its number RUNS or more where there is no such chunk; the chunk's place in it)."""
    r = tl.arange(0, RUNS_UP)
    low = tl.load(starts + r, mask=r < RUNS, other=0)
    high = tl.load(starts + r + 1, mask=r < RUNS, other=0)
    chunks = (high - low + CHUNK - 1) // CHUNK
    past = tl.cumsum(chunks, axis=0) <= chunk
    return tl.sum((past & (r < RUNS)).to(tl.int32)), chunk - tl.sum(tl.where(past, chunks, 0))


@triton.jit
def _conv_kernel(  # type: ignore[no-untyped-def]
    values,
    slot_stride,
    column_stride,
    weight,
    conv_state,
    state_stride,
    slots,
    starts,
    mixed,
    RUNS: tl.constexpr,
    RUNS_UP: tl.constexpr,
    CHUNK: tl.constexpr,
    C: tl.constexpr,
    OUT: tl.constexpr,
    LAYOUT: tl.constexpr,
    BLOCK: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """Some channels of one chunk: convolution and SiLU."""
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    run, place = _find_chunk(starts, tl.program_id(0), RUNS, RUNS_UP, CHUNK)
    if run < RUNS:
        begin, end = tl.load(starts + run), tl.load(starts + run + 1)
        column = begin + place * CHUNK + tl.arange(0, CHUNK)[:, None]
        mask = (column < end) & (c < C)
        state = conv_state + tl.load(slots + run).to(tl.int64) * state_stride + c
        y = tl.zeros((CHUNK, BLOCK), tl.float32)
        for tap in tl.static_range(4):
            source = column - 3 + tap
            x = load_sum(values, slot_stride, column_stride, source, c, mask & (source >= begin), OUT, LAYOUT)
            x = x.to(conv_state.dtype.element_ty)
            y += x.to(tl.float32) * tl.load(weight + tap * C + c, mask=c < C, other=0.0).to(tl.float32)
        if place == 0:
            # Only a run's first three columns reach back to the state, where there is a 0 so far.
            for tap in tl.static_range(3):
                source = column - 3 + tap - begin
                x = tl.load(state + (source + 3) * C, mask=mask & (source < 0), other=0.0)
                y += x.to(tl.float32) * tl.load(weight + tap * C + c, mask=c < C, other=0.0).to(tl.float32)
        tl.store(mixed + column.to(tl.int64) * C + c, silu(y).to(mixed.dtype.element_ty), mask=mask)


@triton.jit
def _unit_lower_inverse(a, INTERPRET: tl.constexpr):  # type: ignore[no-untyped-def]
    """(I + a)⁻¹ in float32 of a strictly lower triangular a [64, 64].

    The four 16 × 16 blocks on the diagonal by substitution, all at once: D. With L the rest of a, (I + a)⁻¹ =
    (I + D L)⁻¹ D, and N = D L has four block rows, so N⁴ = 0 and (I + N)⁻¹ = (I − N)(I + N²).
    """
    r = tl.arange(0, 64)
    diagonal = r[:, None] // 16 == r[None, :] // 16
    blocks = tl.sum(tl.reshape(tl.where(diagonal, a, 0.0), (4, 16, 4, 16)), axis=2)
    i = tl.arange(0, 16)
    inverse = tl.where(i[None, :, None] == i[None, None, :], 1.0, 0.0) + tl.zeros((4, 16, 16), tl.float32)
    for step in range(1, 16):
        is_row = i[None, :, None] == step
        row = tl.sum(tl.where(is_row, blocks, 0.0), axis=1)
        change = tl.sum(row[:, :, None] * inverse, axis=1)
        inverse -= tl.where(is_row, change[:, None, :], 0.0)
    spread = tl.broadcast_to(inverse[:, :, None, :], (4, 16, 4, 16))
    d = tl.where(diagonal, tl.reshape(spread, (64, 64)), 0.0)
    nothing = tl.zeros((64, 64), tl.float32)
    n = precise_dot(d, tl.where(diagonal, 0.0, a), nothing, INTERPRET)
    rest = tl.where(r[:, None] == r[None, :], 1.0, 0.0) - n
    rest = precise_dot(rest, precise_dot(n, n, nothing, INTERPRET), rest, INTERPRET)
    return precise_dot(rest, d, nothing, INTERPRET)


@triton.jit
def _solve_kernel(  # type: ignore[no-untyped-def]
    mixed,
    ba,
    decay,
    dt_bias,
    starts,
    solved,
    scores,
    factors,
    RUNS: tl.constexpr,
    RUNS_UP: tl.constexpr,
    CHUNK: tl.constexpr,
    C: tl.constexpr,
    KEY_HEADS: tl.constexpr,
    HEADS: tl.constexpr,
    DK: tl.constexpr,
    DV: tl.constexpr,
    INTERPRET: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """M, P and the factors of rows and columns, of one chunk and value head."""
    chunk, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    key_head = head // (HEADS // KEY_HEADS)
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    run, place = _find_chunk(starts, tl.program_id(0), RUNS, RUNS_UP, CHUNK)
    if run < RUNS:
        i, d = tl.arange(0, CHUNK), tl.arange(0, DK)
        column = tl.load(starts + run) + place * CHUNK + i
        live = column < tl.load(starts + run + 1)
        where = mixed + column[:, None].to(tl.int64) * C + key_head * DK + d[None, :]
        q = tl.load(where, mask=live[:, None], other=0.0)
        k = tl.load(where + KEY_HEADS * DK, mask=live[:, None], other=0.0)
        nothing = tl.zeros((CHUNK, CHUNK), tl.float32)
        kk = dot(k, tl.trans(k), nothing, INTERPRET)
        qk = dot(q, tl.trans(k), nothing, INTERPRET)
        q, k = q.to(tl.float32), k.to(tl.float32)
        q_norm = tl.rsqrt(tl.sum(q * q, axis=1) + 1e-6) * DK**-0.5
        k_norm = tl.rsqrt(tl.sum(k * k, axis=1) + 1e-6)
        kk *= k_norm[:, None] * k_norm[None, :]
        qk *= q_norm[:, None] * k_norm[None, :]
        square = i[:, None] * CHUNK + i[None, :]
        beta, g = load_gates(ba, decay, dt_bias, column, head, live, HEADS)
        total = tl.cumsum(g, axis=0)
        end = tl.sum(tl.where(i == CHUNK - 1, total, 0.0))
        # Above the diagonal the differences are positive and would overflow.
        between = tl.exp(tl.minimum(total[:, None] - total[None, :], 0.0))
        system = tl.where(i[:, None] > i[None, :], kk * between * beta[:, None], 0.0)
        at = chunk * HEADS + head
        tl.store(scores + at * (CHUNK * CHUNK) + square, tl.where(i[:, None] >= i[None, :], qk * between, 0.0))
        tl.store(solved + at * (CHUNK * CHUNK) + square, _unit_lower_inverse(system, INTERPRET) * beta[None, :])
        row = factors + at * (4 * CHUNK) + i
        tl.store(row, k_norm * tl.exp(total))
        tl.store(row + CHUNK, q_norm * tl.exp(total))
        tl.store(row + 2 * CHUNK, k_norm * tl.exp(end - total))
        tl.store(row + 3 * CHUNK, tl.exp(end) + tl.zeros((CHUNK,), tl.float32))


@triton.jit
def _keep_inputs(  # type: ignore[no-untyped-def]
    values, slot_stride, column_stride, state, begin, end, c, C: tl.constexpr, OUT: tl.constexpr, LAYOUT: tl.constexpr
):
    """The last three inputs of a run's channels ``c`` become its state; some are old ones where the run is short."""
    r = tl.arange(0, 4)[:, None]
    source = end - 3 + r
    x = load_sum(values, slot_stride, column_stride, source, c[None, :], (r < 3) & (source >= begin), OUT, LAYOUT).to(
        state.dtype.element_ty
    )
    old = tl.load(state + (source - begin + 3) * C + c[None, :], mask=(r < 3) & (source < begin), other=0.0)
    # The rows that are read are those that are written.
    tl.debug_barrier()
    tl.store(state + r * C + c[None, :], tl.where(source < begin, old, x), mask=r < 3)


@triton.jit
def _product(x, y, acc, INTERPRET: tl.constexpr):  # type: ignore[no-untyped-def]
    """acc + x y, x in float32, y as it is: where y is BF16, of two BF16 parts of x, the first and what it leaves."""
    if y.dtype == tl.float32:
        acc = dot(x, y, acc, INTERPRET)
    else:
        high, low = two_parts(x)
        acc = dot(high, y, acc, INTERPRET)
        acc = dot(low, y, acc, INTERPRET)
    return acc


@triton.jit
def _walk_kernel(  # type: ignore[no-untyped-def]
    mixed,
    values,
    slot_stride,
    column_stride,
    solved,
    scores,
    factors,
    conv_state,
    conv_stride,
    state,
    state_stride,
    slots,
    starts,
    out,
    RUNS: tl.constexpr,
    RUNS_UP: tl.constexpr,
    CHUNK: tl.constexpr,
    C: tl.constexpr,
    OUT: tl.constexpr,
    LAYOUT: tl.constexpr,
    KEY_HEADS: tl.constexpr,
    HEADS: tl.constexpr,
    DK: tl.constexpr,
    DV: tl.constexpr,
    BV: tl.constexpr,
    INTERPRET: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """BV values of one value head of one run, chunk after chunk."""
    SPLITS: tl.constexpr = DV // BV
    GROUP: tl.constexpr = HEADS // KEY_HEADS
    head, part, run = tl.program_id(0) // SPLITS, tl.program_id(0) % SPLITS, tl.program_id(1)
    key_head = head // GROUP
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    begin, end = tl.load(starts + run), tl.load(starts + run + 1)
    if begin < end:
        slot = tl.load(slots + run).to(tl.int64)
        r = tl.arange(0, RUNS_UP)
        low = tl.load(starts + r, mask=r < run, other=0)
        high = tl.load(starts + r + 1, mask=r < run, other=0)
        before = tl.sum((high - low + CHUNK - 1) // CHUNK)
        i, d, v = tl.arange(0, CHUNK), tl.arange(0, DK), part * BV + tl.arange(0, BV)
        where = state + slot * state_stride + head * (DK * DV) + d[None, :] * DV + v[:, None]
        s = tl.load(where)
        for place in range(tl.cdiv(end - begin, CHUNK)):
            column = begin + place * CHUNK + i
            live = column < end
            line = mixed + column.to(tl.int64) * C
            at = (before + place).to(tl.int64) * HEADS + head
            key = line[:, None] + key_head * DK + d[None, :]
            k = tl.load(key + KEY_HEADS * DK, mask=live[:, None], other=0.0)
            q = tl.load(key, mask=live[:, None], other=0.0)
            value = line[None, :] + 2 * KEY_HEADS * DK + head * DV + v[:, None]
            x = tl.load(value, mask=live[None, :], other=0.0).to(tl.float32)
            square = at * (CHUNK * CHUNK) + i[:, None] * CHUNK + i[None, :]
            m, p = tl.load(solved + square), tl.load(scores + square)
            factor = factors + at * (4 * CHUNK) + i
            k_grown, q_grown, k_left = tl.load(factor), tl.load(factor + CHUNK), tl.load(factor + 2 * CHUNK)
            end_decay = tl.load(factors + at * (4 * CHUNK) + 3 * CHUNK)
            nothing = tl.zeros((BV, CHUNK), tl.float32)
            x -= k_grown[None, :] * _product(s, tl.trans(k), nothing, INTERPRET)
            o = q_grown[None, :] * _product(s, tl.trans(q), nothing, INTERPRET)
            u = tl.dot(x, tl.trans(m), input_precision="tf32")
            o = tl.dot(u, tl.trans(p), acc=o, input_precision="tf32")
            to = out + (column[None, :].to(tl.int64) * HEADS + head) * DV + v[:, None]
            tl.store(to, o, mask=live[None, :])
            s = _product(u * k_left[None, :], k, s * end_decay, INTERPRET)
        tl.store(where, s)
        if part == 0:
            conv = conv_state + slot * conv_stride
            c = 2 * KEY_HEADS * DK + head * DV + tl.arange(0, DV)
            _keep_inputs(values, slot_stride, column_stride, conv, begin, end, c, C, OUT, LAYOUT)
            if head % GROUP == 0:
                c = key_head * DK + d
                _keep_inputs(values, slot_stride, column_stride, conv, begin, end, c, C, OUT, LAYOUT)
                c += KEY_HEADS * DK
                _keep_inputs(values, slot_stride, column_stride, conv, begin, end, c, C, OUT, LAYOUT)


@triton.jit
def _norm_kernel(  # type: ignore[no-untyped-def]
    between,
    values,
    slot_stride,
    column_stride,
    norm,
    starts,
    out,
    rows,
    eps,
    OUT: tl.constexpr,
    LAYOUT: tl.constexpr,
    RUNS: tl.constexpr,
    C: tl.constexpr,
    HEADS: tl.constexpr,
    DV: tl.constexpr,
    ROWS: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """The gated norm of some heads of some columns; zeros for columns of no run."""
    row, j = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None], tl.arange(0, DV)[None, :]
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    at = row.to(tl.int64) * DV + j
    column, head = row // HEADS, row % HEADS
    live = column < tl.load(starts + RUNS)
    o = tl.load(between + at, mask=live, other=0.0)
    z = load_sum(values, slot_stride, column_stride, column.to(tl.int64), C + head * DV + j, live, OUT, LAYOUT)
    y = o * tl.rsqrt(tl.sum(o * o, axis=1) / DV + eps)[:, None] * tl.load(norm + j) * silu(z)
    tl.store(out + at, y.to(out.dtype.element_ty), mask=row < rows)
