"""Interface strings with what they mean, read from free programs' sources and installed desktop data.

Pairs (label, what it does) come from places where programs state both: action tables in C and C++ sources with their
tooltips, Qt Designer and GtkBuilder files, GSettings schemas, desktop entries. Programs in `HELD_OUT` are not read.
"""

from __future__ import annotations

import html
import random
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

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
    ]
)
_STRING = r'"((?:[^"\\]|\\.)*)"'
_MARK = r"(?:N_|_|NC_|Q_|C_|i18n|i18nc|tr|QT_TR_NOOP|QT_TRANSLATE_NOOP)"
_LABEL_TIP = re.compile(  # { "name", icon, N_("_Label"), accelerator, N_("tooltip") — GtkActionEntry and its relatives
    rf'{_MARK}\s*\(\s*(?:"[^"]*-action"\s*,\s*)?{_STRING}\s*\)\s*,\s*(?:{_STRING}|NULL|nullptr|0|\{{[^}}]*\}})?\s*,?\s*'
    rf'{_MARK}\s*\(\s*(?:"[^"]*-action"\s*,\s*)?{_STRING}\s*\)'
)
_SINGLE = re.compile(rf"\b{_MARK}\s*\(\s*{_STRING}\s*\)")
_QT_TIP = re.compile(
    rf'(\w+)(?:->|\.)set(Text|ToolTip|StatusTip|WhatsThis)\s*\(\s*{_MARK}\s*\(\s*(?:"[^"]*"\s*,\s*)?{_STRING}\s*\)'
)


def clean(text: str, mnemonics: bool = True) -> str | None:
    """A string as it is shown, or None for those with placeholders, markup or several lines."""
    text = html.unescape(text).replace('\\"', '"').replace("…", "...").replace("\\n", "\n").strip()
    if mnemonics:
        text = (
            re.sub(r"\(&\w\)|(?<![\w&])&(?=\w)|(?<=\w)&(?=\w)|_(?=\w)", "", text, count=1)
            if " & " not in text
            else text
        )
    if re.search(r"[<>{}\\@%|\n\t_=]|::|https?:", text) or not text.isascii() or not re.search(r"[A-Za-z]{2}", text):
        return None
    return text if 2 <= len(text) <= 110 else None


_VERBS = frozenset(
    word
    for line in Path(__file__).with_name("verbs.txt").read_text().splitlines()
    if not line.startswith(("#", "+"))
    for word in line.split()
)


def _pair(label: str, tip: str, table: bool = False) -> tuple[str, str] | None:
    """Label and function if they read like that; from code (`table`) only tips that begin with a verb count."""
    first, second = clean(label), clean(tip, mnemonics=False)
    if not first or not second or len(first) > 34 or len(first.split()) > 5 or not 12 <= len(second) <= 100:
        return None
    first, second = first.rstrip(".: "), second.rstrip(". ")
    words = second.split()
    if re.match(r"(Static b|B)inding|Used by|This option", second):
        return None
    if (
        first.lower() == second.lower()
        or len(words) < 3
        or len(first) < 2
        or sum(w[0].isupper() for w in words) > 0.5 * len(words)
    ):
        return None
    return (first, second) if not table or words[0].lower().removesuffix("s") in _VERBS else None


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


def _interface_file(text: str) -> Iterator[tuple[str, str]]:
    """(label, tooltip) of the widgets of a Qt Designer or GtkBuilder file."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return
    for node in root.iter():
        said: dict[str, str] = {}
        for prop in node.findall("property"):
            key = prop.attrib.get("name", "").replace("_", "-")
            said[key] = prop.findtext("string") or prop.text or ""
        label = said.get("text") or said.get("label") or said.get("title") or said.get("iconText") or ""
        tip = (
            said.get("toolTip")
            or said.get("statusTip")
            or said.get("whatsThis")
            or said.get("tooltip-text")
            or said.get("tooltip-markup")
            or ""
        )
        if label.strip():
            yield label.strip(), tip.strip()
    for key in root.iter("key"):  # GSettings schemas
        yield (key.findtext("summary") or "").strip(), re.sub(r"\s+", " ", key.findtext("description") or "").strip()


def from_source(archive: Path) -> tuple[list[tuple[str, str]], set[str]]:
    """(label, function) pairs and all short or long strings of one source archive."""
    pairs: list[tuple[str, str]] = []
    strings: set[str] = set()
    for name, text in _sources(archive):
        found: list[tuple[str, str]] = []
        interface = name.endswith((".ui", ".glade", ".xml.in", ".gschema.xml"))
        if interface:
            found = list(_interface_file(text))
        else:
            found = [(m[1], m[3]) for m in _LABEL_TIP.finditer(text)]
            shown: dict[str, str] = {}
            for match in _QT_TIP.finditer(text):
                if match[2] == "Text":
                    shown[match[1]] = match[3]
                elif match[1] in shown:
                    found.append((shown[match[1]], match[3]))
            found += [(m[1], "") for m in _SINGLE.finditer(text)]
        for label, tip in found:
            if pair := _pair(label, tip, table=not interface):
                pairs.append(pair)
            for said in (label, tip):
                if shown_text := clean(said, mnemonics=said is label):
                    strings.add(shown_text.rstrip(": "))
    return pairs, strings


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


def collect(archives: list[Path], words: Path, seed: int = 0) -> dict[str, Any]:
    """The string tables of a pack; a twelfth of the labels, sentences, pairs and words is for held-out screens only."""
    pairs: dict[str, set[str]] = {}
    strings: set[str] = set()
    for archive in archives:
        if any(program in archive.name for program in HELD_OUT):
            continue
        more, shown = from_source(archive)
        strings |= shown
        for label, does in more:
            pairs.setdefault(label, set()).add(does)
    for said in desktop_entries().values():
        if (comment := clean(said.get("Comment", ""), False)) and (name := clean(said.get("Name", ""), False)):
            pairs.setdefault(name, set()).add(comment)
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
        ("pairs", [[k, sorted(v)] for k, v in sorted(pairs.items())], 30_000),
    ):
        rng.shuffle(values)
        values = values[:most]
        held = len(values) // 12
        table[key], table[f"{key}_heldout"] = values[held:], values[:held]
    return table
