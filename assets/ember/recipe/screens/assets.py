"""Makes `screens.pack`: everything the drawer needs (icons, subset fonts, interface strings) in one file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from fontTools import subset
from fontTools.ttLib import TTFont

from . import icon_sets, iconify, icons, strings
from .pack import write_pack

FONTS = {
    "sans": [
        "Arimo-Regular",
        "Arimo-Bold",
        "Carlito-Regular",
        "Carlito-Bold",
        "Cantarell-Regular",
        "Cantarell-Bold",
        "DejaVuSans",
        "DejaVuSans-Bold",
        "DejaVuSansCondensed",
        "Inter-Regular",
        "Inter-SemiBold",
        "Lato-Regular",
        "Lato-Bold",
        "NotoSans-Regular",
        "NotoSans-Bold",
        "OpenSans-Regular",
        "OpenSans-Semibold",
        "Roboto-Regular",
        "Roboto-Medium",
        "RobotoCondensed-Regular",
        "Quicksand-Medium",
        "NimbusSans-Regular",
        "NimbusSans-Bold",
        "Comfortaa-Regular",
    ],
    "serif": ["Tinos-Regular", "Caladea-Regular", "DejaVuSerif", "NotoSerif-Regular", "C059-Roman"],
    "mono": ["DejaVuSansMono", "Hack-Regular", "FiraCode-Regular", "Cousine-Regular", "NotoSansMono-Regular"],
}
_CHARACTERS = [
    *range(0x20, 0x7F),
    *range(0xA0, 0x180),
    *range(0x2010, 0x2027),
    0x2190,
    0x2191,
    0x2192,
    0x2193,
    0x20AC,
    0x2318,
    0x21E7,
    0x25B8,
    0x25BE,
]


def _subset_font(path: Path) -> bytes:
    options = subset.Options(layout_features=["kern"], hinting=True, notdef_outline=True)
    font = TTFont(path, lazy=True)
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=_CHARACTERS)
    cutter.subset(font)
    out = io.BytesIO()
    font.save(out)
    return out.getvalue()


def make(
    out: Path,
    npm: Path,
    sources: list[Path],
    tips: list[Path],
    share: Path = Path("/usr/share"),
    office: Path = Path("/usr/lib/libreoffice/share"),
) -> str:
    """Collect icons, fonts and strings into `out`; returns a table of the icon sets."""
    blobs: list[bytes] = []
    concepts = icons.Concepts()
    every = list(icon_sets.npm_icons(npm, concepts)) + list(iconify.iconify_icons(npm, concepts))
    every += icon_sets.office_icons(office, concepts)
    mime = icon_sets.mime_names(share / "mime/packages/freedesktop.org.xml")
    for theme in icon_sets.THEMES:
        every += icon_sets.theme_icons(share / "icons", theme, concepts, mime)
    said = strings.desktop_entries(share / "applications")
    every = icons.trim(every)
    for icon in every:
        if icon.kind == "app" and icon.concept is None and (entry := said.get(icon.names[0].replace(" ", "-"))):
            icon.names = [entry["Name"], icon.names[0]]
            icon.synonyms += [entry["GenericName"]] if "GenericName" in entry else []
            icon.functions += [entry["Comment"]] if "Comment" in entry else []
    index: dict[str, Any] = {
        "icons": icons.collect(every, blobs),
        "strings": strings.collect(sources, share / "dict/words", tips),
        "fonts": {},
    }
    files = {path.stem: path for path in (share / "fonts").rglob("*.[to]tf")}
    for style, names in FONTS.items():
        for name in names:
            if name in files:
                index["fonts"].setdefault(style, []).append([name, len(blobs)])
                blobs.append(_subset_font(files[name]))
    size = write_pack(out, index, blobs)
    counts = {key: len(value) for key, value in index["strings"].items()}
    return icons.listing(every) + f"{len(every)} icons, {counts}, {size / 1e6:.1f} MB\n"
