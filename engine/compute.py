"""The type that numbers are multiplied in, told without torch, so that a plan takes no time."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from engine.config import EngineConfig, TextConfig
from kernels import served
from kernels.registry import choice

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


def runs_fused(text: TextConfig, device: str, compute: str) -> bool:
    """Whether the decoder runs as fused kernels over quantised weights: on a card, in bfloat16, where they serve the
    model's shapes. Elsewhere, and where ``kernels.registry`` is told so, it runs in plain torch over weights unpacked
    to the compute type."""
    wanted = choice()
    asked = compute == "bfloat16" and (device == "cuda" if wanted == "auto" else wanted == "triton")
    return asked and not unserved(text)


def unserved(text: TextConfig) -> str:
    """What of a model's shape the fused kernels do not serve, in words; "" when they serve it."""
    if text.head_dim not in served.HEAD_DIMS:
        return f"heads of {text.head_dim} values"
    for dim in (text.gdn_key_dim, text.gdn_value_dim):
        if dim not in served.GDN_DIMS:
            return f"recurrent heads of {dim} values"
    if text.conv_width != served.TAPS:
        return f"a convolution over {text.conv_width} tokens"
    if text.hidden_size > served.WIDEST or text.hidden_size % 16 or text.intermediate_size % 16:
        return f"layers {text.hidden_size} and {text.intermediate_size} wide"
    return ""


def has_amx(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether this processor multiplies tiles of bfloat16. Linux says so itself; elsewhere torch asks the processor."""
    try:
        with cpuinfo.open(encoding="utf-8", errors="replace") as lines:
            flags = next((line for line in lines if line.startswith("flags")), "")
    except OSError:
        import torch

        return bool(torch.cpu._is_amx_tile_supported())
    return "amx_tile" in flags.split()
