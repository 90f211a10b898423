"""Attention on the card: the split of its input product, rounds over paged keys, prompts in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import torch
from torch import Tensor

from ignis_desktop.bench.gpu.case import Case, Launch
from kernels.fused import paged_decode as decoding
from kernels.fused import paged_prefill as prefilling
from kernels.fused import vision_attention as vision
from kernels.fused.fp8 import pack, unpack
from kernels.fused.partial import Partial, slot_count
from kernels.fused.pool import LayerPool, lane_rows
from kernels.fused.qkv import split_qkv, split_qkv_reference
from kernels.fused.readout import pick_peaks, pick_peaks_reference, read_scores
from kernels.rotary import rotate

HEADS, KV_HEADS, DIM, TURNS = 24, 4, 256, 32
LAYERS = 16
PAGE = 64
CACHE = 400e6
"""Bytes that no card's cache holds a part of worth mentioning."""
Made = tuple[Launch, Callable[[], Sequence[Tensor]]]


def cases(quick: bool) -> Iterator[Case]:
    for columns in (1, 8, 64):
        for packed in (False, True):
            yield _split(columns, packed)
            yield _split(columns, packed, written=True)
    for packed in (False, True):
        for context in (4096, 32768, 131072):
            for lanes, columns in ((1, 1), (1, 8), (8, 1), (8, 8)):
                if not quick or context == 4096 or (lanes, columns) in ((1, 1), (8, 8)):
                    yield _decode(lanes, columns, context, packed)
        for size in (1024, 8192) if quick else (1024, 8192, 32768):
            yield _prefill([(0, size)], packed, 2048)
        for old, new in ((4096, 16), (131072, 64)) if quick else ((4096, 16), (32768, 256), (131072, 64)):
            yield _prefill([(old, new)], packed, 2048)
        yield _prefill([(0, 300), (1000, 77), (4095, 1), (0, 0), (130, 500)], packed, 2048, hot=False)
        yield _readout(16384, packed)
        yield _readout(16384, packed, columns=128)
    for side in (1024, 4096):
        yield _vision(side // 16, None)
        yield _vision(side // 16, None, torch_form=True)
    yield _vision(77, None, hot=False)
    # Small models' heads, odd lengths, more columns than the 27B's rounds have.
    yield _decode(3, 2, 1000, False, heads=9, kv_heads=3, dim=64, hot=False)
    yield _decode(3, 5, 1000, True, heads=8, kv_heads=2, dim=128, hot=False)
    yield _decode(2, 16, 77, False, heads=9, kv_heads=3, dim=64, hot=False)
    yield _decode(5, 3, 517, True, hot=False)
    if not quick:
        yield from _plans()


def _plans() -> Iterator[Case]:
    """Other ways to launch the same, to choose among."""
    ways: dict[tuple[bool, int], list[tuple[int, int, int, int, bool]]] = {
        (False, 1): [(33, 64, 4, 3, False), (66, 32, 4, 4, False)],
        (False, 8): [(33, 32, 4, 3, False), (33, 32, 4, 4, False)],
        (True, 1): [(splits, 64, 4, 3, first) for splits in (33, 66) for first in (False, True)],
        (True, 4): [(66, 64, 4, 3, False), (66, 32, 4, 4, False), (66, 64, 4, 3, True)],
        (True, 8): [(66, 64, 4, 3, False), (66, 32, 4, 3, False), (33, 64, 4, 4, False), (66, 64, 8, 3, False)],
    }
    for (packed, columns), plans in ways.items():
        for plan in plans:
            for context in (4096, 131072):
                yield _decode(1, columns, context, packed, plan=decoding.Plan(*plan))
    for packed in (False, True):
        for way in ((128, 64, 8, 2), (128, 32, 8, 3)):
            yield _prefill([(0, 8192)], packed, 2048, plan=prefilling.Plan(*way))
    for limited in ((128, 64, 8, 3, 128), (128, 64, 8, 4, 128), (64, 64, 4, 3, 128)):
        yield _vision(256, vision.Plan(*limited))


@lru_cache(maxsize=1)
def _pool(rows: int, kv_heads: int, dim: int, packed: bool) -> LayerPool:
    """Normal keys and values. One pool at a time; variants of a case take pages of their own in it."""
    k, v = (torch.empty(rows, kv_heads, dim, device="cuda", dtype=torch.bfloat16).normal_() for _ in range(2))
    if not packed:
        return LayerPool(k, v, page=PAGE)
    parts = [[pack(part) for part in x.split(1 << 16)] for x in (k, v)]
    (k, k_scale), (v, v_scale) = (
        (torch.cat([c.view(torch.uint8) for c, _ in both]).view(torch.float8_e4m3fn), torch.cat([s for _, s in both]))
        for both in parts
    )
    return LayerPool(k, v, k_scale, v_scale, page=PAGE)


def _table(lanes: int, pages: int, total: int, variant: int) -> Tensor:
    """Pages in no order, different ones for each variant as far as there are."""
    generator = torch.Generator().manual_seed(7)
    order = torch.randperm(total, generator=generator).roll(variant * lanes * pages)
    return order[: lanes * pages].view(lanes, pages).int().cuda()


def _normal(*shape: int) -> Tensor:
    return torch.randn(*shape, device="cuda").bfloat16()


def _split(columns: int, packed: bool, *, written: bool = False) -> Case:
    """Timed by what it returns; ``written``: checked by what it wrote into the pool."""
    out = 2 * HEADS * DIM + 2 * KV_HEADS * DIM
    layout = (slot_count(out // 64, 10, 528), 64, 10, 528)

    def make(seed: int) -> Made:
        pool = _pool(1 << 16, KV_HEADS, DIM, packed)
        product = Partial(torch.randn(layout[0], columns, out, device="cuda"), layout)
        scales = torch.rand(2, DIM, device="cuda") + 0.5
        angles = torch.rand(columns, TURNS, device="cuda") * 6
        rows = torch.randperm(1 << 16, device="cuda")[:columns].int()
        arguments = (product, *scales, angles.cos(), angles.sin(), rows, pool, 1e-6)

        def launch() -> Sequence[Tensor]:
            if written:
                _poison(pool, rows)
            returned = split_qkv(*arguments, dependent=True)
            return _read(pool, rows) if written else returned

        def exact() -> Sequence[Tensor]:
            returned = split_qkv_reference(*arguments, dtype=torch.float32)
            return _read(pool, rows) if written else returned

        return launch, exact

    name = f"split × {columns}{', written' if written else ''}{' FP8' if packed else ''}"
    moved = columns * (out * 4 * 2 + (2 * HEADS + 2 * KV_HEADS) * DIM * 2)
    per_round = 0 if written else LAYERS
    return Case("attention", name, make, 4e-3, moved, variants=16, per_round=per_round, hot=not written)


def _poison(pool: LayerPool, rows: Tensor) -> None:
    for values in (pool.k, pool.v):
        values.view(torch.uint8)[rows.long()] = 0xFF
    for scales in (pool.k_scale, pool.v_scale):
        if scales is not None:
            scales[rows.long()] = float("nan")


def _read(pool: LayerPool, rows: Tensor) -> list[Tensor]:
    return [unpack(x, scale, rows.long()) for x, scale in ((pool.k, pool.k_scale), (pool.v, pool.v_scale))]


def _decode(
    lanes: int,
    columns: int,
    context: int,
    packed: bool,
    *,
    heads: int = HEADS,
    kv_heads: int = KV_HEADS,
    dim: int = DIM,
    hot: bool = True,
    plan: decoding.Plan | None = None,
) -> Case:
    """``context`` keys for the last column of every lane; where not timed, lanes of different lengths."""
    pages = -(-context // PAGE)
    per_row = 2 * kv_heads * (dim + 4 if packed else 2 * dim)
    moved = lanes * (context * per_row + columns * heads * dim * 6)
    variants = max(2, min(32, int(CACHE / moved) + 1)) if hot else 1
    total = pages * lanes * (variants if moved * variants < 8e9 else 1)

    def make(seed: int) -> Made:
        pool = _pool(total * PAGE, kv_heads, dim, packed)
        table = _table(lanes, pages, total, seed)
        past = torch.tensor([context - columns - (0 if hot else 13 * lane) for lane in range(lanes)]).int().cuda()
        q, gate = _normal(lanes * columns, heads, dim), _normal(lanes * columns, heads * dim)
        lengths = [old + columns for old in past.tolist()]
        return (
            lambda: decoding.paged_decode(q, gate, pool, table, past, plan=plan, dependent=True),
            lambda: [_exact(q, gate, pool, table, [columns] * lanes, lengths)],
        )

    name = f"decode {lanes} × {columns} at {context}{' FP8' if packed else ''}"
    if not hot:
        name += f", {heads} heads of {dim}"
    if plan is not None:
        name += f": {plan}"
    area = "attention" if plan is None else "attention plans"
    flops = 4 * lanes * columns * heads * dim * context
    return Case(area, name, make, 1e-2, moved, flops, variants, 0 if plan else LAYERS, hot)


def _prefill(
    runs: Sequence[tuple[int, int]],
    packed: bool,
    chunk: int,
    *,
    hot: bool = True,
    plan: prefilling.Plan | None = None,
) -> Case:
    """``runs``: (past, new tokens). All in one chunk, or a single one in several."""
    lengths = [old + new for old, new in runs]
    pages = -(-max(lengths) // PAGE)
    count = sum(new for _, new in runs)
    alone = len(runs) == 1 and runs[0][0] == 0

    def make(seed: int) -> Made:
        pool = _pool(pages * len(runs) * PAGE, KV_HEADS, DIM, packed)
        table = _table(len(runs), pages, pages * len(runs), seed)
        q, gate = _normal(count, HEADS, DIM), _normal(count, HEADS * DIM)
        pieces = []
        for start in range(0, count, chunk) if alone else (0,):
            end = min(start + chunk, count) if alone else count
            past = torch.tensor([start] if alone else [old for old, _ in runs]).int().cuda()
            sizes = [end - start] if alone else [new for _, new in runs]
            starts = torch.tensor([0, *sizes]).cumsum(0).int().cuda()
            pieces.append(((q[start:end], gate[start:end], pool, table, past, starts), max(sizes)))

        def launch() -> Sequence[Tensor]:
            return [
                prefilling.paged_prefill(*piece, longest=longest, plan=plan, dependent=True)
                for piece, longest in pieces
            ]

        def exact() -> Sequence[Tensor]:
            whole = _exact(q, gate, pool, table, [new for _, new in runs], lengths)
            return whole.split(chunk) if alone else [whole]

        return launch, exact

    flops = sum(4 * HEADS * DIM * (new * old + new * (new + 1) // 2) for old, new in runs)
    moved = sum(lengths) * 2 * KV_HEADS * (DIM + 4 if packed else 2 * DIM) + count * HEADS * DIM * 6
    name = f"prefill {count} in chunks of {chunk}" if alone else f"prefill of {len(runs)} runs"
    if len(runs) == 1 and not alone:
        name = f"prefill {count} after {runs[0][0]}"
    name += " FP8" if packed else ""
    area = "attention" if plan is None else "attention plans"
    return Case(area, f"{name}: {plan}" if plan else name, make, 1e-2, moved, flops, 1, 0, hot)


def _readout(size: int, packed: bool, *, columns: int = 0) -> Case:
    """Six heads of each of 16 layers over ``size`` keys; with ``columns``, the best cells too."""
    count, extra = 6, 0 if columns else 5
    pages = -(-(size + 100) // PAGE)

    def make(seed: int) -> Made:
        pool = _pool(pages * LAYERS * PAGE, KV_HEADS, DIM, packed)
        table = _table(LAYERS, pages, pages * LAYERS, seed)
        q = _normal(LAYERS, 3, HEADS, DIM)
        heads = torch.stack([torch.randperm(HEADS, device="cuda")[:count] for _ in range(LAYERS)]).int()
        rows = torch.randperm(LAYERS * count, device="cuda").view(LAYERS, count).int()
        alone = torch.randint(0, 50, (extra,), device="cuda")
        span = (77, 77 + size)
        out = torch.empty(LAYERS * count, size + extra, device="cuda")
        best = torch.empty(LAYERS * count, dtype=torch.int64, device="cuda")
        around = torch.empty(LAYERS * count, 5, device="cuda")

        def launch() -> Sequence[Tensor]:
            for layer in range(LAYERS):
                read_scores(q[layer], 1, heads[layer], rows[layer], pool, table[layer], span, alone, out)
            if not columns:
                return [out]
            pick_peaks(out, columns, best, around)
            # What lies beyond the edge is -inf, and infinities cannot be compared by a norm.
            return [best, around.clamp_(min=-1e3)]

        def exact() -> Sequence[Tensor]:
            positions = torch.cat([torch.arange(*span, device="cuda"), alone])
            scores = torch.empty(out.shape, dtype=torch.float64, device="cuda")
            for layer in range(LAYERS):
                keys = unpack(pool.k, pool.k_scale, lane_rows(table[layer], positions, PAGE)).double()
                own = q[layer, 1, heads[layer].long()].double()
                shared = keys[:, heads[layer].long() // (HEADS // KV_HEADS)]
                scores[rows[layer].long()] = torch.einsum("nd,snd->ns", own, shared) * DIM**-0.5
            if not columns:
                return [scores]
            found = torch.empty_like(best), torch.empty_like(around)
            pick_peaks_reference(scores.float(), columns, *found)
            return found[0], found[1].clamp_(min=-1e3)

        return launch, exact

    moved = LAYERS * size * KV_HEADS * (DIM + 4 if packed else 2 * DIM) + LAYERS * count * (size + extra) * 4
    name = f"readout of 96 heads over {size} keys{', peaks' if columns else ''}{' FP8' if packed else ''}"
    return Case("attention", name, make, 1e-4, moved, variants=2)


def _vision(side: int, plan: vision.Plan | None, *, torch_form: bool = False, hot: bool = True) -> Case:
    """One layer of the tower over a picture of ``side`` × ``side`` patches; every 61st patch is checked."""
    count, heads, dim, step = side * side, 16, 72, 61

    def make(seed: int) -> Made:
        product = _normal(count, 3 * heads * dim)
        angles = torch.rand(count, dim // 2, device="cuda") * 6
        cos, sin = angles.cos(), angles.sin()
        whole = product.double().view(count, 3, heads, dim).clone()

        def launch() -> Tensor:
            form = vision.vision_attention_reference if torch_form else vision.vision_attention
            return form(product, cos, sin, heads, plan=plan)[::step]

        def exact() -> Sequence[Tensor]:
            keys, values = rotate(whole[:, 1], cos.double(), sin.double()), whole[:, 2]
            queries = rotate(whole[::step, 0], cos[::step].double(), sin[::step].double())
            out = torch.empty_like(queries)
            for head in range(heads):
                weights = (queries[:, head] @ keys[:, head].T * dim**-0.5).softmax(-1)
                out[:, head] = weights @ values[:, head]
            return [out.flatten(1)]

        return launch, exact

    flops = 4 * count * count * heads * dim
    name = f"vision, {count} patches{', by torch' if torch_form else ''}{f': {plan}' if plan else ''}"
    area = "attention plans" if plan else "attention"
    return Case(area, name, make, 1e-2, count * heads * dim * 8, flops, hot=hot)


def _exact(
    q: Tensor, gate: Tensor, pool: LayerPool, table: Tensor, counts: Sequence[int], lengths: Sequence[int]
) -> Tensor:
    """float64 [N, Hq · D]: runs of ``counts`` columns, the last of ``lengths`` positions each, in pieces that fit."""
    group = q.shape[1] // pool.heads
    out = torch.empty(q.shape, dtype=torch.float64, device=q.device)
    begin = 0
    for run, (count, length) in enumerate(zip(counts, lengths, strict=True)):
        rows = lane_rows(table[run], torch.arange(length, device=q.device), pool.page)
        for head in range(pool.heads):
            keys, values = (
                unpack(x[:, head : head + 1], None if scale is None else scale[:, head : head + 1], rows)[:, 0].double()
                for x, scale in ((pool.k, pool.k_scale), (pool.v, pool.v_scale))
            )
            for start in range(0, count, 1024):
                end = min(start + 1024, count)
                seen = length - count + torch.arange(start, end, device=q.device)[:, None]
                hidden = torch.arange(length, device=q.device)[None, :] > seen
                for own in range(head * group, (head + 1) * group):
                    scores = (q[begin + start : begin + end, own].double() @ keys.T) * q.shape[2] ** -0.5
                    weights = scores.masked_fill_(hidden, float("-inf")).softmax(-1)
                    out[begin + start : begin + end, own] = weights @ values
        begin += count
    return out.flatten(1) * gate.double().sigmoid()
