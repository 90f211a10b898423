"""The whole measurement of a card, part by part: whatever one part does, the others are reported."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from ignis_desktop.bench.gpu.card import Card, measure_card
from ignis_desktop.bench.gpu.kernels import AREAS, kernels_json, kernels_table, run_kernels
from ignis_desktop.bench.machine import machine
from ignis_desktop.cli.errors import CommandError

PARTS = ("kernels", "model", "peer")
Say = Callable[[str], None]


def run_gpu(
    parts: Sequence[str],
    areas: Sequence[str],
    *,
    geometry: str,
    quick: bool,
    timed: bool,
    say: Say,
    show: Callable[[str], None],
) -> dict[str, Any]:
    """Measure the card in this machine.

    Args:
        parts: of PARTS.
        areas: of AREAS, for the kernels.
        geometry: of the model whose rounds, prompts and pictures are measured, with random weights.
        quick: fewer shapes and repeats, to see that everything runs.
        timed: also time the kernels; else they are only compiled and checked.
        say: what is being done; show: tables, as they are done.

    Raises:
        CommandError: there is no card.
    """
    import torch

    if not torch.cuda.is_available():
        raise CommandError(
            "There is no CUDA card here: run `ignis doctor` to see why, or measure the CPU with bench cpu."
        )
    started = time.monotonic()
    say("measuring the card's ceilings")
    card = measure_card()
    show(card.line())
    result: dict[str, Any] = {"kind": "gpu", "machine": machine(), "card": card.json(), "quick": quick, "faults": {}}
    steps: dict[str, Callable[[], None]] = {
        "kernels": lambda: _kernels(result, areas or AREAS, quick, timed, card, say, show),
        "model": lambda: _model(result, geometry, quick, card, say, show),
        "peer": lambda: _peer(result, geometry, say, show),
    }
    for part in parts or PARTS:
        try:
            steps[part]()
        except Exception as fault:  # the other parts' figures are worth having
            result["faults"][part] = "".join(traceback.format_exception(fault))
            show(f"{part}: {result['faults'][part]}")
        torch.cuda.empty_cache()
    result["seconds"] = round(time.monotonic() - started, 1)
    return result


def _kernels(
    result: dict[str, Any],
    areas: Sequence[str],
    quick: bool,
    timed: bool,
    card: Card,
    say: Say,
    show: Callable[[str], None],
) -> None:
    found = run_kernels(areas, quick, timed, say)
    show(kernels_table(found, card))
    result["kernels"] = kernels_json(found, card)


def _model(
    result: dict[str, Any], geometry: str, quick: bool, card: Card, say: Say, show: Callable[[str], None]
) -> None:
    from ignis_desktop.bench.gpu.model import run_model

    run_model(result, geometry, quick, card, say, show)


def _peer(result: dict[str, Any], geometry: str, say: Say, show: Callable[[str], None]) -> None:
    """transformers beside the rounds that were measured in the same run."""
    from engine.checkpoint.geometries import geometry as known
    from ignis_desktop.bench.cpu.rows import Row, rows_table
    from ignis_desktop.bench.gpu.model import REFERENCE_CONTEXT
    from ignis_desktop.bench.gpu.peer import PROMPT, transformers_step

    lanes = 8
    say("drawing the model for transformers")
    step = transformers_step(known(geometry).raw["text_config"], lanes) * 1e3
    rows = result.setdefault("rows", {})
    own = rows.get(f"round_{lanes}x1_{REFERENCE_CONTEXT}")
    ratio = step / own["samples"][0] if own else None
    row = Row(
        key="transformers",
        name=f"{lanes} lanes after {REFERENCE_CONTEXT:,} tokens, transformers' batch after {PROMPT:,}",
        value=f"{lanes / own['samples'][0] * 1e3:,.0f} tokens/s" if own else "not measured in this run",
        peer=f"{lanes / step * 1e3:,.0f} tokens/s",
        ratio=ratio,
        target="≥ 3 ×",
        passed=None if ratio is None else ratio >= 3,
        peer_samples=[step],
        note="BF16, rounds of torch operators; without flash-linear-attention it takes its own reference recurrence",
    )
    rows[row.key] = row.json()
    show(rows_table([row]))
