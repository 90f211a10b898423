"""Renders web pages in Chromium as training screens: pages written with npm's CSS kits, and HTML documentation."""

from __future__ import annotations

import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .browser import Browser
from .canvas import Kit as Assets
from .kits import choose, every_kit
from .pack import encode_picture
from .pages import SETTLE, Page
from .programs import shows

SIZES = [
    (800, 600),
    (1024, 768),
    (1280, 720),
    (1280, 800),
    (1366, 768),
    (1440, 900),
    (1600, 900),
    (1920, 1080),
    (2560, 1440),
]
_WEIGHTS = [1, 3, 2, 3, 2, 2, 1.5, 2, 0.3]
Screen = tuple[bytes, dict[str, Any]]


def _record(size: tuple[int, int], source: str, dark: bool, items: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "w": size[0],
        "h": size[1],
        "source": source,
        "theme": "dark" if dark else "light",
        "split": "train",
        "items": items,
    }


def _settings(rng: random.Random) -> tuple[int, int, float, bool]:
    width, height = rng.choices(SIZES, _WEIGHTS)[0]
    ratios = [1, 1, 1, 1.25, 1.5] if width < 1500 else [1, 1, 1.25, 1.5, 2]
    return width, height, rng.choice(ratios), rng.random() < 0.4


def kit_pages(browser: Browser, assets: Assets, modules: Path, n: int, seed: int) -> Iterator[Screen]:
    """`n` pages written with the kits below `modules` (node_modules)."""
    rng = random.Random(seed)
    kits = every_kit(modules)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        for _ in range(n):
            width, height, ratio, dark = _settings(rng)
            kit = choose(kits, rng)
            page = Page(kit, assets, rng, modules, dark)
            file.write_text(page.render())
            browser.show(width, height, ratio, dark)
            browser.open(f"file://{file}")
            browser.script(SETTLE)
            picture, elements = browser.look()
            pixels = np.asarray(picture)
            items = [item for item in page.placed(elements) if shows(pixels, item["box"])]
            if len(items) >= 4:
                record = _record(picture.size, f"page-{kit.name}", dark, items)
                record["absent"] = [query for item in page.words.absent for query in item["queries"]]
                yield encode_picture(picture, 74), record


def _queries(element: dict[str, Any]) -> tuple[str, list[dict[str, str]]]:
    """Kind and questions of an element of a page written by others, from its own words."""
    kinds = {
        "a": "link",
        "button": "button",
        "input": "field",
        "select": "combo",
        "textarea": "field",
        "summary": "item",
        "th": "header",
    }
    kind = {"tab": "tab", "menuitem": "menuitem", "checkbox": "check", "switch": "switch"}.get(
        element["role"], kinds.get(element["tag"], "heading")
    )
    if element["tag"] == "input" and element["type"] in ("checkbox", "radio"):
        kind = "check" if element["type"] == "checkbox" else "radio"
    elif element["tag"] == "input" and element["value"]:
        kind = "button"
    text = element["text"] or element["value"] or element["label"] or element["hint"]
    queries = []
    text = re.sub(r"[¶#\u200b]+$", "", text).strip()
    if 1 < len(text) <= 70:
        queries.append({"q": text, "by": "text"})
    for source in ("aria", "title", "alt"):
        said = element[source]
        if 2 < len(said) <= 80 and said.lower() != text.lower() and "://" not in said and said.isascii():
            function = source == "title" and text and len(said.split()) > 2
            queries += [{"q": said, "by": "function" if function else "name"}]
    return kind, queries


LARGEST = 500_000
"""Bytes of a page; what a browser reads for minutes is left out."""


def documentation(browser: Browser, pages: list[Path], n: int, seed: int, dark_share: float = 0.25) -> Iterator[Screen]:
    """`n` views of HTML documentation, less those with next to nothing on them; dark ones are inverted as night modes
    do. Raises ``RuntimeError`` when the browser fails several times one after the other."""
    rng = random.Random(seed)
    pages = [path for path in pages if path.stat().st_size < LARGEST]
    failures = 0
    for _ in range(n):
        path = rng.choice(pages)
        try:
            screen = _documentation_view(browser, rng, path, rng.random() < dark_share)
        except RuntimeError as error:
            failures += 1
            print(f"{path}: {error}", flush=True)
            if failures == 4:
                raise
            continue
        failures = 0
        if screen is not None:
            yield screen


def _documentation_view(browser: Browser, rng: random.Random, path: Path, dark: bool) -> Screen | None:
    width, height, ratio, _ = _settings(rng)
    browser.show(width, height, ratio, dark)
    browser.open(f"file://{path}")
    down = rng.choice([0, 0, rng.random()])
    browser.script(
        "window.scrollTo(0, arguments[0] * Math.max(0, document.documentElement.scrollHeight - innerHeight))", down
    )
    if dark:
        browser.script(
            "const root = document.documentElement.style;"
            "root.filter = 'invert(0.92) hue-rotate(180deg)'; root.background = '#111'"
        )
    picture, elements = browser.look()
    known = Counter(query["q"].lower() for element in elements for query in _queries(element)[1])
    items, pixels = [], np.asarray(picture)
    for element in elements:
        kind, queries = _queries(element)
        queries = [query for query in queries if known[query["q"].lower()] == 1]
        if queries and shows(pixels, element["box"]):
            items.append({"box": element["box"], "kind": kind, "queries": queries})
    if len(items) < 4:
        return None
    name = path.parts[path.parts.index("share") + 2] if "share" in path.parts[:-2] else path.stem
    return encode_picture(picture, 74), _record(picture.size, f"doc-{name}", dark, items)
