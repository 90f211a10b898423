"""Messages with their explanations.

Perl's diagnostics (Artistic or GPL-1+), systemd's catalog (LGPL-2.1+), lintian's tags (GPL-2+), pylint's checks
(GPL-2), mypy's error codes (MIT) and the HTTP statuses of Python's standard library (PSF-2.0).
"""

from __future__ import annotations

import ast
import re
import zlib
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

from .roff import items
from .sentences import Pair, beginning, first, opened, untagged

_UNITS = {"UNIT": "backup.service", "USER_ID": "anna", "SESSION_ID": "12", "SEAT_ID": "seat0", "LEADER": "4711"}
_UNITS |= {"MOUNT_POINT": "/srv/data", "WHERE": "/srv/data", "OFFENDING_USER": "nobody", "SIZE_LIMIT": "2147483648"}
_UNITS |= {"COREDUMP_PID": "4711", "COREDUMP_COMM": "convert", "EXECUTABLE": "/usr/bin/backup", "JOB_RESULT": "failed"}
"""Values of the fields that the catalog's messages name."""
_NAMES = ("total", "user_id", "config", "report", "items", "handler", "backup", "session", "orders", "main")
_CONVERSION = re.compile(r"%(?:\d\$)?(?:\.?\d|\.\*)?(l{0,2}[duxz]+|[srqcpmg])")
_CODE = re.compile(r"[CEFIRW]\d{4}")


def filled(message: str) -> str | None:
    """A message as a program writes it, with names and numbers for its conversions; None where one would be guessed."""
    message = message.removesuffix(" <-- HERE").replace("%%", "%")
    if len(_CONVERSION.findall(message)) > 2 or re.search(r"[\w:]%[sd]|%[sd]\w|%-p|[{}<\\]|\$\^", message):
        return None
    seed = zlib.crc32(message.encode())

    def value(match: re.Match[str]) -> str:
        nonlocal seed
        seed = seed * 1103515245 + 12345 & 0x7FFFFFFF
        return str(2 + (seed >> 8) % 90) if set(match[1]) & set("du") else _NAMES[(seed >> 8) % len(_NAMES)]

    text = " ".join(_CONVERSION.sub(value, message).split())
    return text if "%" not in text and text.isascii() else None


def diagnostics(page: str) -> Iterator[Pair]:
    """(explanation, message) of perldiag, whose explanations begin with a class and a category: "(W closed) ..."."""
    for item in items(page, "perldiag"):
        message = filled(item.tag)
        found = re.match(r"\([A-Z](?:\|[A-Z])*[^)]*\) (.*)", item.text)
        if message and found and len(message.split()) > 1 and (said := beginning(found[1], 300)):
            yield said, message


def perl(root: Path) -> Iterator[Pair]:
    """Diagnostics of perl-doc."""
    for path in sorted(root.glob("usr/share/man/man1/perldiag.1.gz")):
        yield from diagnostics(opened(path))


def _fill(text: str) -> str:
    return re.sub(r"@(\w+)@", lambda found: _UNITS.get(found[1], found[0]), text)


def catalog(text: str) -> Iterator[Pair]:
    """(explanation, subject) of a systemd message catalog, with a unit's name where it puts one in."""
    for entry in re.split(r"^-- [0-9a-f]{32}\n", text, flags=re.MULTILINE)[1:]:
        head, _, body = entry.partition("\n\n")
        found = re.search(r"^Subject: (.*)$", head, re.MULTILINE)
        subject = _fill(found[1]).rstrip(".!") if found else "@"
        for paragraph in body.split("\n\n")[:2]:
            if "@" not in subject and (said := first(_fill(paragraph))):
                yield said, subject


def systemd(root: Path) -> Iterator[Pair]:
    """systemd's catalogs in English."""
    for path in sorted(root.glob("usr/lib/systemd/catalog/*.catalog")):
        if path.name.count(".") == 1:  # others name a language: systemd.de.catalog
            yield from catalog(opened(path))


def lintian(root: Path) -> Iterator[Pair]:
    """(explanation, tag) of what Debian's package checker finds."""
    entry = re.compile(r"^Tag: (\S+)\n.*?^Explanation: (.*?)(?:\n \.\n|\n\S|\Z)", re.MULTILINE | re.DOTALL)
    for path in sorted(root.glob("usr/share/lintian/tags/**/*.tag")):
        found = entry.search(opened(path))
        if found and (said := beginning(untagged(found[2]))):
            yield said, found[1]


def checks(source: str) -> Iterator[Pair]:
    """(when a check speaks up, its message or symbol) of pylint's tables ``"E0602": (message, symbol, when)``."""
    for table in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Dict)):
        for key, value in zip(table.keys, table.values, strict=True):
            if not (isinstance(key, ast.Constant) and _CODE.fullmatch(str(key.value)) and isinstance(value, ast.Tuple)):
                continue
            words = [
                part.value for part in value.elts if isinstance(part, ast.Constant) and isinstance(part.value, str)
            ]
            if len(words) != 3:
                continue
            message, symbol, explained = words
            told = re.sub(r"^(Used|Emitted|Raised) when ((a|an|the) )?", lambda m: m[2] or "", explained)
            if said := beginning(told[:1].upper() + told[1:]):
                text = filled(message)
                yield said, text if text and len(text.split()) > 2 else symbol


def pylint(root: Path) -> Iterator[Pair]:
    """Checks of pylint."""
    for path in sorted(root.glob("usr/lib/python3/dist-packages/pylint/**/*.py")):
        yield from checks(opened(path))


def mypy(root: Path) -> Iterator[Pair]:
    """(what is checked, code) of mypy."""
    for path in sorted(root.glob("usr/lib/python3/dist-packages/mypy/errorcodes.py")):
        for code, said in re.findall(r'ErrorCode\(\s*"([\w-]+)",\s*"([^"]+)"', opened(path)):
            yield said, code


def statuses(_root: Path) -> Iterator[Pair]:
    """(what it means, status line) of HTTP."""
    for status in HTTPStatus:
        if status.description:
            yield status.description, f"{status.value} {status.phrase}"
