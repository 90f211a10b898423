"""One token for each row of logits, chosen on the card: penalties, mask, greedy choice, top-k, top-p and min-p.

Two launches. The first reads the logits once, all over the card: it applies penalties and mask and keeps the largest
value of every 64 logits and, per piece of a row, what sums over the row need. The second, one program a row, looks at
the few blocks of 64 that must hold the K largest logits (those with the K largest maxima, ties to the earlier), takes
those K out, and looks the row's random number up in their cumulative weights. Values, cuts and ties are those of
``engine.sample``: float64 weights, equal logits in the order of their ids. What a cut keeps beyond K candidates, and
rows that nothing bounds, stay undecided and are for the caller.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.fused.launch import ceil_div, overlap, power_of_two
from kernels.registry import use_triton

BLOCK = 64
CANDIDATES = (1, 32, 128)
"""Candidates that a row can have: 1 serves greedy rows only."""
DIVISOR, REDUCTION, MASK = 1, 2, 4
"""Flags of a row: what is to be applied to its logits."""
WARPS = {1: 2, 32: 8, 128: 16}
"""Of the second launch, by its candidates."""
_PIECE = 4096
"""Logits of a program of the first launch."""


@dataclass(frozen=True)
class Settings:
    """What B rows ask for, in tensors of fixed address."""

    numbers: Tensor
    """float64 [B, 5]: temperature; top-p; min-p; top-k, the vocabulary where it does not cut; the random number, 0 ≤ u
    < 1. A greedy row has top-k 1 and any temperature above 0."""
    rows: Tensor
    """int32 [B]: the row's place in the buffers of penalties."""
    flags: Tensor
    """int32 [B]: DIVISOR | REDUCTION | MASK."""
    divisor: Tensor
    """float32 [lanes, V]: logits above 0 are divided by it, those below multiplied."""
    reduction: Tensor
    """float32 [lanes, V]: then taken off."""
    mask: Tensor
    """int32 [B, ⌈V / 32⌉], bit i % 32 of word i // 32 set where token i may be chosen."""


@dataclass(frozen=True)
class Chosen:
    """What became of B rows."""

    ids: Tensor
    """int64 [B]: the token, of a faulty or undecided row the most likely one."""
    report: Tensor
    """float32 [B, 3]: the largest logit after penalties and mask (NaN where the row has one; −∞ where nothing may
    follow); the log probability of the token before them; 1 where the row was decided, else 0."""


def sample_reference(logits: Tensor, settings: Settings, *, candidates: int = 32, dependent: bool = False) -> Chosen:
    """:func:`sample` in plain torch: everything sorted."""
    _check(logits, settings, candidates)
    scores = _scores(logits, settings)
    values, order = scores.sort(dim=-1, descending=True, stable=True)
    temperature, top_p, min_p, limit, u = settings.numbers[..., None].unbind(1)
    best = values[:, :1]
    rank = torch.arange(logits.shape[1], device=logits.device)
    weights = ((values - best).double() / temperature).exp()
    bounded = (limit < logits.shape[1]) | (top_p < 1) | (min_p > 0)
    cut = weights.masked_fill(rank >= limit, 0.0)
    total = cut.cumsum(-1)
    kept = (rank < limit) & (weights >= min_p) & ((total - cut < top_p * total[:, -1:]) | (rank == 0))
    count = kept.sum(-1, keepdim=True)
    end = total.gather(1, (count - 1).clamp(min=0))
    place = torch.minimum((total <= u * end).sum(-1), (total < end).sum(-1))
    decided = bounded[:, 0] & torch.where(limit < logits.shape[1], limit <= candidates, count < candidates)[:, 0]
    faulty = ~best[:, 0].isfinite()
    ids = order.gather(1, torch.where(decided & ~faulty, place, 0)[:, None])[:, 0]
    nan = scores.isnan().any(-1)
    largest = torch.where(nan, torch.nan, best[:, 0])
    own = logits.gather(1, ids[:, None])[:, 0].double() - logits.double().logsumexp(-1)
    return Chosen(ids, torch.stack([largest, own.float(), (decided & ~faulty & ~nan).float()], dim=1))


def _scores(logits: Tensor, settings: Settings) -> Tensor:
    """Logits after penalties and mask."""
    flags, rows = settings.flags[:, None], settings.rows.long()
    divisor = torch.where(flags & DIVISOR != 0, settings.divisor[rows], 1.0)
    scores = torch.where(logits > 0, logits / divisor, logits * divisor)
    scores = scores - torch.where(flags & REDUCTION != 0, settings.reduction[rows], 0.0)
    bits = settings.mask[..., None] >> torch.arange(32, device=logits.device) & 1
    allowed = bits.flatten(1)[:, : logits.shape[1]] != 0
    return torch.where(allowed | (flags & MASK == 0), scores, float("-inf"))


def sample(logits: Tensor, settings: Settings, *, candidates: int = 32, dependent: bool = False) -> Chosen:
    """Choose one token for each row; nothing is counted or changed.

    Args:
        logits: float32 [B, V].
        settings: of each row.
        candidates: how many of a row's largest logits can be looked at (``CANDIDATES``): as many as the largest top-k
            among the rows, if that is possible.
        dependent: launched while the kernel before may still run (programmatic dependent launch).
    """
    if not use_triton(logits):
        return sample_reference(logits, settings, candidates=candidates)
    _check(logits, settings, candidates)
    count, vocabulary = logits.shape
    pieces = ceil_div(vocabulary, _PIECE)
    device = logits.device
    maxima = torch.empty(count, pieces * (_PIECE // BLOCK), dtype=torch.float32, device=device)
    sums = torch.empty(count, pieces, 4, dtype=torch.float64, device=device)
    best = torch.empty(count, pieces, dtype=torch.int64, device=device)
    chosen = Chosen(
        torch.empty(count, dtype=torch.int64, device=device), torch.empty(count, 3, dtype=torch.float32, device=device)
    )
    inputs = (logits, logits.stride(0), settings.numbers, settings.rows, settings.flags)
    penalties = (settings.divisor, settings.reduction, settings.mask, settings.mask.stride(0))
    _pieces_kernel[(pieces, count)](
        *inputs,
        *penalties,
        maxima,
        sums,
        best,
        V=vocabulary,
        PIECE=_PIECE,
        BLOCK=BLOCK,
        num_warps=4,
        **overlap(dependent, logits),
    )
    _choose_kernel[(count,)](
        *inputs,
        *penalties,
        maxima,
        sums,
        best,
        torch.empty(count, candidates, dtype=torch.int64, device=device),
        chosen.ids,
        chosen.report,
        V=vocabulary,
        PIECES=pieces,
        PIECES_UP=power_of_two(pieces),
        BLOCKS=maxima.shape[1],
        BLOCKS_UP=max(candidates, power_of_two(maxima.shape[1])),
        BLOCK=BLOCK,
        K=candidates,
        num_warps=WARPS[candidates],
        **overlap(dependent, logits),
    )
    return chosen


def _check(logits: Tensor, settings: Settings, candidates: int) -> None:
    count, vocabulary = logits.shape
    if candidates not in CANDIDATES:
        raise ValueError(f"A row has {CANDIDATES} candidates, not {candidates}.")
    if logits.dtype != torch.float32 or logits.stride(1) != 1:
        raise ValueError(f"Logits must be float32 and contiguous in a row, not {logits.dtype}.")
    if settings.numbers.shape != (count, 5) or settings.numbers.dtype != torch.float64:
        raise ValueError(f"{count} rows are set by float64 {[count, 5]}, not {list(settings.numbers.shape)}.")
    for name, tensor in (("divisor", settings.divisor), ("reduction", settings.reduction)):
        if tensor.shape[1] != vocabulary or not tensor.is_contiguous():
            raise ValueError(f"The {name} of {vocabulary} logits cannot be {list(tensor.shape)}.")
    if settings.mask.shape != (count, (vocabulary + 31) // 32):
        raise ValueError(f"The mask of {[count, vocabulary]} logits cannot be {list(settings.mask.shape)} words.")


@triton.jit
def _penalised(x, i, live, flags, divisor, reduction, mask):  # type: ignore[no-untyped-def]
    """Logits after penalties and mask; ``divisor``, ``reduction`` and ``mask`` point to the row's own."""
    if flags & 1:
        d = tl.load(divisor + i, mask=live, other=1.0)
        x = tl.where(x > 0, tl.math.div_rn(x, d), x * d)
    if flags & 2:
        x -= tl.load(reduction + i, mask=live, other=0.0)
    if flags & 4:
        word = tl.load(mask + i // 32, mask=live, other=0)
        x = tl.where((word >> (i % 32)) & 1 != 0, x, float("-inf"))
    return x


@triton.jit
def _ordered(x):  # type: ignore[no-untyped-def]
    """int32 that orders like x."""
    bits = x.to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def _key(x, i):  # type: ignore[no-untyped-def]
    """int64 that orders like (x, −i)."""
    return (_ordered(x).to(tl.int64) << 32) | (0xFFFFFFFF - i.to(tl.int64))


@triton.jit
def _keep_largest(ordered, what, to, K: tl.constexpr):  # type: ignore[no-untyped-def]
    """Write ``what`` of the K largest of ``ordered`` to ``to``, in their order; of equals the first."""
    # The largest threshold that K of them reach, two bits at a time; three counts share one sum.
    unsigned = ordered.to(tl.uint32, bitcast=True) ^ 0x80000000
    threshold = tl.full((), 0, tl.uint32)
    for step in range(16):
        bit = tl.full((), 1 << 30, tl.uint32) >> (2 * step)
        first = (unsigned >= threshold + bit).to(tl.int64)
        second = (unsigned >= threshold + 2 * bit).to(tl.int64)
        third = (unsigned >= threshold + 3 * bit).to(tl.int64)
        counts = tl.sum(first + (second << 20) + (third << 40))
        reached = ((counts & 0xFFFFF) >= K).to(tl.uint32)
        reached += (((counts >> 20) & 0xFFFFF) >= K).to(tl.uint32) + ((counts >> 40) >= K).to(tl.uint32)
        threshold += bit * reached
    above, equal = unsigned > threshold, unsigned == threshold
    left = K - tl.sum(above.to(tl.int32))
    kept = above | (equal & (tl.cumsum(equal.to(tl.int32), axis=0) <= left))
    # Who reads the list read the one before it first.
    tl.debug_barrier()
    tl.store(to + tl.cumsum(kept.to(tl.int32), axis=0) - 1, what, mask=kept)
    tl.debug_barrier()


@triton.jit
def _of_key(key):  # type: ignore[no-untyped-def]
    """(x, i) of a key."""
    ordered = (key >> 32).to(tl.int32)
    bits = ordered ^ ((ordered >> 31) & 0x7FFFFFFF)
    return bits.to(tl.float32, bitcast=True), (0xFFFFFFFF - (key & 0xFFFFFFFF)).to(tl.int32)


@triton.jit
def _finite(x):  # type: ignore[no-untyped-def]
    """x, 0 where it is not finite: what exponents are taken relative to."""
    return tl.where(tl.abs(x) < float("inf"), x, 0.0)


@triton.jit
def _pieces_kernel(  # type: ignore[no-untyped-def]
    logits,
    row_stride,
    numbers,
    rows,
    flags,
    divisor,
    reduction,
    mask,
    mask_stride,
    maxima,
    sums,
    best,
    V: tl.constexpr,
    PIECE: tl.constexpr,
    BLOCK: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """A piece of a row: block maxima; the best key; (maximum, Σ e^((x − maximum) / T)) after penalties, the maximum NaN
    if the piece has NaN; the same of the raw logits at T = 1."""
    piece, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    BLOCKS: tl.constexpr = PIECE // BLOCK
    i = piece * PIECE + tl.arange(0, BLOCKS)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    live = i < V
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    raw = tl.load(logits + row * row_stride + i, mask=live, other=float("-inf"))
    lane = tl.load(rows + row).to(tl.int64)
    x = _penalised(
        raw, i, live, tl.load(flags + row), divisor + lane * V, reduction + lane * V, mask + row * mask_stride
    )
    block_best = tl.max(x, axis=1)
    tl.store(maxima + row * (tl.num_programs(0) * BLOCKS) + piece * BLOCKS + tl.arange(0, BLOCKS), block_best)
    pieces = row * tl.num_programs(0) + piece
    top, raw_top = tl.max(block_best), tl.max(tl.max(raw, axis=1))
    tl.store(best + pieces, _key(top, tl.min(tl.min(tl.where(x == top, i, V), axis=1))))
    base, raw_base = _finite(top), _finite(raw_top)
    weight = tl.full((), 0, tl.float64)
    if (tl.load(numbers + row * 5 + 3) >= V) & (tl.load(numbers + row * 5 + 1) < 1.0):
        # Top-p without top-k is a share of the whole row.
        temperature = tl.load(numbers + row * 5).to(tl.float32)
        weight = tl.sum(tl.sum(tl.exp((x - base) / temperature), axis=1).to(tl.float64))
    raw_weight = tl.sum(tl.sum(tl.exp(raw - raw_base), axis=1).to(tl.float64))
    to = sums + pieces * 4
    has_nan = tl.max(tl.max((x != x).to(tl.int32), axis=1))
    tl.store(to, tl.where(has_nan > 0, float("nan"), top.to(tl.float64)))
    tl.store(to + 1, weight)
    tl.store(to + 2, raw_top.to(tl.float64))
    tl.store(to + 3, raw_weight)


@triton.jit
def _choose_kernel(  # type: ignore[no-untyped-def]
    logits,
    row_stride,
    numbers,
    rows,
    flags,
    divisor,
    reduction,
    mask,
    mask_stride,
    maxima,
    sums,
    best,
    scratch,
    ids,
    report,
    V: tl.constexpr,
    PIECES: tl.constexpr,
    PIECES_UP: tl.constexpr,
    BLOCKS: tl.constexpr,
    BLOCKS_UP: tl.constexpr,
    BLOCK: tl.constexpr,
    K: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """One row."""
    row = tl.program_id(0).to(tl.int64)
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    p = tl.arange(0, PIECES_UP)
    keys = tl.load(best + row * PIECES + p, mask=p < PIECES, other=-0x7FFFFFFFFFFFFFFF)
    top, token = _of_key(tl.max(keys))
    temperature = tl.load(numbers + row * 5)
    at = sums + (row * PIECES + p) * 4
    piece_top = tl.load(at, mask=p < PIECES, other=float("-inf"))
    piece_weight = tl.load(at + 1, mask=p < PIECES, other=0.0)
    raw_top = tl.load(at + 2, mask=p < PIECES, other=float("-inf"))
    raw_weight = tl.load(at + 3, mask=p < PIECES, other=0.0)
    has_nan = tl.max((piece_top != piece_top).to(tl.int32)) > 0
    # −∞ where a piece has nothing; its weight is 0.
    whole = tl.sum(piece_weight * tl.exp(tl.minimum(piece_top - _finite(top).to(tl.float64), 0.0) / temperature))
    raw_best = _finite(tl.max(raw_top))
    raw_sum = tl.sum(raw_weight * tl.exp(raw_top - raw_best))
    faulty = has_nan | (top == float("-inf")) | (top == float("inf"))
    limit = tl.load(numbers + row * 5 + 3)
    decided = (limit <= 1.0) & (not faulty)
    if K > 1:  # noqa: SIM102  (known when the kernel is compiled; the next is not)
        if (limit > 1.0) & (not faulty):
            lane = tl.load(rows + row).to(tl.int64)
            b = tl.arange(0, BLOCKS_UP)
            block_best = tl.load(maxima + row * BLOCKS + b, mask=b < BLOCKS, other=float("-inf"))
            k, list_at = tl.arange(0, K), scratch + row * K
            _keep_largest(_ordered(block_best), b.to(tl.int64), list_at, K)
            i = tl.load(list_at + k)[:, None].to(tl.int32) * BLOCK + tl.arange(0, BLOCK)[None, :]
            live = i < V
            x = tl.load(logits + row * row_stride + i, mask=live, other=float("-inf"))
            x = _penalised(
                x, i, live, tl.load(flags + row), divisor + lane * V, reduction + lane * V, mask + row * mask_stride
            )
            x, i = tl.reshape(x, (K * BLOCK,)), tl.reshape(i, (K * BLOCK,))
            _keep_largest(_ordered(x), _key(x, i), list_at, K)
            # Nothing is sorted: a candidate's rank and cumulative weight are sums over those before it.
            key, others = tl.load(list_at + k)[:, None], tl.load(list_at + k)[None, :]
            before = others > key
            top_p, min_p = tl.load(numbers + row * 5 + 1), tl.load(numbers + row * 5 + 2)
            u = tl.load(numbers + row * 5 + 4)
            rank = tl.sum(before.to(tl.int32), axis=1)
            weights = tl.exp((_of_key(others)[0] - top).to(tl.float64) / temperature)
            weights = tl.where(tl.sum((key > others).to(tl.int32), axis=0)[None, :] < limit, weights, 0.0)
            weight = tl.sum(tl.where(others == key, weights, 0.0), axis=1)
            total = tl.sum(tl.where(others >= key, weights, 0.0), axis=1)
            # What top-p is a share of: the weight of all that top-k leaves, or of the whole row.
            mass = tl.where((limit >= V) & (top_p < 1.0), whole, tl.max(total))
            kept = (rank < limit) & (weight >= min_p) & ((total - weight < top_p * mass) | (rank == 0))
            kept_count = tl.sum(kept.to(tl.int32))
            end = tl.sum(tl.where(rank == kept_count - 1, total, 0.0))
            place = tl.minimum(tl.sum((total <= u * end).to(tl.int32)), tl.sum((total < end).to(tl.int32)))
            bounded = (limit < V) | (top_p < 1.0) | (min_p > 0.0)
            decided = bounded & tl.where(limit < V, limit <= K, kept_count < K)
            if decided:
                token = tl.sum(tl.where((rank == place)[:, None], _of_key(key)[1], 0))
    # Where a row has nothing but NaN no logit is the largest.
    token = tl.minimum(token, V - 1)
    tl.store(ids + row, token.to(tl.int64))
    own = _finite(tl.load(logits + row * row_stride + token)).to(tl.float64) - raw_best - tl.log(raw_sum)
    tl.store(report + row * 3, tl.where(has_nan, float("nan"), top))
    tl.store(report + row * 3 + 1, own.to(tl.float32))
    tl.store(report + row * 3 + 2, decided.to(tl.float32))
