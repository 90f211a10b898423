"""Checkpoints: reading BF16, FP8, INT8 and NVFP4 safetensors, writing them, and knowing which models there are."""

from engine.checkpoint.errors import CheckpointError
from engine.checkpoint.layout import expected_tensors
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
