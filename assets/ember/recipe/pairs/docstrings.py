"""What functions, classes and members of well documented programming interfaces do, and their names.

Sources, in the root folder: wheels of django, networkx, numpy, pandas, scikit-learn, scipy, werkzeug (BSD-3-Clause) and
sqlalchemy (MIT), and beside them the standard library of the Python that runs this (PSF-2.0); the packages of npm
in TYPES below ``node_modules`` (MIT; playwright-core Apache-2.0).
"""

from __future__ import annotations

import ast
import random
import re
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path

from .names import distinct, first_sentence, in_words, spelled
from .sentences import Pair, opened
from .services import members, some

WHEELS = ("django", "networkx", "numpy", "pandas", "scikit_learn", "scipy", "sqlalchemy", "werkzeug")
TYPES = (
    "@types/node",
    "@types/vscode",
    "discord.js",
    "electron",
    "playwright-core",
    "stripe",
    "typeorm",
    "vite",
    "webpack",
)
_ASIDE = re.compile(r"(?:^|/)(?:tests?|testing|idlelib|lib2to3|turtledemo|_\w+|conftest\.py|test_\w+\.py)(?:/|$|\.py$)")
_MEMBER = re.compile(
    r"/\*\*((?:(?!\*/).)*?)\*/\s*(?:(?:export|declare|static|readonly|abstract|function|class|interface|const|enum"
    r"|type) )*"
    r"['\"]?([A-Za-z]\w+)['\"]?\s*(?=[?:(<{=]|extends|,|$)",
    re.DOTALL | re.MULTILINE,
)


def of_source(source: str) -> Iterator[Pair]:
    """(first sentence of its docstring, name) of the public functions and classes of a module."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # old modules have escapes that Python frowns at
        tree = ast.parse(source)
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        name, said = node.name, (ast.get_docstring(node) or "").split("\n\n")[0]
        if len(in_words(name).split()) > 1:
            yield (
                first_sentence(re.sub(rf"^{re.escape(name)}\([^)]*\)\s*(?:->.*?\n|[-:])?\s*", "", said)),
                spelled(name),
            )


def python(root: Path) -> Iterator[Pair]:
    """Functions and classes of the standard library and of large packages."""

    def sources() -> Iterator[str]:
        if not any(root.glob("*.whl")):  # another root, for which the standard library was not asked for
            return
        library = Path(sysconfig.get_paths()["stdlib"])
        for path in sorted(library.rglob("*.py")):
            inside = path.relative_to(library).as_posix()
            if not inside.startswith(("site-packages", "dist-packages")) and not _ASIDE.search(inside):
                yield opened(path)
        for wheel in WHEELS:
            for name, content in members(root, wheel, r"\.py$"):
                if not _ASIDE.search(name):
                    yield content.decode("utf-8", "replace")

    yield from distinct(pair for source in sources() for pair in of_source(source))


def of_types(source: str) -> Iterator[Pair]:
    """(first sentence of its comment, name) of what a .d.ts file declares."""
    for comment, name in _MEMBER.findall(source):
        said = re.sub(r"^[ \t]*\*[ \t]?", "", comment, flags=re.MULTILINE).strip()
        said = re.sub(
            r"\{@link(?:code)? ([^}|\s]+)[^}]*\}", r"\1", re.split(r"\n\s*\n|^\s*@", said, flags=re.MULTILINE)[0]
        )
        if len(in_words(name).split()) > 1:
            yield first_sentence(said), spelled(name)


def types(root: Path) -> Iterator[Pair]:
    """Members of the types of npm's packages, at most 2,500 of a package."""
    rng = random.Random(4)
    for package in TYPES:
        folder = root / "node_modules" / package
        paths = [p for p in sorted(folder.rglob("*.d.ts")) if "node_modules" not in p.relative_to(folder).parts]
        yield from some(rng, distinct(pair for path in paths for pair in of_types(opened(path))), 2500)
