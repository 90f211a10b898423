"""Sampling on the card: greedy rows, rows as the model's defaults ask, and with penalties."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from ignis_desktop.bench.gpu.case import Case, Launch
from kernels.fused.sampling import DIVISOR, REDUCTION, Settings, sample, sample_reference

VOCABULARY = 248320


def cases(quick: bool) -> Iterator[Case]:
    kinds = {"greedy": (1, 0), "top-k 20": (32, 0), "penalties": (32, DIVISOR | REDUCTION), "top-p": (128, 0)}
    for count in (1, 8) if quick else (1, 8, 64):
        for kind, (candidates, flags) in kinds.items():
            yield Case(
                "sampling",
                f"sample {kind} {count}",
                partial(_sample, count, kind, candidates, flags),
                1e-6,
                bytes=count * VOCABULARY * (12 if flags else 4),
                variants=max(1, 64 // count) if count <= 8 else 2,
                per_round=1 if kind == "greedy" else 0,
            )


def _sample(
    count: int, kind: str, candidates: int, flags: int, seed: int
) -> tuple[Launch, Callable[[], Sequence[Tensor]]]:
    generator = torch.Generator("cuda").manual_seed(seed)

    def rand(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator, device="cuda")

    logits = 3 * torch.randn(count, VOCABULARY, generator=generator, device="cuda")
    limit, top_p, temperature = {"greedy": (1, 1.0, 1.0), "top-p": (VOCABULARY, 0.9, 0.3)}.get(kind, (20, 0.95, 1.0))
    fixed = torch.tensor([temperature, top_p, 0.0, limit], dtype=torch.float64, device="cuda")
    settings = Settings(
        torch.cat([fixed.expand(count, 4), rand(count, 1).double()], dim=1).contiguous(),
        torch.arange(count, device="cuda").int(),
        torch.full((count,), flags, device="cuda").int(),
        torch.where(rand(count, VOCABULARY) < 0.01, 1.1, 1.0),
        torch.where(rand(count, VOCABULARY) < 0.01, 1.5, 0.0),
        torch.zeros(count, (VOCABULARY + 31) // 32, dtype=torch.int32, device="cuda"),
    )

    def launch() -> list[Tensor]:
        chosen = sample(logits, settings, candidates=candidates, dependent=True)
        return [chosen.ids, chosen.report]

    def reference() -> list[Tensor]:
        chosen = sample_reference(logits, settings, candidates=candidates)
        return [chosen.ids, chosen.report]

    return launch, reference
