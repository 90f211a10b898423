"""Checkpoints: reading BF16, FP8, INT8 and NVFP4 safetensors, writing them, and knowing which models there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.checkpoint.errors import CheckpointError
from engine.checkpoint.layout import expected_tensors

if TYPE_CHECKING:
    from engine.checkpoint.quantize import Packed, PackedFP8, PackedInt8, PackedNVFP4
    from engine.checkpoint.reader import Checkpoint, open_checkpoint

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "Packed",
    "PackedFP8",
    "PackedInt8",
    "PackedNVFP4",
    "expected_tensors",
    "open_checkpoint",
]


def __getattr__(name: str) -> object:
    """What holds tensors brings torch, which takes seconds to import: only for those who use it."""
    if name in ("Checkpoint", "open_checkpoint"):
        from engine.checkpoint import reader

        return getattr(reader, name)
    if name in __all__:
        from engine.checkpoint import quantize

        return getattr(quantize, name)
    raise AttributeError(name)
