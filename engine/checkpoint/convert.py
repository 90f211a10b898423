"""A checkpoint in the card's own order, so that later loads are a copy: everything else of it stays as it is."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from engine.checkpoint.errors import CheckpointError
from engine.checkpoint.layout import matrix_names
from engine.checkpoint.quantize import Fragments, PackedNVFP4
from engine.checkpoint.reader import HASH, Checkpoint, open_checkpoint
from engine.checkpoint.write import Weight, write_checkpoint
from engine.compute import unserved
from engine.config import ModelConfig

SHARD = 2 << 30
_LEFT = (".safetensors", ".index.json", ".part")
_STORED = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}


def convert(source: Path, target: Path, on_progress: Callable[[int, int], None] | None = None) -> int:
    """Write ``source`` into ``target``, its NVFP4 matrices as the card's kernels read them.

    Names of tensors, the other weights, tokenizer, template and head lists are the source's; its identity stands in the
    files' metadata, so that head lists and kept state of the one fit the other.

    Args:
        on_progress: (bytes read, bytes in all).

    Returns:
        how many matrices were put in order.

    Raises:
        CheckpointError: the source cannot be read or holds nothing to convert, or the target holds a checkpoint.
    """
    if target.exists() and any(target.glob("*.safetensors")):
        raise CheckpointError(f"{target} holds a checkpoint already: name an empty folder.")
    with open_checkpoint(source) as checkpoint:
        config = ModelConfig.from_dict(checkpoint.config)
        matrices = _matrices(source, checkpoint, config)
        if on_progress is not None:
            checkpoint.on_progress = lambda done, total, _name: on_progress(done, total)
        metadata = {HASH: checkpoint.content_hash()}
        weights = _weights(checkpoint, matrices)
        write_checkpoint(target, checkpoint.config, weights, layout="modelopt", shard_bytes=SHARD, metadata=metadata)
    for file in source.iterdir():
        if file.is_file() and file.name != "config.json" and not file.name.endswith(_LEFT):
            shutil.copyfile(file, target / file.name)
    return len(matrices)


def _matrices(source: Path, checkpoint: Checkpoint, config: ModelConfig) -> frozenset[str]:
    """Names of the weights that the kernels read in fragments."""
    reason = unserved(config.text)
    if reason:
        raise CheckpointError(f"{source}: the card's kernels do not serve {reason}; load it as it is.")
    joined = [names for names in matrix_names(config.text) if all(checkpoint.format_of(n) == "nvfp4" for n in names)]
    if not joined:
        raise CheckpointError(f"{source} holds no NVFP4 matrices to put in the card's order; load it as it is.")
    return frozenset(name for names in joined for name in names)


def _weights(checkpoint: Checkpoint, matrices: frozenset[str]) -> Iterator[tuple[str, Weight]]:
    for name in checkpoint.names():
        stored = checkpoint.format_of(name)
        if name in matrices:
            packed = checkpoint.packed(name)
            assert isinstance(packed, PackedNVFP4)
            yield name, _fragments(packed)
        elif stored in _STORED:
            yield name, checkpoint.tensor(name, _STORED[stored])
        else:
            yield name, checkpoint.packed(name)


def _fragments(packed: PackedNVFP4) -> Fragments:
    from kernels.fused.nvfp4_layout import BLOCK, TILE, pack_nvfp4

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    weight = pack_nvfp4(packed.codes.to(device), packed.block_scale.to(device), packed.scale)
    tiles, blocks = weight.rows // TILE, weight.columns // BLOCK
    words, scales = weight.words.view(tiles, blocks, -1).cpu(), weight.scales.view(tiles, blocks, -1).cpu()
    rows, columns = packed.shape
    return Fragments(words, scales, packed.scale, rows, columns, packed.input_scale)
