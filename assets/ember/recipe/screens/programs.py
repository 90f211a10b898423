"""Debian desktop programs as training screens: their windows and open menus under many themes, asked for automatically.

None of the programs of the held-out set is here, nor its icon themes. Questions come from the accessibility bus: the
visible label, the name of a bare icon, and the tooltip as what it is for.
"""

from __future__ import annotations

import io
import os
import random
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from .capture import Session
from .framing import asked, spoken
from .icons import Concepts
from .labels import WEB, Row, stock, taught
from .pack import encode_picture

# command, part of the window's title, keys that open menus (one screen each, besides the plain window)
PROGRAMS: dict[str, tuple[list[str], str, list[str]]] = {
    "gedit": (["gedit", "{text}"], "gedit", ["F10"]),
    "pluma": (["pluma", "{text}"], "Pluma", ["alt+f", "alt+e", "alt+v", "alt+s", "alt+t"]),
    "gimp": (["gimp", "--no-splash", "{picture}"], "GIMP", ["alt+f", "alt+i", "alt+l", "alt+c", "alt+t"]),
    "gnumeric": (["gnumeric"], "Gnumeric", ["alt+f", "alt+i", "alt+o", "alt+d"]),
    "meld": (["meld", "{text}", "{text}"], "Meld", []),
    "evince": (["evince", "{document}"], "{document}", []),
    "eog": (["eog", "{picture}"], "{picture}", []),
    "eom": (["eom", "{picture}"], "{picture}", ["alt+e", "alt+v", "alt+i"]),
    "file-roller": (["file-roller"], "Archive", []),
    "gnome-calculator": (["gnome-calculator"], "Calculator", []),
    "gnome-text-editor": (["gnome-text-editor", "{text}"], "Text Editor", []),
    "simple-scan": (["simple-scan"], "Scan", []),
    "deluge": (["deluge-gtk"], "Deluge", ["alt+f", "alt+e", "alt+v"]),
    "parole": (["parole"], "Parole", ["alt+m", "alt+p", "alt+s"]),
    "pidgin": (["pidgin"], "Pidgin", []),
    "font-manager": (["font-manager"], "Font", []),
    "mate-system-monitor": (["mate-system-monitor"], "System Monitor", ["alt+f", "alt+v"]),
    "caja": (["caja", "--no-desktop", "/usr/share"], "share", ["alt+f", "alt+e", "alt+v", "alt+g"]),
    "gnome-system-monitor": (["gnome-system-monitor"], "System Monitor", []),
    "gucharmap": (["gucharmap"], "Character Map", ["alt+f", "alt+v", "alt+s"]),
    "hexchat": (["hexchat"], "HexChat", []),
    "remmina": (["remmina"], "Remmina", []),
    "gthumb": (["gthumb", "{picture}"], "{picture}", []),
    "easytag": (["easytag"], "EasyTAG", ["alt+f", "alt+e", "alt+v"]),
    "bluefish": (["bluefish", "{text}"], "Bluefish", ["alt+f", "alt+e", "alt+v", "alt+d"]),
    "glade": (["glade"], "Glade", []),
    "viewnior": (["viewnior", "{picture}"], "{picture}", ["alt+f", "alt+e", "alt+v"]),
    "gpicview": (["gpicview", "{picture}"], "{picture}", []),
    "homebank": (["homebank"], "HomeBank", ["alt+f", "alt+m", "alt+t"]),
    "liferea": (["liferea"], "Liferea", []),
    "xfburn": (["xfburn"], "Xfburn", ["alt+f", "alt+e", "alt+v"]),
    "brasero": (["brasero"], "Brasero", ["alt+p", "alt+v", "alt+t"]),
    "gcolor3": (["gcolor3"], "Color", []),
    "lxappearance": (["lxappearance"], "Look and Feel", []),
    "lxterminal": (["lxterminal"], "LXTerminal", ["alt+f", "alt+e", "alt+t"]),
    "d-feet": (["d-feet"], "D-Feet", []),
    "devhelp": (["devhelp"], "Devhelp", []),
    "gnome-clocks": (["gnome-clocks"], "Clocks", []),
    "smplayer": (["smplayer"], "SMPlayer", ["alt+o", "alt+p", "alt+v"]),
    "qbittorrent": (["qbittorrent"], "qBittorrent", ["alt+f", "alt+e", "alt+v"]),
    "quodlibet": (["quodlibet"], "Quod Libet", ["alt+f", "alt+v"]),
}
ICONS = ["Adwaita", "Papirus", "breeze", "Tango", "mate", "gnome", "nuoveXT2", "Moka", "Paper", "oxygen"]
THEMES = [
    ("Adwaita", False),
    ("Adwaita", True),
    ("Arc", False),
    ("Arc-Dark", True),
    ("Greybird", False),
    ("Adwaita-dark", True),
]
_KINDS = {
    "push button": "button",
    "toggle button": "button",
    "check box": "check",
    "radio button": "radio",
    "menu": "menu",
    "menu item": "menuitem",
    "check menu item": "menuitem",
    "radio menu item": "menuitem",
    "page tab": "tab",
    "combo box": "combo",
    "entry": "field",
    "spin button": "field",
    "table column header": "header",
    "table cell": "item",
    "tree item": "item",
    "list item": "item",
    "link": "link",
    "icon": "item",
}
_LETTERS = {
    "button": "b",
    "icon": "bm",
    "menuitem": "m",
    "menu": "n",
    "check": "c",
    "radio": "c",
    "tab": "t",
    "item": "lt",
    "link": "l",
    "combo": "f",
    "field": "f",
    "header": "h",
}
"""Kinds of element in the letters of `written/labels`."""
_ALIKE = dict.fromkeys(("b", "bm", "m", "c", "t", "lt", "l"), "bmclt")
"""Letters of elements that carry one another's labels with the same meaning: commands and places, but not fields,
headings of columns and menus."""
_SEVERAL = frozenset(
    re.findall(
        r"\w[\w ]+",
        "alignment, attach, billing, certificates, checklist, collapse all, comment, dependencies, desktop, "
        "diff, documents, expand all, footnotes, gradebook, guides, home, images, list view, location, marks, "
        "merge, network, next, next chapter, nickname, parental controls, present now, preview, previous, "
        "problems, rate, read receipts, recalculate, resize, security, snippets, start slideshow, subtitles, "
        "table of contents, tables, throttling, title, up, watch, world",
    )
)
"""Names that mean one thing here and another there."""


def items_of(elements: list[dict[str, Any]], width: int, height: int, scale: int = 1) -> list[dict[str, Any]]:
    """Items with automatic questions for what the accessibility bus reported; repeated words are left out.

    A button too narrow for its name, or about square and small, shows only an icon.
    """
    known = Counter(e["name"].strip().lower() for e in elements if e["role"] in _KINDS)
    items = []
    for element in elements:
        kind, name = _KINDS.get(element["role"]), element["name"].split("   ")[0].strip()
        x0, y0, x1, y1 = element["box"]
        if (
            kind is None
            or not name
            or len(name) > 60
            or known[element["name"].strip().lower()] > 1
            or not name.isascii()
        ):
            continue
        if x0 < 0 or y0 < 0 or x1 > width or y1 > height or x1 - x0 > 0.9 * width or x1 - x0 < 6 or y1 - y0 < 6:
            continue
        wide, high = (x1 - x0) / scale, (y1 - y0) / scale
        bare = kind in ("button", "item") and element["role"] != "table cell"
        bare = bare and (wide < min(64, 5.2 * len(name) + 8) or (wide < 48 and wide < 1.4 * high))
        queries = [{"q": name, "by": "name" if bare else "text"}]
        if bare:
            kind = "icon"
            queries.append({"q": f"{name.lower()} icon", "by": "name"})
        said = element["description"].split("   ")[0].strip().rstrip(".")
        if len(said.split()) >= 3 and said.lower() != name.lower() and len(said) < 110 and said.isascii():
            queries.append({"q": said[:1].lower() + said[1:], "by": "function"})
        items.append({"box": [x0, y0, x1, y1], "kind": kind, "queries": queries})
    menu = [item["box"] for item in items if item["kind"] == "menuitem"]
    seen = [item for item in items if item["kind"] == "menuitem" or not any(_meet(item["box"], box) for box in menu)]
    return with_functions(seen)


@lru_cache
def _named() -> dict[str, tuple[Row, ...]]:
    """Lower-case name -> the rows of `written/labels` that are spelled so."""
    found: dict[str, dict[Row, None]] = {}
    for row in stock().rows:
        for name in row.spellings:
            found.setdefault(_plain(name), {})[row] = None
    return {name: tuple(rows) for name, rows in found.items()}


@lru_cache
def _icon_names() -> dict[str, tuple[str, ...]]:
    """Lower-case name -> what icons of `concepts.txt` are for."""
    found: dict[str, tuple[str, ...]] = {}
    for concept in Concepts().by_name.values():
        for name in concept.names:
            found.setdefault(name.lower(), tuple(concept.functions[:-1]))
    return found


def _plain(name: str) -> str:
    return name.lower().rstrip(".… ")


def _rows_for(name: str, kind: str) -> list[Row]:
    """The rows that say what such an element of a desktop program is for. A name of `_SEVERAL` means what it does on
    just this kind of element, on the desktop rather than the web; several rows are left where that does not tell."""
    letters = _LETTERS.get(kind, "")
    rows = [row for row in _named().get(name, ()) if not row.kinds.isdisjoint(_ALIKE.get(letters, letters))]
    if name in _SEVERAL:
        rows = [row for row in rows if not row.kinds.isdisjoint(letters)]
        rows = [row for row in rows if row.file != WEB] or rows
    return rows


@lru_cache(maxsize=4096)
def functions_of(name: str, kind: str) -> tuple[str, ...]:
    """What an element is for by its lower-case name: the phrases of all its rows joined, since most names mean the same
    everywhere; none where it may mean several things. Icons that no row tells are looked up among the icons."""
    rows = _rows_for(name, kind)
    if rows and not (name in _SEVERAL and len(rows) > 1):
        phrases = (phrase for row in rows for phrase in taught(row.spellings, row.phrases, held=False))
        return tuple(dict.fromkeys(phrases))
    return _icon_names().get(name, ()) if kind == "icon" or name not in _named() else ()


def unclear() -> list[tuple[str, str]]:
    """(name, kind) that written labels say nothing about, because they mean several things there."""
    return [(name, kind) for name in sorted(_SEVERAL) for kind in _LETTERS if len(_rows_for(name, kind)) > 1]


def with_functions(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items with what they are for, where their names are known and nothing else on the screen does the same; half
    of the phrases in a sentence."""
    names = [_plain(item["queries"][0]["q"]) for item in items]
    meant = [functions_of(name, item["kind"]) for name, item in zip(names, items, strict=True)]
    uses = Counter(phrase for phrases in meant for phrase in phrases)
    rng = random.Random("|".join(names))
    for item, phrases in zip(items, meant, strict=True):
        for phrase in phrases:
            if uses[phrase] == 1:
                said = phrase[1:] if phrase.startswith("=") else spoken(phrase)
                framed = not phrase.startswith("=") and rng.random() < 0.5
                item["queries"].append({"q": asked(said, rng) if framed else said, "by": "function"})
    return items


def _meet(a: list[float], b: list[float]) -> bool:
    """Whether two boxes overlap: what lies behind an open menu is on the bus but not on the screen."""
    return min(a[2], b[2]) > max(a[0], b[0]) + 1 and min(a[3], b[3]) > max(a[1], b[1]) + 1


def shows(picture: np.ndarray, box: list[float]) -> bool:
    """False where the picture is flat: the bus also lists windows that are not on the screen."""
    x0, y0, x1, y1 = (int(v) for v in box)
    return int(np.ptp(picture[y0 : y1 + 1, x0 : x1 + 1].reshape(-1, 3), axis=0).max()) > 24


def shots(
    files: dict[str, str], rounds: int, seed: int, folder: Path, user: str | None = None
) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Screens of all programs in `rounds` random settings. `files`: a text, picture and document to open."""
    rng = random.Random(seed)
    doubtful = ", ".join(f"{name} ({kind})" for name, kind in unclear())
    print(f"not asked for by what written labels say, since they mean several things: {doubtful}")
    for _ in range(rounds):
        width, height = rng.choice([(1024, 768), (1280, 800), (1366, 768), (1600, 900), (1920, 1080)])
        theme, dark = rng.choice(THEMES)
        scale = 2 if width >= 1600 and rng.random() < 0.3 else 1
        font = (
            f"{rng.choice(['DejaVu Sans', 'Cantarell', 'Noto Sans', 'Open Sans', 'Inter'])} {rng.choice([9, 10, 11])}"
        )
        names = rng.sample(sorted(PROGRAMS), 6)
        decoration = rng.choice(["Default", "Greybird", "Arc", "Default-hdpi"] if scale == 1 else ["Default-xhdpi"])
        with Session(
            width, height, theme, rng.choice(ICONS), dark, scale, decoration=decoration, font=font, user=user
        ) as session:
            for name in names:
                command, title, menus = PROGRAMS[name]
                program = session.start(*(word.format(**files) for word in command))
                try:
                    yield from _views(
                        session,
                        name,
                        Path(title.format(**files)).stem,
                        rng.sample(menus, min(2, len(menus))),
                        rng,
                        folder,
                        dark,
                    )
                except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                    print(f"{name}: {error}")
                finally:
                    try:
                        os.killpg(program.pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                    time.sleep(0.4)


def _views(
    session: Session, name: str, title: str, menus: list[str], rng: random.Random, folder: Path, dark: bool
) -> Iterator[tuple[bytes, dict[str, Any]]]:
    window = session.wait_for_window(title, 25)
    if window is None:
        raise RuntimeError("no window appeared")
    time.sleep(2)
    if rng.random() < 0.7:
        session.place(window, 0, 0, session.width - 8, session.height - 30 * session.scale)
    else:
        w, h = int(session.width * rng.uniform(0.6, 0.9)), int(session.height * rng.uniform(0.6, 0.85))
        session.place(window, rng.randint(0, session.width - w), rng.randint(0, max(1, session.height - h - 40)), w, h)
    session.tool("mousemove", str(session.width - 2), str(session.height - 2))
    time.sleep(1)
    for keys in ["", *menus]:
        if keys:
            session.keys("Escape", keys)
            time.sleep(0.7)
        file = folder / "shot.png"
        elements = session.shoot(file)
        with Image.open(io.BytesIO(file.read_bytes())) as picture:
            image = picture.convert("RGB")
        items = [
            item
            for item in items_of(elements, session.width, session.height, session.scale)
            if shows(np.asarray(image), item["box"])
        ]
        if len(items) >= 4:
            record = {
                "w": image.width,
                "h": image.height,
                "source": f"program-{name}",
                "theme": "dark" if dark else "light",
                "split": "train",
                "items": items,
            }
            yield encode_picture(image, 80), record
