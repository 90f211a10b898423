"""Attention as the 27B and Ember launch it."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from kernels.fused.fp8 import FP8
from kernels.fused.paged_decode import decode_plan, paged_decode
from kernels.fused.paged_prefill import paged_prefill, prefill_plan
from kernels.fused.partial import Partial, slot_count
from kernels.fused.pool import LayerPool
from kernels.fused.qkv import split_qkv
from kernels.fused.readout import pick_peaks, read_scores
from kernels.fused.vision_attention import vision_attention, vision_plan
from tests.kernels.recording import recorded
from tests.kernels.specialisation import Specialisation

CARDS = {90: 132, 120: 170}
"""Multiprocessors of an H200 and an RTX 5090."""


SPILLING = ("_prefill_kernel", "decode_fp8_kernel")
"""On SM90, at their sizes, some registers spill, mostly before and after the loop over keys; small tiles are slower."""


def specialisations() -> Iterator[Specialisation]:
    for target in CARDS:
        seen = set()
        for packed in (False, True):
            for one in _text(24, 4, 256, packed, target):
                if one.name not in seen:
                    yield one
                seen.add(one.name)
        yield from _vision(16, 72, target)
    yield from _decode(9, _pool(3, 64, packed=False), 1, 120)


def _text(heads: int, kv_heads: int, dim: int, packed: bool, target: int) -> Iterator[Specialisation]:
    pool, targets = _pool(kv_heads, dim, packed), [target]
    for columns in (8,) if packed else (1, 8):
        yield from _decode(heads, pool, columns, target)
    plan = prefill_plan(pool, roomy=target == 90)
    table, one = torch.empty(1, 64, dtype=torch.int32), torch.empty(1, dtype=torch.int32)
    yield from recorded(
        lambda: paged_prefill(*_inputs(64, heads, dim), pool, table, one, one.repeat(2), longest=64, plan=plan),
        targets,
        SPILLING if target == 90 else (),
    )
    out = 2 * (heads + kv_heads) * dim
    layout = (slot_count(out // 64, 10, 528), 64, 10, 528)
    angles = torch.empty(8, 32)
    norms = torch.empty(dim), torch.empty(dim)
    product = Partial(torch.empty(layout[0], 8, out), layout)
    yield from recorded(lambda: split_qkv(product, *norms, angles, angles, one.repeat(8), pool, 1e-6), targets)
    some, none = torch.zeros(6, dtype=torch.int32), torch.empty(0, dtype=torch.int64)
    scores, best, around = torch.empty(96, 100), torch.empty(96, dtype=torch.int64), torch.empty(96, 5)
    q = _inputs(1, heads, dim)[0]
    yield from recorded(lambda: read_scores(q, 0, some, some, pool, table[0], (7, 107), none, scores), targets)
    yield from recorded(lambda: pick_peaks(scores, 10, best, around), targets)


def _decode(heads: int, pool: LayerPool, columns: int, target: int) -> list[Specialisation]:
    plan = decode_plan(1, columns, heads, pool, CARDS[target], roomy=target == 90)
    table, past = torch.empty(1, 64, dtype=torch.int32), torch.empty(1, dtype=torch.int32)
    return recorded(
        lambda: paged_decode(*_inputs(columns, heads, pool.dim), pool, table, past, plan=plan),
        [target],
        SPILLING if target == 90 else (),
    )


def _inputs(count: int, heads: int, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries and gates."""
    kind = torch.bfloat16
    return torch.empty(count, heads, dim, dtype=kind), torch.empty(count, heads * dim, dtype=kind)


def _vision(heads: int, dim: int, target: int) -> Iterator[Specialisation]:
    product = torch.empty(64, 3 * heads * dim, dtype=torch.bfloat16)
    angles = torch.empty(64, dim // 2)
    plan = vision_plan(dim, 2, roomy=target == 90)
    yield from recorded(lambda: vision_attention(product, angles, angles, heads, plan=plan), [target])


def _pool(heads: int, dim: int, packed: bool) -> LayerPool:
    values = torch.empty(2, 128, heads, dim, dtype=FP8 if packed else torch.bfloat16)
    scales = torch.empty(2, 128, heads) if packed else (None, None)
    return LayerPool(*values, *scales)
