"""Write the pairs of all sources as JSON lines {"q", "t", "src"}, packed with gzip, and say how many each gave.

python -m assets.ember.recipe.pairs --root FOLDER [FOLDER ...] --out paraphrase_pairs.jsonl.gz
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path

from . import collect


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, nargs="+", required=True, help="extracted packages, archives, apt's lists")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    total = 0
    with gzip.open(args.out, "wt", encoding="utf-8") as file:
        for name, pairs in collect(args.root):
            file.writelines(json.dumps({"q": q, "t": t, "src": name}) + "\n" for q, t in pairs)
            print(f"{len(pairs):8,} {name}", flush=True)
            total += len(pairs)
    if not total:
        args.out.unlink()
        parser.error("these folders hold none of the material")
    print(f"{total:8,} pairs")


if __name__ == "__main__":
    main()
