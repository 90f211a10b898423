"""PostgreSQL (PostgreSQL licence): its settings, and errors with their details and hints."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

from .messages import filled
from .sentences import Pair, first, opened, says, untagged

_LITERAL = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
_REPORT = re.compile(r"ereport\((\w+),(.*?)\)\);", re.DOTALL)
_MESSAGE = re.compile(rf"errmsg(?:_internal)?\({_LITERAL}")
_MORE = re.compile(rf"err(?:hint|detail)\({_LITERAL}")
_TABLED = re.compile(
    rf'\{{\s*"(\w+)",\s*PGC_\w+,\s*\w+,\s*gettext_noop\({_LITERAL}\),\s*(?:gettext_noop\({_LITERAL}\)|NULL)'
)


def _joined(literals: str) -> str:
    text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals))
    return text.replace('\\"', '"').replace("\\n", " ").replace("\\'", "'")


def reports(source: str) -> Iterator[Pair]:
    """(hint or detail, message) of the errors in a C source."""
    for found in _REPORT.finditer(source):
        message = _MESSAGE.search(found[2])
        text = filled(_joined(message[1])) if message else None
        for more in _MORE.finditer(found[2]):
            said = filled(_joined(more[1]))
            if text and said and says(said) and len(text.split()) > 2:
                yield said, text


def tabled(source: str) -> Iterator[Pair]:
    """(description, setting) of the server's own table of settings."""
    for name, short, long in _TABLED.findall(source):
        for literal in (short, long):
            if says(said := _joined(literal)):
                yield said, name


def settings(root: Path) -> Iterator[Pair]:
    """(what it does, setting) of the manual and the sources."""
    for path in sorted(root.glob("usr/share/doc/postgresql-doc-*/html/*.html")):
        for name, text in re.findall(
            r'<dt id="GUC-.*?"varname">([\w.]+)</code>.*?<dd><p>(.*?)</p>', opened(path), re.DOTALL
        ):
            if said := first(untagged(text)):
                yield said, name
    for _, source in sources(root, ("guc.c", "guc_tables.c")):
        yield from tabled(source)


def errors(root: Path) -> Iterator[Pair]:
    """Errors with what is said to explain them."""
    for _, source in sources(root, (".c", ".y", ".l")):
        yield from reports(source)


def sources(root: Path, endings: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """(path, text) of files in PostgreSQL's source archive below ``root``."""
    for path in sorted(root.glob("postgresql-*.orig.tar.*")):
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile() and member.name.endswith(endings) and "/test/" not in member.name:
                    file = archive.extractfile(member)
                    yield member.name, file.read().decode("utf-8", "replace") if file else ""
