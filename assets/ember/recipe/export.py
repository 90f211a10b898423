"""From a training checkpoint to BF16 safetensors under Hugging Face names and back from shipped weights; pieces to and
from.

python -m assets.ember.recipe.export bf16 ember.int8.safetensors model.safetensors
python -m assets.ember.recipe.export int8 assets/ember ember.int8.safetensors
python -m assets.ember.recipe.export split ember.int8.safetensors FOLDER
python -m assets.ember.recipe.export join ember.int8.safetensors FOLDER/ember.int8.safetensors.*
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from safetensors.torch import save_file

from engine.checkpoint.reader import open_checkpoint

from .checkpoint import join, load_int8, save_int8, split


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("bf16", "int8", "split", "join"))
    parser.add_argument("path", type=Path, help="the checkpoint (for int8: its folder; for join: the file to write)")
    parser.add_argument("more", type=Path, nargs="+", help="where to write (for join: the pieces)")
    args = parser.parse_args(argv)
    if args.what == "bf16":
        state = {name: tensor.bfloat16().contiguous() for name, tensor in load_int8(args.path).items()}
        save_file(state, args.more[0], {"format": "pt"})
    elif args.what == "int8":
        unpack(args.path, args.more[0])
    elif args.what == "split":
        split(args.path, args.more[0])
    else:
        join(args.more, args.path)


def unpack(folder: Path, path: Path) -> None:
    """Write a checkpoint folder's weights, shipped ones too, as a training checkpoint to continue from.

    What training had beyond the shipped precision is gone; as its last part already ran on weights rounded like that, a
    continued run starts at the shipped figures.
    """
    with open_checkpoint(folder) as checkpoint:
        save_int8({name: checkpoint.tensor(name, torch.float32) for name in checkpoint.names()}, path)


if __name__ == "__main__":
    main()
