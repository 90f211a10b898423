"""Triton kernels of the gated delta rule (``gdn.py``): forward and backward, chunk by chunk.

Notation, in one chunk of one head: q and k are normalised rows, G the running sum of g, Γ_ij = exp(G_i - G_j), S the
state before the chunk, M = (k kᵀ) ∘ Γ strictly below the diagonal, P = (q kᵀ) ∘ Γ on and below it. Then

    x = v - e^G k S,   y = (I + M diag β)⁻¹ x,   out = e^G q S + P β y,   S' = e^(G_end) S + (e^(G_end - G) k)ᵀ β y,

and with a bar for gradients (β y is what a position writes; only y is kept, so β = 0 needs no division)

    x̄ = (I + M diag β)⁻ᵀ β (Pᵀ ōut + e^(G_end - G) k S̄'),   S̄ = e^(G_end) S̄' + (e^G q)ᵀ ōut - (e^G k)ᵀ x̄,
    P̄ = (ōut yᵀ) β,   M̄ = -(x̄ yᵀ) β.

A tile is CHUNK rows: one chunk of a sequence, or several short branches that continue one state side by side, each in
SEGMENT rows of which SIZE are used. Every element is written by one program: no atomics, no races.

All products take bfloat16: q and k are bfloat16 as they come (their norms are multiplied in afterwards), float32
operands go in as two bfloat16 parts (16 bits against TF32's 11), sums are float32. What one kernel leaves to another
lies in two parts as well, as products want it: [.., 2, rows, columns].
"""

from __future__ import annotations

import triton
import triton.language as tl

CHUNK = tl.constexpr(64)
INTERPRET = tl.constexpr(triton.knobs.runtime.interpret)
GATES = ("g", "beta", "grad_g", "grad_beta")
ANY = {"do_not_specialize": ("length", "tiles"), "do_not_specialize_on_alignment": GATES}
"""One compiled form for every length, and for gates wherever they begin: none is compiled while a graph is captured."""


@triton.jit
def _dot(a, b, acc):
    """acc + a b of bfloat16 tiles. The interpreter would multiply their bits as integers: there they are widened."""
    if INTERPRET:
        a, b = a.to(tl.float32), b.to(tl.float32)
    return tl.dot(a, b, acc)


@triton.jit
def _upper(x):
    """The upper 16 bits of float32: its value cut off to bfloat16, in half the instructions of rounding it."""
    return (x.to(tl.uint32, bitcast=True) >> 16).to(tl.uint16).to(tl.bfloat16, bitcast=True)


@triton.jit
def _parts(x):
    """float32 -> two bfloat16 whose sum has 16 of its 24 bits."""
    high = _upper(x)
    return high, _upper(x - high.to(tl.float32))


@triton.jit
def _half(a, x, acc):
    """acc + a x for a in bfloat16, x in float32."""
    high, low = _parts(x)
    return _dot(a, high, _dot(a, low, acc))


@triton.jit
def _full(a_high, a_low, b_high, b_low, acc):
    """acc + a b for both in two parts."""
    acc = _dot(a_low, b_high, acc)
    acc = _dot(a_high, b_low, acc)
    return _dot(a_high, b_high, acc)


@triton.jit
def _head(qkv, which, length, HEADS: tl.constexpr, DIM: tl.constexpr):
    """Where q of head ``which`` of B · H begins, and where its place is in [B, length, H] tensors. Offsets from there
    on are 32 bits wide: tensors of 64-bit addresses would fill the registers."""
    batch, head = which // HEADS, which % HEADS
    return qkv + (batch * length * (3 * HEADS) + head) * DIM, batch * length * HEADS + head


@triton.jit
def _rows(tile, length, SIZE: tl.constexpr, SEGMENT: tl.constexpr):
    """Position in the sequence (of ``length``) of every row of a tile, and whether there is such a position."""
    i = tl.arange(0, CHUNK)
    row = (tile * (CHUNK // SEGMENT) + i // SEGMENT) * SIZE + i % SEGMENT
    return row, (i % SEGMENT < SIZE) & (row < length)


@triton.jit
def _gates(g, beta, at, live, SEGMENT: tl.constexpr):
    """Running sum of g within each segment, and β; zeros where there is no position."""
    g = tl.load(g + at, mask=live, other=0.0)
    total = tl.cumsum(tl.reshape(g, (CHUNK // SEGMENT, SEGMENT)), axis=1)
    return tl.reshape(total, (CHUNK,)), tl.load(beta + at, mask=live, other=0.0)


@triton.jit
def _end(total):
    """The sum of g over a whole chunk (rows behind the sequence's end add nothing)."""
    return tl.sum(tl.where(tl.arange(0, CHUNK) == CHUNK - 1, total, 0.0))


@triton.jit
def _inverse_norm(x):
    x = x.to(tl.float32)
    return tl.rsqrt(tl.sum(x * x, axis=1) + 1e-6)


@triton.jit
def _load_parts(x, at, LOW: tl.constexpr):
    return tl.load(x + at), tl.load(x + at + LOW)


@triton.jit
def _store_parts(x, at, high, low, LOW: tl.constexpr):
    tl.store(x + at, high)
    tl.store(x + at + LOW, low)


@triton.jit
def _grown(rows, columns, SEGMENT: tl.constexpr, TURNED: tl.constexpr = False):
    """exp(rows_i + columns_j) on and below the diagonal of each segment, zero elsewhere; ``TURNED``, on and above it.
    Γ with G and -G."""
    i = tl.arange(0, CHUNK)
    to, of = i[:, None], i[None, :]
    if TURNED:
        to, of = of, to
    seen = (to >= of) & (to // SEGMENT == of // SEGMENT)
    return tl.exp(tl.where(seen, rows[:, None] + columns[None, :], -float("inf")))


@triton.jit
def _below(x):
    i = tl.arange(0, CHUNK)
    return tl.where(i[:, None] > i[None, :], x, 0.0)


@triton.jit
def _unit_lower_inverse(a, SEGMENT: tl.constexpr):
    """(I + a)⁻¹ of a strictly lower triangular a whose entries lie in segments.

    D, the inverses of the 16 × 16 blocks on the diagonal, by substitution, all at once. With N = D (a - its diagonal
    blocks), (I + a)⁻¹ = (I + N)⁻¹ D, and N, strictly lower in blocks, vanishes in the SEGMENT / 16-th power.
    """
    BLOCKS: tl.constexpr = CHUNK // 16
    r = tl.arange(0, CHUNK)
    i = tl.arange(0, 16)
    diagonal = r[:, None] // 16 == r[None, :] // 16
    blocks = tl.sum(tl.reshape(tl.where(diagonal, a, 0.0), (BLOCKS, 16, BLOCKS, 16)), axis=2)
    inverse = tl.where(i[None, :, None] == i[None, None, :], 1.0, 0.0) + tl.zeros((BLOCKS, 16, 16), tl.float32)
    for step in range(1, 16):
        here = i[None, :, None] == step
        row = tl.sum(tl.where(here, blocks, 0.0), axis=1)
        known = tl.sum(row[:, :, None] * inverse, axis=1)
        inverse -= tl.where(here, known[:, None, :], 0.0)
    spread = tl.broadcast_to(inverse[:, :, None, :], (BLOCKS, 16, BLOCKS, 16))
    d = tl.where(diagonal, tl.reshape(spread, (CHUNK, CHUNK)), 0.0)
    if SEGMENT > 16:
        nothing = tl.zeros((CHUNK, CHUNK), tl.float32)
        d_high, d_low = _parts(d)
        a_high, a_low = _parts(tl.where(diagonal, 0.0, a))
        n_high, n_low = _parts(_full(d_high, d_low, a_high, a_low, nothing))
        if SEGMENT == 64:  # (I + N)⁻¹ = (I + N²) (I - N), of which the right half takes D first
            e = d - _full(n_high, n_low, d_high, d_low, nothing)
            s_high, s_low = _parts(_full(n_high, n_low, n_high, n_low, nothing))
            e_high, e_low = _parts(e)
            d = _full(s_high, s_low, e_high, e_low, e)
        else:
            d -= _full(n_high, n_low, d_high, d_low, nothing)
    return d


@triton.jit(**ANY)
def solve_kernel(
    qkv, g, beta, solved, length, HEADS: tl.constexpr, DIM: tl.constexpr, SIZE: tl.constexpr, SEGMENT: tl.constexpr
):
    """(I + M diag β)⁻¹ of a tile: solved [B · H, tiles, 2, CHUNK, CHUNK]."""
    tile, which = tl.program_id(0), tl.program_id(1).to(tl.int64)
    qkv, first = _head(qkv, which, length, HEADS, DIM)
    i, d = tl.arange(0, CHUNK), tl.arange(0, DIM)
    row, live = _rows(tile, length, SIZE, SEGMENT)
    query = row[:, None] * (3 * HEADS * DIM) + d[None, :]
    k = tl.load(qkv + HEADS * DIM + query, mask=live[:, None], other=0.0)
    total, rate = _gates(g + first, beta + first, row * HEADS, live, SEGMENT)
    norm = _inverse_norm(k)
    system = _dot(k, tl.trans(k), tl.zeros((CHUNK, CHUNK), tl.float32)) * norm[:, None] * (norm * rate)[None, :]
    high, low = _parts(_unit_lower_inverse(_below(system * _grown(total, -total, SEGMENT)), SEGMENT))
    at = which * tl.num_programs(0) + tile
    _store_parts(solved + at * (2 * CHUNK * CHUNK), i[:, None] * CHUNK + i[None, :], high, low, CHUNK * CHUNK)


@triton.jit(**ANY)
def scan_kernel(
    qkv,
    g,
    beta,
    solved,
    state,
    states,
    written,
    length,
    tiles,
    HEADS: tl.constexpr,
    DIM: tl.constexpr,
    PART: tl.constexpr,
    SIZE: tl.constexpr,
    SEGMENT: tl.constexpr,
    BRANCHES: tl.constexpr,
):
    """PART columns of the values of one head: y of every tile, written [B · H, tiles, 2, CHUNK, DIM].

    A sequence starts at zero: states [B · H, tiles, 2, DIM, DIM] receives S before every tile, state [B · H, DIM, DIM]
    the last. Branches all continue ``state``; states [B · H, 2, DIM, DIM] receives it in two parts.
    """
    which = tl.program_id(0).to(tl.int64)
    qkv, first = _head(qkv, which, length, HEADS, DIM)
    i, d = tl.arange(0, CHUNK), tl.arange(0, DIM)
    e = tl.program_id(1) * PART + tl.arange(0, PART)
    square = d[:, None] * DIM + e[None, :]
    state += which * (DIM * DIM)
    if BRANCHES:
        s = tl.load(state + square)
        s_high, s_low = _parts(s)
        _store_parts(states + which * (2 * DIM * DIM), square, s_high, s_low, DIM * DIM)
    else:
        s = tl.zeros((DIM, PART), tl.float32)
    for tile in range(tiles):
        row, live = _rows(tile, length, SIZE, SEGMENT)
        place = row[:, None] * (3 * HEADS * DIM)
        k = tl.load(qkv + HEADS * DIM + place + d[None, :], mask=live[:, None], other=0.0)
        v = tl.load(qkv + 2 * HEADS * DIM + place + e[None, :], mask=live[:, None], other=0.0)
        at = which * tiles + tile
        cell = i[:, None] * CHUNK + i[None, :]
        high, low = _load_parts(solved + at * (2 * CHUNK * CHUNK), cell, CHUNK * CHUNK)
        total, rate = _gates(g + first, beta + first, row * HEADS, live, SEGMENT)
        norm = _inverse_norm(k)
        nothing = tl.zeros((CHUNK, PART), tl.float32)
        s_high, s_low = _parts(s)
        read = _dot(k, s_high, _dot(k, s_low, nothing))
        x_high, x_low = _parts(v.to(tl.float32) - (norm * tl.exp(total))[:, None] * read)
        y = _full(high, low, x_high, x_low, nothing)
        y_high, y_low = _parts(y)
        cell = i[:, None] * DIM + e[None, :]
        _store_parts(written + at * (2 * CHUNK * DIM), cell, y_high, y_low, CHUNK * DIM)
        if not BRANCHES:
            _store_parts(states + at * (2 * DIM * DIM), square, s_high, s_low, DIM * DIM)
            end = _end(total)
            s = _half(tl.trans(k), y * (rate * norm * tl.exp(end - total))[:, None], s * tl.exp(end))
    if not BRANCHES:
        tl.store(state + square, s)


@triton.jit(**ANY)
def read_kernel(
    qkv,
    g,
    beta,
    states,
    written,
    out,
    length,
    HEADS: tl.constexpr,
    DIM: tl.constexpr,
    SIZE: tl.constexpr,
    SEGMENT: tl.constexpr,
    BRANCHES: tl.constexpr,
):
    """out [B, length, H, DIM] of one tile."""
    tile, which = tl.program_id(0), tl.program_id(1).to(tl.int64)
    qkv, first = _head(qkv, which, length, HEADS, DIM)
    i, d = tl.arange(0, CHUNK), tl.arange(0, DIM)
    row, live = _rows(tile, length, SIZE, SEGMENT)
    query = row[:, None] * (3 * HEADS * DIM) + d[None, :]
    q = tl.load(qkv + query, mask=live[:, None], other=0.0)
    k = tl.load(qkv + HEADS * DIM + query, mask=live[:, None], other=0.0)
    total, rate = _gates(g + first, beta + first, row * HEADS, live, SEGMENT)
    q_norm, k_norm = _inverse_norm(q) * DIM**-0.5, _inverse_norm(k)
    at = which * tl.num_programs(0) + tile
    place = which if BRANCHES else at
    s_high, s_low = _load_parts(states + place * (2 * DIM * DIM), d[:, None] * DIM + d[None, :], DIM * DIM)
    y_high, y_low = _load_parts(written + at * (2 * CHUNK * DIM), i[:, None] * DIM + d[None, :], CHUNK * DIM)
    scores = _dot(q, tl.trans(k), tl.zeros((CHUNK, CHUNK), tl.float32)) * _grown(total, -total, SEGMENT)
    high, low = _parts(scores * (k_norm * rate)[None, :])
    o = _dot(q, s_high, _dot(q, s_low, tl.zeros((CHUNK, DIM), tl.float32))) * tl.exp(total)[:, None]
    o = _full(high, low, y_high, y_low, o) * q_norm[:, None]
    tl.store(out + first * DIM + row[:, None] * (HEADS * DIM) + d[None, :], o, mask=live[:, None])
