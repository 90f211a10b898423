"""Interface strings and what they are for, read from free programs' sources and installed desktop data.

What labels are for comes from `tips` and from desktop entries. Programs in `HELD_OUT` are not read.
"""

from __future__ import annotations

import html
import json
import random
import re
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from . import tips

HELD_OUT = frozenset(
    [
        "mousepad",
        "galculator",
        "pcmanfm",
        "thunar",
        "atril",
        "qalculate",
        "ristretto",
        "xfce4-settings",
        "engrampa",
        "claws",
        "filezilla",
        "transmission",
        "abiword",
        "geany",
        "featherpad",
        "qpdfview",
        "keepassxc",
        "xfce4-taskmanager",
        "seahorse",
        "mate-calc",
        "xarchiver",
        "xfce4-terminal",
        "catfish",
        "lxqt-config",
        "datasette",
        "jupyterlab",
        "@jupyterlab",
        "swagger-ui",
        "element-plus",
        "mkdocs",
    ]
)
_STRING = r'"((?:[^"\\]|\\.)*)"'
_MARK = r"(?:N_|_|NC_|Q_|C_|i18n|i18nc|tr|QT_TR_NOOP|QT_TRANSLATE_NOOP)"
_SINGLE = re.compile(rf"\b{_MARK}\s*\(\s*{_STRING}\s*\)")


def clean(text: str) -> str | None:
    """A string as it is shown, or None for those with placeholders, markup or several lines."""
    text = html.unescape(text).replace('\\"', '"').replace("…", "...").replace("\\n", "\n").strip()
    if " & " not in text:  # mnemonics
        text = re.sub(r"\(&\w\)|(?<![\w&])&(?=\w)|(?<=\w)&(?=\w)|_(?=\w)", "", text, count=1)
    if re.search(r"[<>{}\\@%|\n\t_=]|::|https?:", text) or not text.isascii() or not re.search(r"[A-Za-z]{2}", text):
        return None
    return text if 2 <= len(text) <= 110 else None


def _sources(archive: Path) -> Iterator[tuple[str, str]]:
    wanted = (".c", ".cc", ".cpp", ".h", ".vala", ".py", ".ui", ".glade", ".blp", ".xml.in", ".gschema.xml")
    with tarfile.open(archive) as tar:
        for member in tar:
            if (
                member.isfile()
                and member.name.endswith(wanted)
                and member.size < 600_000
                and "/test" not in member.name
            ):
                data = tar.extractfile(member)
                if data is not None:
                    yield member.name, data.read().decode("utf-8", "replace")


def _interface_file(text: str) -> Iterator[str]:
    """Labels and tooltips of a Qt Designer or GtkBuilder file, summaries and descriptions of a GSettings schema."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return
    for node in root.iter("property"):
        if re.search(r"text|label|title|tip|what", node.attrib.get("name", ""), re.IGNORECASE):
            yield (node.findtext("string") or node.text or "").strip()
    for key in root.iter("key"):
        for tag in ("summary", "description"):
            yield re.sub(r"\s+", " ", key.findtext(tag) or "").strip()


def shown(archive: Path) -> set[str]:
    """All short or long strings of one source archive."""
    strings: set[str] = set()
    for name, text in _sources(archive):
        interface = name.endswith((".ui", ".glade", ".xml.in", ".gschema.xml"))
        found = _interface_file(text) if interface else (match[1] for match in _SINGLE.finditer(text))
        strings.update(clear.rstrip(": ") for said in found if (clear := clean(said)))
    return strings


def held_out_questions() -> set[str]:
    """What the held-out screens are asked; none of it may be learned."""
    folder = Path(__file__).parents[4] / "tests/data"
    files = [folder / "screens/screens.json", folder / "answers/screens/screens.json"]
    records = [record for file in files if file.exists() for record in json.loads(file.read_text())]
    return {query["q"] for record in records for item in record["items"] for query in item["queries"]}


def desktop_entries(folder: Path = Path("/usr/share/applications")) -> dict[str, dict[str, str]]:
    """Icon name → Name, GenericName and Comment of the installed programs that are not held out."""
    entries: dict[str, dict[str, str]] = {}
    for path in sorted(folder.glob("*.desktop")):
        said = dict(
            line.split("=", 1)
            for line in path.read_text(errors="replace").splitlines()
            if re.match(r"(Name|GenericName|Comment|Icon)=", line)
        )
        if "Icon" in said and not any(program in path.stem.lower() for program in HELD_OUT):
            entries.setdefault(said["Icon"], said)
    return entries


def is_held_out(origin: Path) -> bool:
    return any(origin.name.lower().startswith(program) for program in HELD_OUT)


def collect(archives: list[Path], words: Path, others: Iterable[Path] = (), seed: int = 0) -> dict[str, Any]:
    """The string tables of a pack; a twelfth of the labels, sentences, pairs and words is for held-out screens only.

    Strings are those of source archives, pairs those of the `others` as well: wheels and folders of packages."""
    known = [archive for archive in archives if not is_held_out(archive)]
    strings = {text for archive in known for text in shown(archive)}
    questions = held_out_questions()
    pairs = tips.collect([*known, *(origin for origin in others if not is_held_out(origin))], questions)
    for said in desktop_entries().values():
        if found := tips.phrases.pair(said.get("Name", ""), said.get("Comment", "")):
            pairs.setdefault(found[0], [found[1]])
    rng = random.Random(seed)
    short = sorted(s for s in strings if len(s) <= 24 and len(s.split()) <= 4 and not s.endswith("."))
    long = sorted(strings - set(short))
    vocabulary = (
        [w for w in words.read_text().split() if w.isascii() and w.isalpha() and 3 <= len(w) <= 13]
        if words.exists()
        else []
    )
    table: dict[str, Any] = {}
    for key, values, most in (
        ("short", short, 30_000),
        ("long", long, 24_000),
        ("words", vocabulary, 30_000),
        ("pairs", [[label, ways] for label, ways in sorted(pairs.items())], 40_000),
    ):
        rng.shuffle(values)
        values = values[:most]
        held = len(values) // 12
        table[key], table[f"{key}_heldout"] = values[held:], values[:held]
    return table
