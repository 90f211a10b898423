"""Names of calls, errors and fields in words, what is said of them first, and whether both make a good pair."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator

from .sentences import Pair, plain

_TAGS = re.compile(r"</?[A-Za-z][^<>]*>|<!--.*?-->", re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]+)\]\([^)]*\)|\[([^\]]+)\]\[[^\]]*\]")
_ROLE = re.compile(r":(?:[a-z]+:)?[a-z]+:`~?(?:([^`<]+?)\s*<[^`>]*>|([^`]+))`")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|Inc|approx|incl|[A-Z])\.$")
_END = re.compile(r"[.!?][\"')\]]*(?=\s+[\"'(]?[A-Z0-9`]|\s*$)")
_LABEL = re.compile(
    r"^(?:(?:Required|Optional|Output[ -]only|Input[ -]only|Immutable|Identifier|Read[- ]only|Write[- ]only"
    r"|Beta|Alpha|Experimental|Preview|Note|Unordered list|DEPRECATED)[.:]"
    r"|\[[\w. -]+\]:?|\((?:[\w-]+,? ?){1,3}\):?|[-*:])\s*",
    re.IGNORECASE,
)
_BOILERPLATE = re.compile(
    r"deprecat|will be removed|private API|^arguments for|type used by this module"
    r"|not (?:currently |yet )?(?:supported|implemented|available|used)|no longer|obsolete|reserved|internal use"
    r"|do not use|don't use|placeholder|for backwards? compat|legacy|this (?:member|parameter|field|property) is"
    r"|^see |see also|for more information|refer to|the following|as follows|described (?:below|in|at)|for example,?$"
    r"|information about pagination|^this is|^default[s:]|^same as|^alias|^equivalent to|^wrapper|^TODO|documentation"
    r"|experimental|subject to change|preview|^use \S+ instead|^batch variant|via patch",
    re.IGNORECASE,
)
_LEFTOVER = re.compile(r"[{}<>\\|`^~]|https?:|www\.|%[srdif(]|\$\(|\*\*|::|==|\bn/a\b|\w\(\)?$|\.\.|[#@]\w")
_SAY_LITTLE = """
the a an of to for in on at by with from and or is are be was were has have had that this which it its as if when
whether not no can will would may must should specifies specify specified contains contain used use uses using given
describes returns return gets get sets set identifier name value values associated one any all your you only into
than then amazon aws google web services azure module modules manage manages existing project location resource
provides certain particular ensure every enforce raised server system
"""
_FUNCTION_WORDS = frozenset(_SAY_LITTLE.split())


def unmarked(text: str) -> str:
    """Text in one line without tags, links, roles and code marks."""
    text = plain(_TAGS.sub("", text.replace("</p>", " ").replace("<br", " <br")))
    text = _ROLE.sub(lambda found: found[1] or found[2], _LINK.sub(lambda found: found[1] or found[2], text))
    text = re.sub(r"``?([^`]+)``?", r"\1", re.sub(r"\[(PEP \d+)\]", r"\1", text)).replace("**", "")
    text = re.sub(r"(?<![\w*])([*_])([^\W_][^*_]*[^\W_])\1(?![\w*])", r"\2", text)
    return re.sub(r"\s+([.,;:])(?=\s|$)", r"\1", text)


def first_sentence(text: str) -> str:
    """The first whole sentence of marked-up text without its label ("Optional."), or ""."""
    text = unmarked(text)
    while found := _LABEL.match(text):
        text = text[found.end() :]
    for found in _END.finditer(text):
        if not _ABBREVIATION.search(text[: found.start() + 1]):
            return text[: found.end()]
    return text if re.search(r"[\w)\"']$", text) else ""


def in_words(name: str) -> str:
    """ "DeleteBucketPolicy", "max-open_files" as words in lower case; abbreviations keep their capitals."""
    name = name.lower() if name.isupper() else name
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", re.sub(r"[-_./:\s]+", " ", name))
    return " ".join(w if w.isupper() and 1 < len(w) < 6 and w != name else w.lower() for w in name.split())


def spelled(name: str) -> str:
    """A name in words or, one in three, as it stands: records and settings hold both. Always the same for a name."""
    words = in_words(name)
    odd = any(len(word) == 1 for word in words.split())  # S_ISREG, C14NWriter
    return name if odd or zlib.crc32(name.encode()) % 3 == 0 else words


def stems(text: str) -> set[str]:
    """The first five letters of the words that say something."""
    words = re.findall(r"[a-z]{2,}", in_words(text).lower())
    return {word[:5] for word in words if word not in _FUNCTION_WORDS}


def worth(pair: Pair) -> bool:
    """Whether both are clean text of a fitting length and the question says something that the text does not."""
    question, text = pair
    if not (15 <= max(len(question), len(text)) <= 220 and len(text) > 3 and question.isascii() and text.isascii()):
        return False
    if any(_LEFTOVER.search(side) or _BOILERPLATE.search(side) for side in pair) or "  " in question:
        return False
    asked, there = stems(question), stems(text)
    return len(question.split()) > 2 and len(asked) > 2 and len(asked - there) >= 2 and bool(there)


def distinct(pairs: Iterable[Pair], most: int = 2) -> Iterator[Pair]:
    """Pairs worth learning; a question stands once, a text at most ``most`` times."""
    asked: set[str] = set()
    times: Counter[str] = Counter()
    for question, text in pairs:
        key = in_words(text).lower()
        if worth((question, text)) and question.lower() not in asked and times[key] < most:
            asked.add(question.lower())
            times[key] += 1
            yield question, text
