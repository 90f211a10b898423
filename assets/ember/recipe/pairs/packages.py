"""What programs and libraries are for: Debian's package descriptions (apt's Translation-en, each under its package's
terms)."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from .sentences import Pair, content, opened, repeats, says, split

FAMILY = 6
"""Packages of one source that are read; the others of it say nearly the same."""

_LEFT_OUT = re.compile(
    r"(-(dbg|dbgsym|doc|docs|data|common|examples|static|udeb|l10n|i18n|locale|locales|lang|headers|cil|java-doc)"
    r"|-(l10n|i18n|help|lang|locale|language-pack|dict)-[\w-]+)$|^(lib.*-perl-dbg|task-|hyphen-|hunspell-|aspell-|myspell-|"
    r"mythes-|libghc-.*-(dev|prof|doc)|linux-(image|headers)|node-types-|librust-|fonts-|gcc-|g\+\+-|gfortran-|"
    r"gobjc|gdc-|gm2-|gnat-|binutils-|cpp-|lib(gcc|stdc|asan|ubsan|tsan|lsan|gomp|itm|quadmath|gfortran|atomic)\S*-cross)"
)
_LATER = re.compile(
    r"(this (?!module|library|program|tool|plugin|software|game|application|extension|driver|utility)|there |what |"
    r"(the first|if|when|with|by|for|at|as|from|while|since|after|before|all|both|its|their|his|you|we) )",
    re.IGNORECASE,
)
"""How sentences begin that lean on the one before."""
_EMPTY = re.compile(
    r"\b(transitional|dummy|metapackage|meta-package|virtual package|empty package|debug(ging)? symbols|translations?|"
    r"development (files|headers)|static librar|documentation for|header files|cross[- ]compil|"
    r"language pack|locali[sz]ation)\b",
    re.IGNORECASE,
)
_OF_THE_PACKAGE = re.compile(
    r"\b(this|the|these) ([\w.+-]+ )?(meta)?packages? |\b(binary|source|debian) packages?\b|\binstall this\b|"
    r"\bupstream\b|\b(plugin|extension|module)s? (is|are) part of\b",
    re.IGNORECASE,
)


def stanzas(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """(package, synopsis, paragraphs) of a Translation-en file; lists and quoted texts are no paragraphs."""
    for stanza in text.split("\n\n"):
        found = re.match(r"Package: (\S+)\n(?:\S+: .*\n)*?Description-en: (.*)\n?((?: .*\n?)*)", stanza)
        if found:
            parts = re.split(r"^ \.\n", found[3], flags=re.MULTILINE)
            whole = [part for part in parts if not re.search(r"^  |^ [*+o-] ", part, re.MULTILINE)]
            yield found[1], found[2].strip(), whole


def sources(text: str) -> dict[str, str]:
    """package -> source package, of a Packages file, where they differ."""
    return dict(re.findall(r"^Package: (\S+)\n(?:(?!\n)(?!Source:).*\n)*?Source: (\S+)", text, re.MULTILINE))


def described(text: str, source_of: dict[str, str]) -> Iterator[Pair]:
    """(the first sentence of the description that says it in other words, synopsis or "name: synopsis")."""
    shared = Counter(
        sentence for _, _, paragraphs in stanzas(text) for part in paragraphs for sentence in set(split(part))
    )
    families: Counter[str] = Counter()
    for name, synopsis, paragraphs in stanzas(text):
        family = source_of.get(name, name)
        if _LEFT_OUT.search(name) or _EMPTY.search(synopsis) or families[family] >= FAMILY or not synopsis.isascii():
            continue
        short = re.sub(r"^(an?|the) ", "", re.sub(r"\s*\([^)]*\)$", "", synopsis), flags=re.IGNORECASE)
        about = content(f"{name} {short}")
        for at, sentence in enumerate(s for part in paragraphs for s in split(part)):
            if (
                says(sentence, 40)
                and shared[sentence] <= 2
                and not _OF_THE_PACKAGE.search(sentence)
                and not _EMPTY.search(sentence)
                and (at == 0 or (content(sentence) & about and not _LATER.match(sentence)))
                and len(short.split()) > 1
                and not repeats(sentence, short)
            ):
                families[family] += 1
                yield sentence, f"{name}: {short}" if zlib.crc32(name.encode()) % 3 == 0 else short
                break


def packages(root: Path) -> Iterator[Pair]:
    """Pairs of apt's lists below ``root``."""
    source_of: dict[str, str] = {}
    for path in sorted(root.glob("*_Packages")):
        source_of.update(sources(opened(path)))
    for path in sorted(root.glob("*_Translation-en")):
        yield from described(opened(path), source_of)
