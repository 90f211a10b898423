"""The type that numbers are multiplied in, told without torch, so that a plan takes no time."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from engine.config import EngineConfig

ComputeType = Literal["float32", "bfloat16"]
ITEMSIZE: dict[str, int] = {"float32": 4, "bfloat16": 2}
"""Bytes of one number."""


def compute_type(config: EngineConfig, device: str) -> ComputeType:
    """bfloat16 on a GPU and on processors with AMX, else float32. ``device`` is "cpu" or "cuda".

    AVX512-BF16 alone does not count: measured on Ember it reads prompts 1.5 times slower than float32.
    """
    if config.dtype != "auto":
        return config.dtype
    return "bfloat16" if device == "cuda" or has_amx() else "float32"


def has_amx(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether this processor multiplies tiles of bfloat16. Linux says so itself; elsewhere torch asks the processor."""
    try:
        with cpuinfo.open(encoding="utf-8", errors="replace") as lines:
            flags = next((line for line in lines if line.startswith("flags")), "")
    except OSError:
        import torch

        return bool(torch.cpu._is_amx_tile_supported())
    return "amx_tile" in flags.split()
