"""From a training checkpoint to BF16 safetensors under Hugging Face names, and pieces to and from.

python -m assets.ember.recipe.export bf16 ember.int8.safetensors model.safetensors
python -m assets.ember.recipe.export split ember.int8.safetensors FOLDER
python -m assets.ember.recipe.export join ember.int8.safetensors FOLDER/ember.int8.safetensors.*
"""

from __future__ import annotations

import argparse
from pathlib import Path

from safetensors.torch import save_file

from .checkpoint import join, load_int8, split


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("bf16", "split", "join"))
    parser.add_argument("path", type=Path, help="the checkpoint (for join: the file to write)")
    parser.add_argument("more", type=Path, nargs="+", help="where to write (for join: the pieces)")
    args = parser.parse_args(argv)
    if args.what == "bf16":
        state = {name: tensor.bfloat16().contiguous() for name, tensor in load_int8(args.path).items()}
        save_file(state, args.more[0], {"format": "pt"})
    elif args.what == "split":
        split(args.path, args.more[0])
    else:
        join(args.more, args.path)


if __name__ == "__main__":
    main()
