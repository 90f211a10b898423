"""Triton kernels of the gated delta rule's gradients; notation and layout are those of ``delta_kernels.py``."""

from __future__ import annotations

import triton
import triton.language as tl

from .delta_kernels import (
    ANY,
    CHUNK,
    _below,
    _dot,
    _end,
    _full,
    _gates,
    _grown,
    _half,
    _head,
    _inverse_norm,
    _load_parts,
    _parts,
    _rows,
    _store_parts,
)


@triton.jit(**ANY)
def scan_back_kernel(
    qkv,
    g,
    beta,
    solved,
    grad_out,
    grad_state,
    grad_states,
    grad_read,
    grad_x,
    length,
    tiles,
    HEADS: tl.constexpr,
    DIM: tl.constexpr,
    PART: tl.constexpr,
    SIZE: tl.constexpr,
    SEGMENT: tl.constexpr,
    BRANCHES: tl.constexpr,
):
    """PART columns of the values of one head, last tile first: x̄ of every tile, grad_x [B · H, tiles, 2, CHUNK, DIM].

    Of a sequence grad_state [B · H, DIM, DIM] is the gradient of the last state, and grad_states [B · H, tiles, 2,
    DIM, DIM] receives that of the state after each tile; of branches grad_state receives that of the state they
    continue.
    """
    which = tl.program_id(0).to(tl.int64)
    qkv, first = _head(qkv, which, length, HEADS, DIM)
    g, beta, grad_out = g + first, beta + first, grad_out + first * DIM
    i, d = tl.arange(0, CHUNK), tl.arange(0, DIM)
    e = tl.program_id(1) * PART + tl.arange(0, PART)
    square = d[:, None] * DIM + e[None, :]
    grad_state += which * (DIM * DIM)
    if BRANCHES:
        grad = tl.zeros((DIM, PART), tl.float32)
    else:
        grad = tl.load(grad_state + square)
    for step in range(tiles):
        tile = tiles - 1 - step
        row, live = _rows(tile, length, SIZE, SEGMENT)
        query = row[:, None] * (3 * HEADS * DIM) + d[None, :]
        q = tl.load(qkv + query, mask=live[:, None], other=0.0)
        k = tl.load(qkv + HEADS * DIM + query, mask=live[:, None], other=0.0)
        o = tl.load(grad_out + row[:, None] * (HEADS * DIM) + e[None, :], mask=live[:, None], other=0.0)
        at = which * tiles + tile
        cell = i[:, None] * CHUNK + i[None, :]
        high, low = _load_parts(solved + at * (2 * CHUNK * CHUNK), cell, CHUNK * CHUNK)
        total, rate = _gates(g, beta, row * HEADS, live, SEGMENT)
        k_norm = _inverse_norm(k)
        nothing = tl.zeros((CHUNK, PART), tl.float32)
        o *= (_inverse_norm(q) * DIM**-0.5)[:, None]
        o_high, o_low = _parts(o)
        cell = i[:, None] * DIM + e[None, :]
        _store_parts(grad_read + at * (2 * CHUNK * DIM), cell, o_high, o_low, CHUNK * DIM)
        scores = _dot(k, tl.trans(q), tl.zeros((CHUNK, CHUNK), tl.float32)) * _grown(-total, total, SEGMENT, True)
        p_high, p_low = _parts(scores)
        read = _full(p_high, p_low, o_high, o_low, nothing)
        if not BRANCHES:
            end = _end(total)
            s_high, s_low = _parts(grad)
            _store_parts(grad_states + at * (2 * DIM * DIM), square, s_high, s_low, DIM * DIM)
            read += tl.exp(end - total)[:, None] * _dot(k, s_high, _dot(k, s_low, nothing))
            grad *= tl.exp(end)
        r_high, r_low = _parts(read * (rate * k_norm)[:, None])
        x = _full(tl.trans(high), tl.trans(low), r_high, r_low, nothing)
        x_high, x_low = _parts(x)
        _store_parts(grad_x + at * (2 * CHUNK * DIM), cell, x_high, x_low, CHUNK * DIM)
        grown = tl.exp(total)[:, None]
        grad = _half(tl.trans(q), o * grown, grad)
        grad = _half(tl.trans(k), x * (-k_norm[:, None] * grown), grad)
    if BRANCHES:
        tl.store(grad_state + square, grad)


@triton.jit
def _cut(x):
    """What ``_parts`` keep of x."""
    high, low = _parts(x)
    return high.to(tl.float32) + low.to(tl.float32)


@triton.jit(**ANY)
def inputs_back_kernel(
    qkv,
    g,
    beta,
    states,
    written,
    grad_states,
    grad_read,
    grad_x,
    grad_qkv,
    grad_g,
    grad_beta,
    length,
    HEADS: tl.constexpr,
    DIM: tl.constexpr,
    SIZE: tl.constexpr,
    SEGMENT: tl.constexpr,
    BRANCHES: tl.constexpr,
):
    """The gradients of one tile's q, k, v, g and β, laid out like these.

    G gains q · q̄ where it reads and loses k · k̄ where it was read or writes: no sums over scores are needed. What a
    position reads of itself, in both, must cancel; cut to two parts with and without β it does not quite, and where
    decay is strong that is all there is: the difference is taken off.
    """
    tile, which = tl.program_id(0), tl.program_id(1).to(tl.int64)
    at = which * tl.num_programs(0) + tile
    grad_qkv, _ = _head(grad_qkv, which, length, HEADS, DIM)
    qkv, first = _head(qkv, which, length, HEADS, DIM)
    g, beta, grad_g, grad_beta = g + first, beta + first, grad_g + first, grad_beta + first
    states += (which if BRANCHES else at) * (2 * DIM * DIM)
    grad_states += at * (2 * DIM * DIM)
    written += at * (2 * CHUNK * DIM)
    grad_read += at * (2 * CHUNK * DIM)
    grad_x += at * (2 * CHUNK * DIM)
    i, d = tl.arange(0, CHUNK), tl.arange(0, DIM)
    row, live = _rows(tile, length, SIZE, SEGMENT)
    gate = row * HEADS
    query = row[:, None] * (3 * HEADS * DIM) + d[None, :]
    cell = i[:, None] * DIM + d[None, :]
    square = d[:, None] * DIM + d[None, :]
    nothing = tl.zeros((CHUNK, CHUNK), tl.float32)
    none = tl.zeros((CHUNK, DIM), tl.float32)
    q = tl.load(qkv + query, mask=live[:, None], other=0.0)
    k = tl.load(qkv + query + HEADS * DIM, mask=live[:, None], other=0.0)
    total, rate = _gates(g, beta, gate, live, SEGMENT)
    k_norm, met = _inverse_norm(k), tl.sum(q.to(tl.float32) * k.to(tl.float32), axis=1)
    fallen = tl.log(k_norm) - total
    s_high, s_low = _load_parts(states, square, DIM * DIM)
    y_high, y_low = _load_parts(written, cell, CHUNK * DIM)
    x_high, x_low = _load_parts(grad_x, cell, CHUNK * DIM)
    x = x_high.to(tl.float32) + x_low.to(tl.float32)
    tl.store(grad_qkv + 2 * HEADS * DIM + query, x.to(grad_qkv.dtype.element_ty), mask=live[:, None])

    # What q read: y through P, and the state. Gradients are of q and k as they came, but for their length; those of k
    # in ``of_writes`` still lack the β of what is written. Where q and k are wanted element by element they are loaded
    # anew, behind a store: kept, they would fill the registers in between.
    o_high, o_low = _load_parts(grad_read, cell, CHUNK * DIM)
    of_scores = _full(o_high, o_low, tl.trans(y_high), tl.trans(y_low), nothing)
    of_scores *= _grown(total, fallen, SEGMENT)
    own = tl.sum(tl.where(i[:, None] == i[None, :], of_scores, 0.0), axis=1)
    high, low = _parts(of_scores)
    of_writes = _dot(tl.trans(high), q, _dot(tl.trans(low), q, none))
    high, low = _parts(of_scores * rate[None, :])
    of_q = _full(o_high, o_low, tl.trans(s_high), tl.trans(s_low), none) * tl.exp(total)[:, None]
    of_q = _dot(high, k, _dot(low, k, of_q))
    wide = tl.load(qkv + query, mask=live[:, None], other=0.0).to(tl.float32)
    of_total = tl.sum(of_q * wide, axis=1)
    norm = _inverse_norm(wide)
    of_q -= wide * (norm * norm * of_total)[:, None]
    of_total -= met * (_cut(own * rate) - _cut(own) * rate)
    tl.store(grad_qkv + query, of_q.to(grad_qkv.dtype.element_ty), mask=live[:, None])

    # What x took off v: the state, and y through M.
    of_system = _full(x_high, x_low, tl.trans(y_high), tl.trans(y_low), nothing)
    risen = total + tl.log(k_norm)
    of_system = _below(of_system * -_grown(risen, fallen, SEGMENT))
    high, low = _parts(of_system)
    of_writes = _dot(tl.trans(high), k, _dot(tl.trans(low), k, of_writes))
    high, low = _parts(of_system * rate[None, :])
    of_k = _full(x_high, x_low, tl.trans(s_high), tl.trans(s_low), none) * -tl.exp(risen)[:, None]
    of_k = _dot(high, k, _dot(low, k, of_k))
    wide = tl.load(qkv + HEADS * DIM + query, mask=live[:, None], other=0.0).to(tl.float32)
    k_norm = _inverse_norm(wide)
    of_total += tl.sum(of_k * wide, axis=1)

    # What k wrote into the state behind the chunk.
    of_end = 0.0
    if not BRANCHES:
        end = _end(total)
        a_high, a_low = _load_parts(grad_states, square, DIM * DIM)
        s_high, s_low = _load_parts(states, square, DIM * DIM)
        state, after = s_high.to(tl.float32) + s_low.to(tl.float32), a_high.to(tl.float32) + a_low.to(tl.float32)
        of_end = tl.sum(tl.sum(state * after, axis=1), axis=0) * tl.exp(end)
        kept = _full(y_high, y_low, tl.trans(a_high), tl.trans(a_low), none)
        kept *= (k_norm * tl.exp(end - total))[:, None]
        of_writes += kept
        of_end += tl.sum(tl.sum(kept * wide, axis=1) * rate, axis=0)
    of_rate = tl.sum(of_writes * wide, axis=1)
    of_k += of_writes * rate[:, None]
    tl.store(grad_beta + gate, of_rate, mask=live)
    of_total -= rate * of_rate
    of_g = tl.cumsum(tl.reshape(of_total, (CHUNK // SEGMENT, SEGMENT)), axis=1, reverse=True)
    tl.store(grad_g + gate, tl.reshape(of_g, (CHUNK,)) + of_end, mask=live)
    of_k -= wide * (k_norm * k_norm * tl.sum(of_k * wide, axis=1))[:, None]
    tl.store(grad_qkv + HEADS * DIM + query, of_k.to(grad_qkv.dtype.element_ty), mask=live[:, None])
