"""A pack for the drawer in miniature, shared by the tests of Ember's screens."""

from __future__ import annotations

import io

from PIL import Image, ImageDraw, ImageFont

from assets.ember.recipe.screens.pack import write_pack

NAMES = [
    "save",
    "print",
    "copy",
    "paste",
    "undo",
    "zoom in",
    "settings",
    "trash",
    "mail",
    "lock",
    "bell",
    "folder",
    "camera",
    "clock",
    "cloud",
]


def _icon(name: str, held: bool, blob: int, mono: bool) -> dict:
    return {
        "set": f"{'held' if held else 'known'}-{'mono' if mono else 'colour'}",
        "kind": "action",
        "mono": mono,
        "names": [name],
        "synonyms": [f"{name} sign"],
        "functions": [f"do what {name} does"],
        "asked": [f"carry out {name}"],
        "concept": name,
        "held": held,
        "blobs": {"48": blob},
    }


def make_pack(path):
    """A pack in miniature: fifteen meanings in four sets, one font, a few dozen strings."""
    blobs, icons = [], []
    for held in (False, True):
        for mono in (False, True):
            for i, name in enumerate(NAMES):
                image = Image.new("RGB" if mono else "RGBA", (48, 48))
                ImageDraw.Draw(image).ellipse(
                    (4, 4 + i, 44, 44), fill=(255, 255, 255) if mono else (200, 10 * i, 40, 255)
                )
                out = io.BytesIO()
                image.save(out, "WEBP", lossless=True)
                icons.append(_icon(f"{name} {'omega' if held else 'alpha'}", held, len(blobs), mono))
                blobs.append(out.getvalue())
    font = ImageFont.load_default(12).font_bytes
    fonts = {style: [[f"{style}-Regular", len(blobs)]] for style in ("sans", "serif", "mono")}
    words = [
        f"{a}{b}"
        for a in ("river", "stone", "amber", "quiet", "maple", "ferry")
        for b in ("side", "ward", "well", "gate", "land")
    ]
    strings = {}
    for end, pool in (("", words[::2]), ("_heldout", words[1::2])):
        strings |= {
            f"short{end}": pool,
            f"words{end}": pool,
            f"long{end}": [f"The {w} is longer than a label" for w in pool],
        }
        strings[f"pairs{end}"] = [[f"Set {w}", [f"change the {w} of this"]] for w in pool]
    write_pack(path, {"icons": icons, "fonts": fonts, "strings": strings}, [*blobs, font])
    return path
