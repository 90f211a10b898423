"""Makers of Ember's screens: `python -m assets.ember.recipe.screens JOB ...` (see README.md)."""

from __future__ import annotations

import argparse
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(prog="screens", description=__doc__)
    jobs = parser.add_subparsers(dest="job", required=True)
    make = jobs.add_parser("assets", help="pack icons, fonts and strings for the drawer")
    make.add_argument("out", type=Path)
    make.add_argument("--npm", type=Path, required=True, help="node_modules with the icon sets")
    make.add_argument(
        "--sources", type=Path, required=True, help="folder of Debian source archives to read strings from"
    )
    args = parser.parse_args()
    if args.job == "assets":
        from .assets import make as make_assets

        archives = sorted(p for p in args.sources.glob("*.tar.*") if ".debian." not in p.name and p.suffix != ".asc")
        print(make_assets(args.out, args.npm, archives))


if __name__ == "__main__":
    main()
