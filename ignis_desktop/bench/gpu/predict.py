"""What a card that is not here would do: the measured times, scaled by what bounds each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ignis_desktop.bench.report import table


@dataclass(frozen=True)
class Other:
    """Another card's ceilings, by its vendor's datasheet."""

    name: str
    read_bytes: float
    matrix_flops: float


CARDS = {"rtx5090": Other("RTX 5090", 1.79e12, 209.5e12)}
"""NVIDIA, "NVIDIA RTX Blackwell GPU architecture", 2025: 1,792 GB/s; 209.5 TFLOP/s dense BF16 with float32 sums."""


def predict(result: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Rounds and prompts on another card at this one's efficiency: rounds as memory bounds them, prompts as the matrix
    units do. Only a prediction: another card has other kernels to choose from and other things in its way."""
    other, card = CARDS[name], result["card"]
    found = []
    for key, row in result.get("rows", {}).items():
        if not row["samples"] or not key.startswith(("round_", "prefill_")):
            continue
        memory = key.startswith("round_")
        slower = card["read_bytes"] / other.read_bytes if memory else card["matrix_flops"] / other.matrix_flops
        measured = row["samples"][0] * (1.0 if memory else 1e3)
        found.append({"key": key, "name": row["name"], "measured_ms": measured, "predicted_ms": measured * slower})
    return found


def predict_table(rows: list[dict[str, Any]], name: str) -> str:
    headers = ("measure", "here", f"{CARDS[name].name}, predicted")
    return table(headers, [[r["name"], f"{r['measured_ms']:,.2f} ms", f"{r['predicted_ms']:,.2f} ms"] for r in rows])
