"""What commands, options, settings and errors mean, of manual pages (each page under its own free licence)."""

from __future__ import annotations

import errno
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from .roff import Item, items, unescaped
from .sentences import Pair, first, opened

_COMMON = frozenset(["help", "version", "verbose", "quiet", "usage", "debug"])
_LONG = re.compile(r"--[a-z][a-z0-9]+(?:-[a-z0-9]+)*")
_SETTING = re.compile(r"[A-Za-z][A-Za-z0-9]+(?:[._-][A-Za-z0-9]+)*=?$")
_SECTIONS = ("ENVIRONMENT", "FILES", "SIGNALS", "DIAGNOSTICS")


def pages(root: Path, sections: str = "1-8") -> Iterator[tuple[str, str, str]]:
    """(page, its section, source) of English manual pages below ``root``."""
    for path in sorted(root.glob(f"usr/share/man/man[{sections}]/*.gz")):
        name, _, section = path.name.removesuffix(".gz").rpartition(".")
        if path.exists():  # a link may lead to a package that is not there
            yield name, section[:1], opened(path)


def names(root: Path) -> Iterator[Pair]:
    """(what it does, name) of manual pages' NAME lines."""
    for _, _, source in pages(root):
        found = re.search(r'\.SH "?NAME"?\n(.*?)\n\.', source, re.DOTALL)
        if not found:
            continue
        line = unescaped(re.sub(r"^\.\w+ ", "", found[1].replace("\n", " "))).replace(" - ", " -- ", 1)
        name, _, does = line.partition("--")
        name, does = name.split(",")[0].strip(" -"), does.strip(" -")
        if not re.match(r"perl\d+delta", name) and 8 < len(does) < 120 and " " in does and "\\" not in does:
            yield does, name


def _explained(item: Item) -> str | None:
    text = re.sub(r"^(\([^()]+\)|\[[\w ]+\]|(Added|New) in [\d.]+[.:])\s*", "", item.text)
    said = first(text, 200)
    return None if said and re.match(r"(Takes|Accepts|Expects) (a|an|one)\b.{0,40}$", said) else said


def option(item: Item, page: str) -> Pair | None:
    """(what it does, the option as it is typed) of an option's paragraph."""
    if not item.tag.startswith("-") or not (said := _explained(item)):
        return None
    if found := _LONG.search(item.tag):
        long = found[0]
        if long[2:] in _COMMON or re.search(re.escape(long) + r"\b", item.text[: len(said) + 20]):
            return None
        return said, f"{page} {long}" if zlib.crc32(said.encode()) % 3 == 0 else long
    short = re.match(r"-\w+\b", item.tag)
    return (said, f"{page} {short[0]}") if short and short[0] not in ("-h", "-v", "-V", "-help") else None


def options(root: Path) -> Iterator[Pair]:
    """Options of commands."""
    for page, _, source in pages(root, "168"):
        if not page.startswith("zsh"):  # "zshbuiltins -f" is no command
            yield from (pair for item in items(source, page) if (pair := option(item, page)))


def settings(root: Path) -> Iterator[Pair]:
    """Settings of configuration files, variables of the environment, and files."""
    for page, section, source in pages(root):
        if page == "perldiag":
            continue
        for item in items(source, page):
            tag = re.split(r",? | \[|\(", item.tag)[0].strip("\"'")
            spelt = _SETTING.match(tag) and re.search(r"[a-z][A-Z]|[A-Z].*[_=]|[a-z][._-][a-zA-Z]|=$", tag)
            setting = section == "5" and spelt and len(item.tag) < 60
            named = item.section.startswith(_SECTIONS) and re.match(
                r"(/|~/)[\w./-]+$|[A-Z][A-Z_]{3,}$|[A-Z].* .{8,}", item.tag
            )
            if (setting or named) and (said := _explained(item)):
                yield said, tag if setting else item.tag.rstrip(".,")


def errors(root: Path) -> Iterator[Pair]:
    """(why a call fails, the error's name or its message) of system and library calls."""
    told: Counter[Pair] = Counter()
    for page, _, source in pages(root, "23"):
        for item in items(source, page):
            name = item.tag.split()[0].strip(",") if item.tag else ""
            if not item.section.startswith("ERRORS") or not re.fullmatch(r"E[A-Z0-9]+", name):
                continue
            said = first(re.sub(r"^(\([^()]*\)|\[[^]]*\]) *", "", item.text), 200)
            number = getattr(errno, name, None)
            if not said or number is None:
                continue
            told[said, name] += 1
            if told[said, name] > 2:  # "Insufficient memory." is said of a hundred calls
                continue
            if zlib.crc32(said.encode()) % 2:
                yield said, f"{page}: {os.strerror(number)}"
            else:
                yield said, name
