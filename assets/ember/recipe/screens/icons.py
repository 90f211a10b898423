"""Icon sets under their standard names: freedesktop themes from Debian packages and SVG sets from npm packages.

Every icon gets a name people would say, synonyms (aliases a theme links to the same picture, the sets' own tags) and,
through `concepts.txt`, phrases for what it does. Some sets are held out: they are drawn on held-out screens only.
"""

from __future__ import annotations

import configparser
import csv
import io
import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import resvg_py
from PIL import Image

THEMES = [
    "Adwaita",
    "breeze",
    "Papirus",
    "Tango",
    "oxygen",
    "gnome",
    "mate",
    "Faenza",
    "nuoveXT2",
    "Moka",
    "Faba",
    "Paper",
    "suru",
    "bloom",
    "elementary",
    "elementary-xfce",
    "Numix",
    "Numix-Circle",
]
HELD_OUT = frozenset(
    ["elementary", "elementary-xfce", "Numix", "Numix-Circle", "heroicons", "carbon", "eva", "iconoir", "karasa_jaga"]
)
OFFICE_STYLES = ["colibre", "breeze", "sukapura", "karasa_jaga", "sifr"]
_CONCEPTS_FILE = Path(__file__).with_name("concepts.txt")
MONO_SIZE = 48  # a multiple of 16 and 24, so that box reduction gives what a renderer would draw at those sizes
_CONTEXTS = {
    "actions": "action",
    "places": "place",
    "devices": "device",
    "status": "status",
    "categories": "category",
    "mimetypes": "file",
    "applications": "app",
    "apps": "app",
    "preferences": "category",
    "emblems": "emblem",
}
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


def _is_mono(image: Image.Image) -> bool:
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


def _icon(
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


def theme_icons(root: Path, theme: str, concepts: Concepts, file_names: dict[str, str]) -> Iterator[Icon]:
    """The icons of one freedesktop theme: each distinct picture once, under all the names that link to it."""
    index = configparser.ConfigParser(strict=False, interpolation=None)
    index.optionxform = str  # type: ignore[assignment, method-assign]
    index.read(root / theme / "index.theme")
    main = index["Icon Theme"]
    folders = [
        f for key in ("Directories", "ScaledDirectories") for f in main.get(key, "").split(",") if f and f in index
    ]
    found: dict[str, dict[int, Path]] = {}
    kinds: dict[str, str] = {}
    for folder in folders:
        section = index[folder]
        kind = _CONTEXTS.get(section.get("Context", "").lower())
        if kind is None or int(section.get("Scale", "1")) > 1:
            continue
        size = 48 if section.get("Type", "").lower() == "scalable" else int(section.get("Size", "48"))
        for path in sorted((root / theme / folder).glob("*")):
            if path.suffix in (".svg", ".png") and path.exists():
                stem = path.stem.removesuffix(".symbolic")
                symbolic = "symbolic" in stem or "symbolic" in folder
                key = stem if stem.endswith("-symbolic") or not symbolic else f"{stem}-symbolic"
                found.setdefault(key, {}).setdefault(size, path)
                kinds.setdefault(key, kind)
    same: dict[Path, list[str]] = {}
    for key, files in found.items():  # names whose largest picture is one file are one icon
        best = files[max(files)] if max(files) <= 64 else files[min(files, key=lambda s: abs(s - 48))]
        same.setdefault(best.resolve(), []).append(key)
    for keys in same.values():
        keys.sort(key=lambda k: (concepts.find([k]) is None, len(k)))
        sizes: dict[int, Path] = {}
        for key in keys:
            for size, path in found[key].items():
                sizes.setdefault(size, path)
        kind = kinds[keys[0]]
        label = file_names.get(keys[0].removesuffix("-symbolic"), "") if kind == "file" else ""
        icon = _icon(concepts, theme.split("/", maxsplit=1)[0], kind, keys, [], label)
        if _draw(icon, sizes):
            yield icon


def _draw(icon: Icon, sizes: dict[int, Path]) -> bool:
    """Fill in the pictures from files by size: 48 px, and the hand-tuned 16 and 22–24 px ones where they differ."""
    large = min(sizes, key=lambda s: (abs(s - 48), -s))
    image = _load(sizes[large], MONO_SIZE)
    if image is None or image.getchannel("A").getextrema()[1] < 128:
        return False
    icon.mono = icon.name.endswith("symbolic") or _is_mono(image)
    if icon.mono:
        small = min(sizes)
        image = _load(sizes[small], MONO_SIZE) if sizes[small].suffix == ".svg" else image
        icon.pictures[MONO_SIZE] = encode(image or Image.new("RGBA", (1, 1)), True)
        return image is not None
    icon.pictures[48] = encode(image, False)
    for wanted, close in ((16, (16,)), (24, (24, 22))):
        size = next((s for s in close if s in sizes), None)
        if size is not None and icon.kind in ("action", "place", "status", "device"):
            tuned = _load(sizes[size], size)
            if tuned is not None:
                icon.pictures[wanted if size == 16 else size] = encode(tuned, False)
    return True


def _load(path: Path, size: int) -> Image.Image | None:
    try:
        if path.suffix == ".svg":
            return render(path.read_bytes(), size)
        image = Image.open(path).convert("RGBA")
        return image if image.width == size else image.resize((size, size), Image.Resampling.LANCZOS)
    except OSError:
        return None


def mime_names(packages: Path = Path("/usr/share/mime/packages/freedesktop.org.xml")) -> dict[str, str]:
    """Icon name of a file type → its English name (`application-pdf` → `PDF document`)."""
    if not packages.exists():
        return {}
    space = "{http://www.freedesktop.org/standards/shared-mime-info}"
    names = {}
    for entry in ElementTree.parse(packages).getroot().iter(f"{space}mime-type"):
        comment = next((c.text for c in entry.findall(f"{space}comment") if c.text and len(c.attrib) == 0), None)
        if comment:
            names[entry.attrib["type"].replace("/", "-")] = comment
    return names


def _svg(
    set_: str, folder: Path, strip: str = "", tags: dict[str, list[str]] | None = None, pick: str = r".*"
) -> Iterator[tuple[str, list[str], list[str], Path]]:
    """(set, spellings, tags, file) of one npm set's folder; `strip` removes style endings, `pick` filters stems."""
    for path in sorted(folder.glob("*.svg")):
        if re.fullmatch(pick, path.stem):
            stem = re.sub(strip, "", path.stem) if strip else path.stem
            yield set_, [stem], (tags or {}).get(path.stem) or (tags or {}).get(stem) or [], path


def _fontawesome_terms(path: Path) -> dict[str, list[str]]:
    """Search terms by icon from Font Awesome's icons.yml, whose two levels of lists need no YAML library."""
    terms: dict[str, list[str]] = {}
    name, inside = "", False
    for line in path.read_text().splitlines():
        if match := re.match(r"^'?([\w-]+)'?:\s*$", line):
            name, inside = match[1], False
        elif re.match(r"^    terms:", line):
            inside = True
        elif inside and (match := re.match(r"^      - '?(.+?)'?$", line)):
            terms.setdefault(name, []).append(match[1])
        elif not line.startswith("      "):
            inside = False
    return terms


def npm_icons(modules: Path, concepts: Concepts) -> Iterator[Icon]:
    """The mono icons of the npm sets with the sets' own aliases, tags and descriptions."""
    mdi = {entry["name"]: [*entry["aliases"]] for entry in json.loads((modules / "@mdi/svg/meta.json").read_text())}
    tabler = {
        k: [str(t) for t in v["tags"]]
        for k, v in json.loads((modules / "@tabler/icons/icons.json").read_text()).items()
    }
    lucide = json.loads((modules / "lucide-static/tags.json").read_text())
    codicon = json.loads((modules / "@vscode/codicons/dist/metadata.json").read_text())
    carbon = {
        i["name"]: [str(a) for a in i.get("aliases", [])]
        for i in json.loads((modules / "@carbon/icons/metadata.json").read_text())["icons"]
    }
    awesome = _fontawesome_terms(modules / "@fortawesome/fontawesome-free/metadata/icons.yml")
    feather = {}
    phosphor: dict[str, list[str]] = {}
    for block in re.findall(
        r'name:\s*"([\w-]+)".*?tags:\s*\[(.*?)\]',
        (modules / "@phosphor-icons/core/dist/index.mjs").read_text(),
        re.DOTALL,
    ):
        phosphor[block[0]] = [t for t in re.findall(r'"([^"]+)"', block[1]) if not t.startswith("*")]
    fluent = r"(?P<n>.+)_24_(regular)|.+_20_filled|.+_16_(?:color)"
    sets = [
        _svg("bootstrap", modules / "bootstrap-icons/icons"),
        _svg("fontawesome", modules / "@fortawesome/fontawesome-free/svgs/solid", tags=awesome),
        _svg("fontawesome", modules / "@fortawesome/fontawesome-free/svgs/regular", tags=awesome),
        _svg("brands", modules / "@fortawesome/fontawesome-free/svgs/brands"),
        _svg("mdi", modules / "@mdi/svg/svg", tags=mdi, pick=r"(?!alpha-|numeric-|roman-).*"),
        *(_svg("remix", folder, r"-(line|fill)$") for folder in sorted((modules / "remixicon/icons").iterdir())),
        _svg("tabler", modules / "@tabler/icons/icons/outline", tags=tabler, pick=r"(?!letter-|number-).*"),
        _svg(
            "tabler",
            modules / "@tabler/icons/icons/filled",
            tags=tabler,
            pick=r"(?!letter-|number-|circle-number|square-number).*",
        ),
        _svg("phosphor", modules / "@phosphor-icons/core/assets/regular", tags=phosphor),
        _svg("phosphor", modules / "@phosphor-icons/core/assets/fill", r"-fill$", phosphor),
        _svg("phosphor", modules / "@phosphor-icons/core/assets/light", r"-light$", phosphor, pick=r"[a-m].*"),
        _svg("fluent", modules / "@fluentui/svg-icons/icons", r"_\d+_(regular|filled|color)$", pick=fluent),
        _svg("lucide", modules / "lucide-static/icons", tags=lucide),
        _svg("material", modules / "@material-symbols/svg-400/outlined", pick=r".*(?<!-fill)"),
        _svg("material", modules / "@material-symbols/svg-400/rounded", r"-fill$", pick=r"[a-p].*-fill"),
        _svg("ionicons", modules / "ionicons/dist/svg", r"-(outline|sharp)$"),
        _svg("boxicons", modules / "boxicons/svg/regular", r"^bx-"),
        _svg("boxicons", modules / "boxicons/svg/solid", r"^bxs-"),
        _svg(
            "codicon", modules / "@vscode/codicons/src/icons", tags={k: v.get("tags", []) for k, v in codicon.items()}
        ),
        _svg("octicons", modules / "@primer/octicons/build/svg", r"-16$", pick=r".*-16"),
        _svg("feather", modules / "feather-icons/dist/icons", tags=feather),
        _svg("iconic", modules / "open-iconic/svg"),
        _svg("carbon", modules / "@carbon/icons/svg/32", tags=carbon, pick=r"[a-z-]+"),
        _svg("heroicons", modules / "heroicons/24/outline"),
        _svg("heroicons", modules / "heroicons/20/solid"),
        _svg("eva", modules / "eva-icons/fill/svg"),
        _svg("eva", modules / "eva-icons/outline/svg", r"-outline$"),
        _svg("iconoir", modules / "iconoir/icons/regular"),
    ]
    for group in sets:
        for set_, spellings, tags, path in group:
            image = render(path.read_bytes(), MONO_SIZE)
            if image is None or image.getchannel("A").getextrema()[1] < 128:
                continue
            does = codicon.get(path.stem, {}).get("description", "") if set_ == "codicon" else ""
            icon = _icon(
                concepts,
                set_,
                "brand" if set_ == "brands" else "action",
                spellings,
                tags,
                does=does[:1].lower() + does[1:],
            )
            if set_ == "brands":
                icon.names, icon.functions, icon.asked = [f"{spoken(spellings[0])} logo", spoken(spellings[0])], [], []
            icon.mono = _is_mono(image) or set_ != "fluent"
            icon.pictures[MONO_SIZE] = encode(image, icon.mono)
            yield icon


def office_icons(share: Path, concepts: Concepts) -> Iterator[Icon]:
    """LibreOffice's command icons with the labels and tooltips its registry gives the commands."""
    words = office_commands(share / "registry")
    for style in OFFICE_STYLES:
        archive = share / "config" / f"images_{style}.zip"
        if not archive.exists():
            continue
        with zipfile.ZipFile(archive) as files:
            names = set(files.namelist())
            for name in sorted(n for n in names if re.match(r"cmd/lc_\w+\.png$", n)):
                command = re.sub(r"^cmd/lc_|\.png$", "", name)
                if command not in words:
                    continue
                label, does = words[command]
                icon = _icon(
                    concepts, style if style in HELD_OUT else f"office-{style}", "action", [command], [], label, does
                )
                icon.names = [label]
                for prefix, size in (("cmd/lc_", 24), ("cmd/sc_", 16), ("cmd/32/", 48)):
                    if (file := f"{prefix}{command}.png") in names:
                        image = Image.open(io.BytesIO(files.read(file))).convert("RGBA")
                        if size == 48:
                            image = image.resize((48, 48), Image.Resampling.LANCZOS)
                        icon.pictures[image.width] = encode(image, False)
                if 24 in icon.pictures or 48 in icon.pictures:
                    yield icon


def office_commands(registry: Path) -> dict[str, tuple[str, str]]:
    """Lower-case command name → (label, tooltip) from LibreOffice's English registry (main.xcd)."""
    spaces = {"oor": "http://openoffice.org/2001/registry"}
    name_key = f"{{{spaces['oor']}}}name"
    commands: dict[str, tuple[str, str]] = {}
    file = registry / "main.xcd"
    if not file.exists():
        return commands
    for _, node in ElementTree.iterparse(file):
        name = node.attrib.get(name_key, "")
        if node.tag == "node" and name.startswith(".uno:"):
            said = {p.attrib.get(name_key): (p.findtext("value") or "") for p in node.findall("prop")}
            label = (said.get("ContextLabel") or said.get("Label") or "").replace("~", "").rstrip(".…")
            tip = (said.get("TooltipLabel") or "").replace("~", "")
            if 2 < len(label) < 40:
                commands.setdefault(
                    name.removeprefix(".uno:").lower(), (label, tip if tip.lower() != label.lower() else "")
                )
    return commands


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
