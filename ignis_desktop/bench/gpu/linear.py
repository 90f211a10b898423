"""Linear layers on the card: NVFP4 products of a round at every shape of the 27B, and the ways of launching them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from ignis_desktop.bench.gpu.case import Case, Launch
from kernels.fused.activations import arrange
from kernels.fused.nvfp4_layout import ROWS, NVFP4Weight, dequantize, empty_nvfp4
from kernels.fused.nvfp4_linear import Plan, nvfp4_linear, wants_fragments, workspace_size
from kernels.fused.partial import Partial

SHAPES = {
    "gate‖up": (34816, 5120, 64),
    "down": (5120, 17408, 64),
    "GDN inputs": (16384, 5120, 48),
    "out": (5120, 6144, 64),
    "qkv": (14336, 5120, 16),
}
"""Rows, columns, and how many of them a round multiplies with."""
CACHE = 400e6
"""Bytes that no card's cache holds a part of worth mentioning."""
Made = tuple[Launch, Callable[[], Sequence[Tensor]]]


def cases(quick: bool) -> Iterator[Case]:
    for name, (out, k, count) in SHAPES.items():
        for columns in (1, 8, 64) if quick else (1, 4, 8, 12, 16, 32, 64):
            yield _case(f"nvfp4 {name} × {columns}", out, k, columns, count)
    # Shapes of small models, padded, and activations in their own order.
    for out, k, columns in ((1536, 576, 3), (576, 1536, 20), (48, 320, 64), (34816, 5120, 100)):
        yield _case(f"nvfp4 {out} × {k} × {columns}", out, k, columns, 0, natural=True)
    if not quick:
        yield from _plans()


def _plans() -> Iterator[Case]:
    """Other ways to launch the same, to choose among."""
    cores = torch.cuda.get_device_properties(0).multi_processor_count
    for name, (out, k, _) in SHAPES.items():
        tiles = out // ROWS
        ways = [(16, Plan("stream", 16, 3 * cores, stages=4)), (16, Plan("stream", 16, 4 * cores, 4, 128))]
        ways += [(16, Plan("split", 16, tiles * split, stages=3)) for split in (2, 3, 4, 6)]
        ways += [(32, Plan("stream", 32, 3 * cores, stages=4))]
        ways += [(32, Plan("split", 32, tiles * split, stages=3)) for split in (1, 2, 3, 4, 6)]
        ways += [(64, Plan("split", 64, tiles * split, stages)) for split in (1, 2, 3, 4, 5) for stages in (2, 3)]
        for columns, plan in ways:
            way = f"{plan.kernel} {plan.programs}p {plan.stages}s {plan.registers or ''}"
            if plan.kernel != "split" or plan.programs >= cores:
                yield _case(f"{name} × {columns}: {way}", out, k, columns, 0, plan=plan, area="linear plans")


def _case(
    name: str,
    out: int,
    k: int,
    columns: int,
    per_round: float,
    *,
    natural: bool = False,
    plan: Plan | None = None,
    area: str = "linear",
) -> Case:
    moved = out * k * 9 // 16 + columns * k * 2 + columns * out * 4
    return Case(
        area,
        name,
        lambda seed: _make(out, k, columns, seed, natural, plan),
        1e-3,
        bytes=moved,
        flops=2 * out * k * columns,
        variants=max(2, int(CACHE / moved) + 1) if per_round or plan else 1,
        per_round=per_round,
        hot=not natural,
    )


def _make(out: int, k: int, columns: int, seed: int, natural: bool, plan: Plan | None) -> Made:
    weight = random_weight(out, k, seed)
    x = torch.randn(columns, k, device="cuda").bfloat16()
    fragments = not natural and (plan is not None or wants_fragments(weight, columns, x.device))
    given = arrange(x, k, fragments=True) if fragments else x
    workspace = None
    if plan is None:
        workspace = torch.full((workspace_size(weight, columns, x.device),), float("nan"), device="cuda")

    def launch() -> Partial:
        return nvfp4_linear(given, weight, workspace, in_fragments=fragments, dependent=True, chosen=plan)

    return launch, lambda: [_exact(x, weight)]


def random_weight(out: int, k: int, seed: int) -> NVFP4Weight:
    """Words may hold anything; scales are three octaves around 1, whose weights are as large as a layer's."""
    generator = torch.Generator("cuda").manual_seed(seed)
    weight = empty_nvfp4(out, k, "cuda")
    weight.words.random_(-(2**31), 2**31, generator=generator)
    weight.scales.view(torch.uint8).random_(116, 140, generator=generator)
    weight.factors.uniform_(0.005 * 2.0**45, 0.02 * 2.0**45, generator=generator)
    return weight


def _exact(x: Tensor, weight: NVFP4Weight) -> Tensor:
    parts = dequantize(weight).split(4096)
    return torch.cat([x.double() @ part.double().T for part in parts], dim=1)
