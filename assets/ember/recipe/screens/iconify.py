"""Further icon sets from npm's `@iconify-json` packages, which hold whole sets as JSON with aliases and sizes.

Most are drawn in one colour. Of every set the icons with a meaning are kept, and some hundreds of the others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .icons import MONO_SIZE, Concepts, Icon, encode, is_mono, make_icon, render

_NAMES = """
akar-icons ant-design basil bytesize charm ci cil circum clarity dashicons entypo ep f7 fe flat-color-icons fluent-color
fluent-mdl2 gg grommet-icons hugeicons icomoon-free icon-park icon-park-outline icons8 ix jam lets-icons lsicon mage
majesticons material-icon-theme mi mingcute mynaui ooui pajamas pixelarticons prime proicons qlementine-icons
radix-icons solar streamline system-uicons tdesign teenyicons typcn uil vaadin zondicons
"""
SETS = _NAMES.split()
_FILE_SETS = frozenset(["material-icon-theme"])
_COLOURED = frozenset(["flat-color-icons", "fluent-color", "icon-park", "material-icon-theme"])
_STYLE = re.compile(
    r"(-(outlined?|filled?|fill|solid|line|linear|bold|broken|light|twotone|duotone|remix|flat|rounded|sharp|alt|f))+$"
)
_OTHERS = 600  # icons without a meaning that are kept of one set


def _svg(entry: dict[str, Any], width: float, height: float) -> bytes:
    left, top = entry.get("left", 0), entry.get("top", 0)
    width, height = entry.get("width", width), entry.get("height", height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="{left} {top} {width} {height}" width="{width}" height="{height}">{entry["body"]}</svg>'
    ).encode()


def _spellings(name: str, aliases: list[str]) -> list[str]:
    """The icon's name without its style endings and pixel size, then its aliases likewise."""
    plain = [_STYLE.sub("", re.sub(r"-(12|14|15|16|20|24|28|32|48)$", "", said)) for said in (name, *aliases)]
    return list(dict.fromkeys(said for said in plain if said))


def iconify_icons(modules: Path, concepts: Concepts) -> Iterator[Icon]:
    """The icons of every set of `SETS` that is installed below `modules`."""
    for name in SETS:
        file = modules / "@iconify-json" / name / "icons.json"
        if file.exists():
            yield from _set(name, json.loads(file.read_text()), concepts)


def _set(name: str, table: dict[str, Any], concepts: Concepts) -> Iterator[Icon]:
    aliases: dict[str, list[str]] = {}
    for alias, entry in table.get("aliases", {}).items():
        if set(entry) == {"parent"}:  # the same picture under another name; turned and mirrored ones are not
            aliases.setdefault(entry["parent"], []).append(alias)
    kind = "file" if name in _FILE_SETS else "action"
    shown = {key: entry for key, entry in table["icons"].items() if not entry.get("hidden")}
    made = [(make_icon(concepts, name, kind, _spellings(key, aliases.get(key, [])), []), key) for key in shown]
    others = [key for icon, key in made if icon.concept is None]
    kept = set(others[:: max(1, -(-len(others) // _OTHERS))])
    for icon, key in made:
        if icon.concept is None and key not in kept:
            continue
        image = render(_svg(shown[key], table.get("width", 16), table.get("height", 16)), MONO_SIZE)
        if image is None or image.getchannel("A").getextrema()[1] < 128:
            continue
        icon.mono = name not in _COLOURED
        if not icon.mono and is_mono(image):
            continue  # one colour of a coloured set cannot follow a dark theme and may vanish on it
        icon.pictures[MONO_SIZE] = encode(image, icon.mono)
        yield icon
