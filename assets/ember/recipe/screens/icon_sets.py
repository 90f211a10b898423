"""Icon sets under their standard names: freedesktop themes, npm's SVG sets, LibreOffice's commands.

Some sets are held out (`icons.HELD_OUT`): they are drawn on held-out screens only.
"""

from __future__ import annotations

import configparser
import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from PIL import Image

from .icons import HELD_OUT, MONO_SIZE, Concepts, Icon, encode, is_mono, make_icon, render, spoken

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
    "Obsidian",
    "Nuovo",
    "gartoon",
    "yasis",
    "gnome-human",
    "Vintage",
    "elementary",
    "elementary-xfce",
    "Numix",
    "Numix-Circle",
]
OFFICE_STYLES = ["colibre", "breeze", "sukapura", "karasa_jaga", "sifr"]
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
        icon = make_icon(concepts, theme.split("/", maxsplit=1)[0], kind, keys, [], label)
        if _draw(icon, sizes):
            yield icon


def _draw(icon: Icon, sizes: dict[int, Path]) -> bool:
    """Fill in the pictures from files by size: 48 px, and the hand-tuned 16 and 22–24 px ones where they differ."""
    large = min(sizes, key=lambda s: (abs(s - 48), -s))
    image = _load(sizes[large], MONO_SIZE)
    if image is None or image.getchannel("A").getextrema()[1] < 128:
        return False
    icon.mono = icon.name.endswith("symbolic") or is_mono(image)
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
            icon = make_icon(
                concepts,
                set_,
                "brand" if set_ == "brands" else "action",
                spellings,
                tags,
                does=does[:1].lower() + does[1:],
            )
            if set_ == "brands":
                icon.names, icon.functions, icon.asked = [f"{spoken(spellings[0])} logo", spoken(spellings[0])], [], []
            icon.mono = is_mono(image) or set_ != "fluent"
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
                icon = make_icon(
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
