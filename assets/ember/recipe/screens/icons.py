"""Icons with their names, synonyms and functions, and how they are packed.

Every icon gets a name people would say, synonyms (aliases a theme links to the same picture, the sets' own tags) and,
through `concepts.txt`, phrases for what it does. Some sets are held out: they are drawn on held-out screens only.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

HELD_OUT = frozenset(
    ["elementary", "elementary-xfce", "Numix", "Numix-Circle", "heroicons", "carbon", "eva", "iconoir", "karasa_jaga"]
)
_CONCEPTS_FILE = Path(__file__).with_name("concepts.txt")
MONO_SIZE = 48  # a multiple of 16 and 24, so that box reduction gives what a renderer would draw at those sizes
_STYLE_WORDS = frozenset(
    [
        "outline",
        "filled",
        "fill",
        "sharp",
        "regular",
        "solid",
        "rounded",
        "line",
        "symbolic",
        "rtl",
        "ltr",
        "gtk",
        "stock",
        "light",
        "bold",
        "alt",
        "variant",
        "tool",
        "lc",
        "sc",
        "office",
    ]
)


@dataclass
class Icon:
    """One icon. `pictures`: edge in pixels → WebP bytes (mono ones carry only alpha). `asked`: held-out phrases."""

    set: str
    name: str
    kind: str
    mono: bool
    names: list[str]
    synonyms: list[str]
    functions: list[str]
    asked: list[str]
    concept: str | None
    pictures: dict[int, bytes] = field(default_factory=dict)


@dataclass
class Concept:
    """What an icon means: names people use, phrases for its function; the last phrase is for held-out screens."""

    key: str
    names: list[str]
    functions: list[str]


class Concepts:
    """`concepts.txt` as a table from icon names (any set's spelling) to meanings."""

    def __init__(self, path: Path = _CONCEPTS_FILE) -> None:
        self.by_name: dict[str, Concept] = {}
        for line in path.read_text().splitlines():
            if line and not line.startswith("#"):
                spellings, names, functions = (part.strip() for part in line.split("|"))
                keys = spellings.lower().replace("_", "-").split()
                concept = Concept(keys[0], _parts(names), _parts(functions))
                for key in keys:
                    self.by_name.setdefault(key, concept)

    def find(self, spellings: list[str]) -> Concept | None:
        """The meaning of the first spelling that is known, tried whole and then without style words."""
        for spelling in spellings:
            key = re.sub(r"[_\s]+", "-", spelling.lower())
            bare = "-".join(word for word in key.split("-") if word not in _STYLE_WORDS and not word.isdigit())
            for form in (key, key.removesuffix("-symbolic"), key.removesuffix("-symbolic-rtl"), bare):
                if form in self.by_name:
                    return self.by_name[form]
        return None


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(";") if part.strip()]


def spoken(name: str) -> str:
    """An icon's file name as words: `object-rotate-left-symbolic` → `object rotate left`."""
    words = [word for word in re.split(r"[-_\s+.]+", name) if word]
    kept = [word for word in words if word.lower() not in _STYLE_WORDS and not word.isdigit()]
    return " ".join(kept or words)


def render(svg: bytes, size: int) -> Image.Image | None:
    """An SVG drawn into size × size RGBA; None when the renderer refuses it."""
    import resvg_py

    try:
        text = svg.decode("utf-8", "replace").replace("currentColor", "#000000")
        image = Image.open(io.BytesIO(resvg_py.svg_to_bytes(svg_string=text, width=size, height=size))).convert("RGBA")
    except (ValueError, OSError):
        return None
    if image.size != (size, size):  # a picture that is not square keeps its proportions
        square = Image.new("RGBA", (size, size))
        image.thumbnail((size, size), Image.Resampling.LANCZOS)
        square.paste(image, ((size - image.width) // 2, (size - image.height) // 2))
        image = square
    return image


def is_mono(image: Image.Image) -> bool:
    """True when every visible pixel has one grey-ish colour: such icons are recoloured to the theme when drawn."""
    pixels = np.asarray(image).reshape(-1, 4)
    seen = pixels[pixels[:, 3] > 128][:, :3].astype(int)
    return len(seen) > 0 and int(np.ptp(seen, axis=0).max()) <= 12 and int(np.ptp(seen[0])) <= 24


def encode(image: Image.Image, mono: bool) -> bytes:
    """WebP bytes: 16 levels of alpha for mono icons (as a grey picture), lossless or lossy RGBA for the others."""
    out = io.BytesIO()
    if mono:
        levels = ((np.asarray(image)[:, :, 3].astype(int) + 8) // 17 * 17).clip(0, 255).astype(np.uint8)
        Image.fromarray(levels).convert("RGB").save(out, "WEBP", lossless=True, quality=80, method=4)
    elif image.width <= 24:
        image.save(out, "WEBP", lossless=True, quality=60, method=4)
    else:
        image.save(out, "WEBP", quality=82, alpha_quality=80, method=4)
    return out.getvalue()


def make_icon(
    concepts: Concepts, set_: str, kind: str, spellings: list[str], tags: list[str], label: str = "", does: str = ""
) -> Icon:
    """An icon without pictures. `label`/`does`: the set's own words for it, when it has them."""
    concept = concepts.find(spellings)
    first = label or spoken(spellings[0])
    names = list(dict.fromkeys([*(concept.names if concept else []), first]))
    synonyms = [spoken(s) for s in spellings[1:6]] + tags
    plain = [
        s.lower() for s in synonyms if s.isascii() and 2 < len(s) < 28 and s.lower() not in {n.lower() for n in names}
    ]
    functions = list(concept.functions[:-1]) if concept else []
    asked = list(concept.functions[-1:]) if concept else []
    if does:
        functions.append(does)
    if concept and len(concept.functions) == 1:
        functions, asked = [*concept.functions, *functions], []
    return Icon(
        set_,
        spellings[0],
        kind,
        False,
        names,
        list(dict.fromkeys(plain))[:8],
        functions,
        asked,
        concept.key if concept else None,
    )


def trim(icons: list[Icon], most: int = 500) -> list[Icon]:
    """Of every coloured set keep the icons with a meaning or for actions, and at most `most` of the rest (evenly)."""
    kept: list[Icon] = []
    rest: dict[str, list[Icon]] = {}
    for icon in icons:
        if icon.mono or icon.concept or (icon.kind == "action" and icon.set not in HELD_OUT):
            kept.append(icon)
        else:
            rest.setdefault(icon.set, []).append(icon)
    for set_, others in rest.items():
        step = max(1, -(-len(others) // (most if set_ not in HELD_OUT else most // 3)))
        kept += others[::step]
    return kept


def collect(icons: list[Icon], blobs: list[bytes]) -> list[dict[str, Any]]:
    """Index entries of icons for a pack; their pictures are appended to `blobs`."""
    index = []
    for icon in icons:
        first = len(blobs)
        sizes = sorted(icon.pictures)
        blobs += [icon.pictures[size] for size in sizes]
        index.append(
            {
                "set": icon.set,
                "kind": icon.kind,
                "mono": icon.mono,
                "names": icon.names,
                "synonyms": icon.synonyms,
                "functions": icon.functions,
                "asked": icon.asked,
                "concept": icon.concept,
                "held": icon.set in HELD_OUT,
                "blobs": dict(zip(map(str, sizes), range(first, first + len(sizes)), strict=True)),
            }
        )
    return index


def listing(icons: list[Icon]) -> str:
    """A table (CSV) of sets: icons, of these with a meaning, bytes."""
    out = io.StringIO()
    rows: dict[str, list[int]] = {}
    for icon in icons:
        row = rows.setdefault(icon.set, [0, 0, 0])
        row[0] += 1
        row[1] += icon.concept is not None
        row[2] += sum(map(len, icon.pictures.values()))
    csv.writer(out).writerows([["set", "icons", "with meaning", "bytes"], *([k, *v] for k, v in sorted(rows.items()))])
    return out.getvalue()
