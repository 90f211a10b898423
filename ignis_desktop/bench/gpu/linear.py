"""Linear layers on the card: products of a round and of prompts at every shape of the 27B."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from ignis_desktop.bench.gpu.case import Case, Launch
from kernels.fused.activations import arrange
from kernels.fused.dense_linear import dense_linear, fp8_linear
from kernels.fused.norm import add_rms_norm
from kernels.fused.nvfp4_layout import (
    NVFP4Weight,
    dequantize,
    empty_nvfp4,
    pack_rows,
    pack_scales,
    pack_words,
)
from kernels.fused.nvfp4_linear import Plan, nvfp4_linear, wants_fragments, workspace_size
from kernels.fused.nvfp4_unpack import nvfp4_matmul, unpack_nvfp4
from kernels.fused.partial import Partial
from kernels.fused.silu_mul import silu_mul

SHAPES = {
    "gate‖up": (34816, 5120, 64),
    "down": (5120, 17408, 64),
    "GDN inputs": (16384, 5120, 48),
    "out": (5120, 6144, 64),
    "qkv": (14336, 5120, 16),
}
"""Rows, columns, and how many of them a round multiplies with."""
HEAD = 248320, 5120
CACHE = 400e6
"""Bytes that no card's cache holds a part of worth mentioning."""
Made = tuple[Launch, Callable[[], Sequence[Tensor]]]


def cases(quick: bool) -> Iterator[Case]:
    for name, (out, k, count) in SHAPES.items():
        for columns in (1, 8, 64) if quick else (1, 8, 16, 32, 64):
            yield _case(f"nvfp4 {name} × {columns}", out, k, columns, count)
    for columns in (1, 8, 64):
        yield _dense(f"gates × {columns}", 96, 5120, columns, 48)
        yield _dense(f"head × {columns}", *HEAD, columns, 1)
        yield _fp8(f"FP8 head × {columns}", *HEAD, columns, 1)
    for columns in (1, 8):
        yield _block(columns)
    yield _packing()
    for name, (out, k, _) in SHAPES.items():
        yield _unpacking(name, out, k)
        for columns in (1024,) if quick else (1024, 4096):
            yield _prompt(f"prompt {name} × {columns}", out, k, columns)
    # Shapes of small models, padded, and activations in their own order.
    for out, k, columns in ((1536, 576, 3), (576, 1536, 20), (48, 320, 64), (34816, 5120, 100)):
        yield _case(f"nvfp4 {out} × {k} × {columns}", out, k, columns, 0, natural=True)
    # What cards without wgmma do.
    cores = torch.cuda.get_device_properties(0).multi_processor_count
    for columns, resident, stages in ((16, 4, 4), (32, 3, 3), (64, 2, 3)):
        how = Plan("shared", columns, resident * cores, stages=stages)
        yield _case(f"nvfp4 out × {columns - 3} without wgmma", 5120, 6144, columns - 3, 0, hot=False, plan=how)


def _block(columns: int) -> Case:
    """A feed-forward block as a round runs it: norm, gate‖up, SiLU, down, each launched while the one before runs."""
    hidden, inner = 5120, 17408

    def make(seed: int) -> Made:
        gate_up, down = random_weight(2 * inner, hidden, seed), random_weight(hidden, inner, seed + 100)
        residual, scale = _normal(columns, hidden), torch.rand(hidden, device="cuda") + 0.5
        delta = Partial.split(torch.randn(columns, hidden, device="cuda"))

        def launch() -> Partial:
            _, normed = add_rms_norm(residual, delta, scale, 1e-6, dependent=True)
            product = nvfp4_linear(normed, gate_up, dependent=True)
            return nvfp4_linear(silu_mul(product, dependent=True), down, dependent=True)

        def exact() -> Sequence[Tensor]:
            total = residual.double() + delta.sum()
            normed = total * (total.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * scale
            gate, up = _exact(normed, dequantize(gate_up)).chunk(2, dim=-1)
            return [_exact(gate * gate.sigmoid() * up, dequantize(down))]

        return launch, exact

    moved = 3 * inner * hidden * 9 // 16
    return Case("linear", f"feed-forward block × {columns}", make, 1e-2, moved, variants=4)


def _dense(name: str, out: int, k: int, columns: int, per_round: float) -> Case:
    def make(seed: int) -> Made:
        x, weight = _normal(columns, k), _normal(out, k) * 0.02
        return lambda: dense_linear(x, weight, torch.float32, dependent=True), lambda: [_exact(x, weight)]

    moved = 2 * out * k + columns * (2 * k + 4 * out)
    variants = min(64, max(2, int(CACHE / moved) + 1))
    return Case("linear", name, make, 1e-4, moved, 2 * out * k * columns, variants, per_round)


def _fp8(name: str, out: int, k: int, columns: int, per_round: float) -> Case:
    def make(seed: int) -> Made:
        x, codes = _normal(columns, k), _normal(out, k).to(torch.float8_e4m3fn)
        scale = torch.rand(out, device="cuda") * 0.02

        def exact() -> Sequence[Tensor]:
            return [_exact(x, codes) * scale.double()]

        return lambda: fp8_linear(x, codes, scale, torch.float32, dependent=True), exact

    moved = out * k + columns * (2 * k + 4 * out)
    return Case("linear", name, make, 1e-4, moved, 2 * out * k * columns, 2, per_round)


def _packing() -> Case:
    """Of a checkpoint's codes, as at load."""
    out, k, _ = SHAPES["gate‖up"]

    def make(seed: int) -> Made:
        codes = torch.randint(0, 256, (out, k // 2), dtype=torch.uint8, device="cuda")
        bits = torch.randint(0, 0x7F, (out, k // 16), dtype=torch.uint8, device="cuda")
        scale = torch.tensor(0.01)
        weight = empty_nvfp4(out, k, "cuda")

        def launch() -> Sequence[Tensor]:
            pack_rows(weight, 0, codes, bits.view(torch.float8_e4m3fn), scale)
            return [weight.words, weight.scales]

        return launch, lambda: [pack_words(codes, bits), pack_scales(bits)]

    return Case("linear", "pack nvfp4", make, 0.0, bytes=out * k * 9 // 8, hot=False)


def _unpacking(name: str, out: int, k: int) -> Case:
    def make(seed: int) -> Made:
        weight = random_weight(out, k, seed)
        whole = torch.full((out, k), float("nan"), dtype=torch.bfloat16, device="cuda")
        return lambda: unpack_nvfp4(weight, whole, dependent=True), lambda: [dequantize(weight, torch.bfloat16)]

    return Case("linear", f"unpack {name}", make, 1e-4, bytes=out * k * 41 // 16, variants=3)


def _prompt(name: str, out: int, k: int, columns: int) -> Case:
    def make(seed: int) -> Made:
        weight, x = random_weight(out, k, seed), _normal(columns, k)
        scratch = torch.empty(out * k, dtype=torch.bfloat16, device="cuda")
        return lambda: nvfp4_matmul(x, weight, scratch), lambda: [_exact(x, dequantize(weight))]

    return Case("linear", name, make, 5e-3, flops=2 * out * k * columns, variants=2)


def _case(
    name: str,
    out: int,
    k: int,
    columns: int,
    per_round: float,
    *,
    natural: bool = False,
    hot: bool = True,
    plan: Plan | None = None,
) -> Case:
    moved = out * k * 9 // 16 + columns * k * 2 + columns * out * 4
    return Case(
        "linear",
        name,
        lambda seed: _make(out, k, columns, seed, natural, plan),
        1e-3,
        bytes=moved,
        flops=2 * out * k * columns,
        variants=max(2, int(CACHE / moved) + 1) if per_round else 1,
        per_round=per_round,
        hot=hot and not natural,
    )


def _make(out: int, k: int, columns: int, seed: int, natural: bool, plan: Plan | None) -> Made:
    weight = random_weight(out, k, seed)
    x = torch.randn(columns, k, device="cuda").bfloat16()
    fragments = not natural and (plan.kernel != "registers" if plan else wants_fragments(weight, columns, x.device))
    given = arrange(x, k, fragments=True) if fragments else x
    workspace = None
    if plan is None:
        workspace = torch.full((workspace_size(weight, columns, x.device),), float("nan"), device="cuda")

    def launch() -> Partial:
        return nvfp4_linear(given, weight, workspace, in_fragments=fragments, dependent=True, chosen=plan)

    return launch, lambda: [_exact(x, dequantize(weight))]


def random_weight(out: int, k: int, seed: int) -> NVFP4Weight:
    """Words may hold anything; scales are three octaves around 1, whose weights are as large as a layer's."""
    generator = torch.Generator("cuda").manual_seed(seed)
    weight = empty_nvfp4(out, k, "cuda")
    weight.words.random_(-(2**31), 2**31, generator=generator)
    weight.scales.view(torch.uint8).random_(116, 140, generator=generator)
    weight.factors.uniform_(0.005 * 2.0**45, 0.02 * 2.0**45, generator=generator)
    return weight


def _normal(rows: int, columns: int) -> Tensor:
    return torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16)


def _exact(x: Tensor, weight: Tensor) -> Tensor:
    return torch.cat([x.double() @ part.double().T for part in weight.split(4096)], dim=1)
