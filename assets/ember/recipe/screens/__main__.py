"""Makers of Ember's screens: `python -m assets.ember.recipe.screens JOB ...` (see README.md)."""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

from .pack import write_shard


def _assets(args: argparse.Namespace) -> str:
    from .assets import make

    archives = sorted(p for p in args.sources.glob("*.tar.*") if ".debian." not in p.name and p.suffix != ".asc")
    tips = [found for path in args.tips for found in (sorted(path.glob("*.whl")) or [path])]
    share, office = args.root / "usr/share", args.root / "usr/lib/libreoffice/share"
    return make(args.out, args.npm, archives, [office, *tips], share, office)


def _pages(args: argparse.Namespace) -> str:
    from .browser import Browser
    from .canvas import Kit
    from .web import kit_pages

    with Browser() as browser:
        return f"{write_shard(args.out, kit_pages(browser, Kit(args.pack), args.npm, args.n, args.seed))} pages"


def _documentation(args: argparse.Namespace) -> str:
    from .browser import Browser
    from .web import documentation

    rng = random.Random(args.seed)
    pages = []
    for folder in args.folders:  # as many pages from a small manual as from a large one
        found = sorted(folder.rglob("*.html"))
        pages += rng.sample(found, min(len(found), 60))
    with Browser() as browser:
        return f"{write_shard(args.out, documentation(browser, pages, args.n, args.seed))} views of {len(pages)} pages"


def _qt(args: argparse.Namespace) -> str:
    from .canvas import Kit
    from .qt import windows

    return f"{write_shard(args.out, windows(Kit(args.pack), args.n, args.seed))} windows"


def _programs(args: argparse.Namespace) -> str:
    import shutil
    import tempfile

    from .programs import shots

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # for the account that runs the programs
        given = {"text": args.text, "picture": args.picture, "document": args.document}
        files = {kind: shutil.copy(path, folder) for kind, path in given.items()}
        return f"{write_shard(args.out, shots(files, args.n, args.seed, folder, args.user))} screens"


def _held_out(args: argparse.Namespace) -> str:
    folder = Path(__file__).parents[4] / "tests/data/screens"
    records = json.loads((folder / "screens.json").read_text())
    screens = (((folder / record["file"]).read_bytes(), record) for record in records)
    return f"{write_shard(args.out, screens)} screens"


def main() -> None:
    parser = argparse.ArgumentParser(prog="screens", description=__doc__)
    jobs = parser.add_subparsers(dest="job", required=True)
    wanted = {
        "assets": (_assets, "pack icons, fonts and strings for the drawer", ("npm", "sources")),
        "pages": (_pages, "render pages written with npm's CSS kits", ("npm", "pack", "n")),
        "documentation": (_documentation, "render HTML documentation", ("folders", "n")),
        "programs": (_programs, "capture Debian's desktop programs; n is sessions of six programs", ("files", "n")),
        "held-out": (_held_out, "pack the held-out screens of tests/data/screens", ()),
        "qt": (_qt, "render PySide6 windows", ("pack", "n")),
    }
    for name, (run, text, options) in wanted.items():
        job = jobs.add_parser(name, help=text)
        job.set_defaults(run=run)
        job.add_argument("out", type=Path)
        if "npm" in options:
            job.add_argument("--npm", type=Path, required=True, help="node_modules with icon sets and CSS kits")
        if "sources" in options:
            job.add_argument("--sources", type=Path, required=True, help="folder of Debian source archives")
            job.add_argument("--tips", type=Path, nargs="*", default=[], help="folders of wheels or extracted packages")
            job.add_argument("--root", type=Path, default=Path("/"), help="where the theme and font packages lie")
        if "pack" in options:
            job.add_argument("--pack", type=Path, required=True, help="what `assets` made")
        if "folders" in options:
            job.add_argument("folders", type=Path, nargs="+", help="manuals, each a folder of HTML")
        if "files" in options:
            for kind in ("text", "picture", "document"):
                job.add_argument(f"--{kind}", type=Path, required=True, help=f"a {kind} for the programs to open")
            job.add_argument("--user", help="account to run them as, when this runs as root")
        if "n" in options:
            job.add_argument("--n", type=int, default=250, help="how many screens")
            job.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(args.run(args))


if __name__ == "__main__":
    main()
