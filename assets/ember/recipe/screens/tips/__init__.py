"""What elements of interfaces are for: labels with their tooltips and descriptions from free programs.

An origin is a source archive of Debian, an extracted package, a wheel or an npm package; its files are read by the
parsers of `code`, `markup` and `catalogues`, and `phrases` makes of each tip what somebody would ask for.
"""

from __future__ import annotations

import random
import re
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from . import catalogues, code, markup, phrases
from .code import Said

LARGEST = 3_000_000
"""Bytes of a file that is read."""
MOST = 2_700
"""Pairs that are taken of one archive or wheel, at random; a folder holds many programs."""
OFTEN, WAYS = 3, 12
"""Labels that one function may stand for, and functions of one label."""

_PARSERS: tuple[tuple[str, Callable[[str, str], Iterator[Said]]], ...] = (
    (r"\.(c|cc|cpp|cxx|h|hh|hpp|vala|py)$", code.code),
    (r"\.(ui|glade)$", markup.widgets),
    (r"\.(gschema\.xml|gschema\.xml\.in|kcfg)$|darktableconfig\.xml", markup.schema),
    (r"effects/.*\.xml$|transitions/.*\.xml$|\.inx$", markup.described),
    (r"\.(desktop|desktop\.in|service|desktop\.cmake|directory|plugin)(\.in)?$", markup.entries),
    (r"\.blp$", markup.blueprint),
    (r"homeassistant/components/[^/]+/strings\.json$", catalogues.home_assistant),
    (
        r"\.def\.json$|metadata\.json(\.in)?$|kcm_\w+\.json$|settings-schema\.json$|settings\.schema\.json$"
        r"|plugin\.json$|metadata\.desktop\.json$",
        markup.records,
    ),
    (r"kate.*\.json$|kwin.*\.json(\.in)?$|/kcms?/.*\.json$", markup.records),
    (
        r"(en-US\.ini|languages/default|lang\.strings|Resources_en\.properties|en\.ini)$|Descriptions\.php$",
        catalogues.lines,
    ),
    (r"i18n/en\.json$|i18n/exif/en\.json$", catalogues.wiki),
    (r"devices/\w+\.(js|ts)$|lib/(modernExtend|exposes)\.js$", catalogues.converters),
    (r"\.pot$", catalogues.catalogue),
)
_LEFT_OUT = re.compile(
    r"(^|/)(tests?|testing|unittests?|testdata|examples?|demos?|doc|docs|3rdparty|pdb|third_party|vendor|deps"
    r"|node_modules/.*/node_modules)/"
)


def files(origin: Path) -> Iterator[tuple[str, str]]:
    """Name and text of the files of an archive, a wheel or a folder that one of the parsers reads."""

    def wanted(name: str, size: int) -> bool:
        return (
            size < LARGEST and not _LEFT_OUT.search(name) and any(re.search(pattern, name) for pattern, _ in _PARSERS)
        )

    if origin.is_dir():
        for path in sorted(origin.rglob("*")):
            name = path.relative_to(origin).as_posix()
            if path.is_file() and not path.is_symlink() and wanted(name, path.stat().st_size):
                yield name, path.read_bytes().decode("utf-8", "replace")
    elif origin.suffix == ".whl":
        with zipfile.ZipFile(origin) as wheel:
            for info in wheel.infolist():
                if wanted(info.filename, info.file_size):
                    yield info.filename, wheel.read(info).decode("utf-8", "replace")
    else:
        with tarfile.open(origin) as tar:
            for member in tar:
                if member.isfile() and wanted(member.name, member.size) and (file := tar.extractfile(member)):
                    yield member.name, file.read().decode("utf-8", "replace")


def said(name: str, text: str) -> Iterator[Said]:
    """Labels with tips as one file states them, neither cleaned nor chosen."""
    for pattern, parse in _PARSERS:
        if re.search(pattern, name) and not (parse is code.code and "homeassistant/" in name):
            yield from parse(name, text)


def read(origin: Path) -> Iterator[Said]:
    """Clean (label, function) pairs of one origin, each once."""
    seen: set[tuple[str, str]] = set()
    for name, text in files(origin):
        for shown, told in said(name, text):
            if (found := phrases.pair(shown, told)) and (key := (found[0].lower(), found[1].lower())) not in seen:
                seen.add(key)
                yield found


def collect(origins: Iterable[Path], asked: Iterable[str] = ()) -> dict[str, list[str]]:
    """Label -> functions of all origins; without those that are `asked` on screens that are measured with."""
    left_out = {question.lower() for question in asked}
    rng = random.Random(0)
    table: dict[str, list[str]] = {}
    stands_for: Counter[str] = Counter()
    for origin in origins:
        found = sorted(read(origin))
        if not origin.is_dir() and len(found) > MOST:
            found = sorted(rng.sample(found, MOST))
        for shown, told in found:
            ways = table.setdefault(shown, [])
            if told.lstrip("=").lower() not in left_out and told not in ways and stands_for[told] < OFTEN:
                stands_for[told] += 1
                ways.append(told)
    return {shown: sorted(rng.sample(ways, min(WAYS, len(ways)))) for shown, ways in sorted(table.items()) if ways}
