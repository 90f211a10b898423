"""What stands between the matrices on the card: norms, the feed-forward gate, the embedding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from ignis_desktop.bench.gpu.case import Case, Launch
from kernels.fused.embedding import embed_norm
from kernels.fused.norm import add_rms_norm
from kernels.fused.partial import Layout, Partial, slot_count
from kernels.fused.silu_mul import silu_mul

HIDDEN, INNER, VOCABULARY, LAYERS = 5120, 17408, 248320, 64
PROGRAMS = 528
Made = tuple[Launch, Callable[[], Sequence[Tensor]]]


def cases(quick: bool) -> Iterator[Case]:
    for count in (1, 8, 64, 2048):
        slots = 0 if count > 64 else None
        rounds = LAYERS if count <= 64 else 0
        for name, inner in (("out", 6144), ("down", INNER)):
            layout = layout_of(HIDDEN, inner) if slots is None else (0, 0, 0, 0)
            yield Case(
                "elementwise",
                f"add_rms_norm {name} {count}",
                partial(_norm, count, layout),
                3e-3,
                bytes=count * HIDDEN * (6 + _read(layout)),
                variants=4,
                per_round=rounds,
            )
        layout = layout_of(2 * INNER, HIDDEN) if slots is None else (0, 0, 0, 0)
        yield Case(
            "elementwise",
            f"silu_mul {count}",
            partial(_silu, count, layout),
            3e-3,
            bytes=count * INNER * (2 + 2 * _read(layout)),
            variants=4,
            per_round=rounds,
        )
        yield Case(
            "elementwise",
            f"embed_norm {count}",
            partial(_embed, count),
            3e-3,
            bytes=count * HIDDEN * 6,
            per_round=1 if rounds else 0,
        )


def layout_of(out: int, inner: int) -> Layout:
    """Of a linear layer's product in a round."""
    tile, blocks = 64, inner // 512
    return slot_count(out // tile, blocks, PROGRAMS), tile, blocks, PROGRAMS


def slotted(values: Tensor, layout: Layout) -> Partial:
    """``values`` [N, out] as a linear layer leaves them: in slots that add up to them."""
    if not layout[0]:
        return Partial.of(values.bfloat16())
    parts = torch.randn(layout[0], *values.shape, device=values.device)
    counts = Partial(torch.ones_like(parts), layout).sum()
    slot = torch.arange(layout[0], device=values.device)[:, None, None]
    parts = torch.where(slot < counts - 1, parts, 0.0)
    return Partial(torch.where(slot == counts - 1, values.float() - parts.sum(0), parts), layout)


def _read(layout: Layout) -> int:
    """Bytes of a value in its slots, as if each tile had all of them."""
    return 4 * layout[0] or 2


def _norm(count: int, layout: Layout, seed: int) -> Made:
    torch.manual_seed(seed)
    residual, scale = torch.randn(count, HIDDEN, device="cuda").bfloat16(), torch.rand(HIDDEN, device="cuda") + 0.5
    product = slotted(torch.randn(count, HIDDEN, device="cuda"), layout)
    before = residual.double()

    def reference() -> list[Tensor]:
        total = before + product.sum().double()
        return [total, total * torch.rsqrt(total.square().mean(-1, keepdim=True) + 1e-6) * scale.double()]

    return lambda: add_rms_norm(residual, product, scale, 1e-6, dependent=True), reference


def _silu(count: int, layout: Layout, seed: int) -> Made:
    torch.manual_seed(seed)
    product = slotted(torch.randn(count, 2 * INNER, device="cuda"), layout)

    def reference() -> list[Tensor]:
        gate, up = product.sum().double().chunk(2, dim=-1)
        return [gate * gate.sigmoid() * up]

    return lambda: silu_mul(product, dependent=True), reference


def _embed(count: int, seed: int) -> Made:
    torch.manual_seed(seed)
    embedding = torch.randn(VOCABULARY // 8, HIDDEN, device="cuda", dtype=torch.bfloat16)
    ids = torch.randint(0, len(embedding), (count,), device="cuda")
    scale = torch.rand(HIDDEN, device="cuda") + 0.5

    def reference() -> list[Tensor]:
        x = embedding[ids].double()
        return [x, x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * scale.double()]

    return lambda: embed_norm(ids, embedding, scale, 1e-6, dependent=True), reference
