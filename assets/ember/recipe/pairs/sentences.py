"""What every source of pairs has in common: opened files, texts without markup, whole sentences, and which of them to
leave out."""

from __future__ import annotations

import gzip
import html
import re
from pathlib import Path

Pair = tuple[str, str]
LONGEST = 400
"""Characters of both sides of a pair together."""
BRIEF = 50
"""Characters of a sentence that is told with the next one."""

_PLAIN = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "−": "-", "…": "...", "\xa0": " "})
_SHORTENED = re.compile(
    r"\b(e\.g|i\.e|etc|vs|cf|approx|resp|incl|min|max|no|fig|sec|dr|mr|st|a\.k\.a|[a-z])\.$", re.IGNORECASE
)
_LEFT_OVER = re.compile(
    r"[{}<>|\\^~*@]|%[a-z0-9]|::|``|__|\$\(|\w+://|www\.|#\w|\(\)\w|\[[^\]]*$|[A-Za-z]_$|\.\.\.$|"
    r"\bXXX\b|\w\(\d\), \w|\(\s*\)|\b(TODO|FIXME)\b"
)
_ELSEWHERE = re.compile(
    r"\b(see (also|the|section|below|above)|as (above|below)|"
    r"(described|listed|mentioned|shown|given|explained) (above|below)|"
    r"the (following|above|previous|preceding)|following (list|example)s?|this (manual|page|section|chapter|document)|"
    r"for example|deprecated alias|homepage|copyright)\b",
    re.IGNORECASE,
)
_HANGING = re.compile(
    r"(\b(a|an|the|of|to|in|on|for|and|or|with|by|from|is|are|as|at|that|than|if|when|which|using|via|etc)|[,:;(/=-])$"
)
_REFERS = re.compile(
    r"(it|they|he|she|these|those|them|also|however|additionally|furthermore|moreover|but|and|or|so|thus|therefore|"
    r"then|otherwise|hence|for instance|e\.g|i\.e|note|see|such|same as|like|instead|finally|similarly|likewise|yes|no|"
    r"this (is|was|may|can|will|should) (also|not|only)|on the other hand|in (this|that|other|addition|either|both))\b",
    re.IGNORECASE,
)


def opened(path: Path) -> str:
    """The text of a file, unpacked where it is gzip; what is no UTF-8 is replaced."""
    data = path.read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8", "replace")


def plain(text: str) -> str:
    """``text`` in one line, with typographic signs as ASCII has them and notes like [1] removed."""
    text = html.unescape(text).translate(_PLAIN)
    return re.sub(r"\s+", " ", re.sub(r"\[\d+\]", "", text)).strip()


def untagged(markup: str) -> str:
    """HTML without tags, comments and what is only shown beside the text, as one line."""
    markup = re.sub(
        r"<!--.*?-->|<(script|style|sup)\b.*?</\1>|<a class=\"headerlink\".*?</a>", "", markup, flags=re.DOTALL
    )
    return plain(re.sub(r"<[^>]*>", "", markup))


def split(text: str) -> list[str]:
    """The sentences of one paragraph, abbreviations kept together."""
    found: list[str] = []
    for piece in re.split(r"(?<=[.!?])[\"')]* +(?=[A-Z\"'(0-9])", plain(text)):
        if found and _SHORTENED.search(found[-1]):
            found[-1] += f" {piece}"
        else:
            found.append(piece)
    return [piece for piece in found if piece]


def says(sentence: str, shortest: int = 20, longest: int = 240) -> bool:
    """Whether a sentence stands on its own: whole, free of markup and placeholders, pointing at nothing outside it."""
    return (
        sentence.isascii()
        and shortest <= len(sentence) <= longest
        and len(sentence.split()) >= 4
        and bool(re.match(r"[A-Za-z0-9\"'(]", sentence))
        and not _LEFT_OVER.search(sentence)
        and not _ELSEWHERE.search(sentence)
        and not _REFERS.match(sentence)
        and not _HANGING.search(sentence.rstrip("."))
        and sentence.count("(") == sentence.count(")")
        and sentence.count('"') % 2 == 0
    )


def first(text: str, longest: int = 240) -> str | None:
    """The first sentence of a text when it stands on its own, else None."""
    sentences = split(text)
    return sentences[0] if sentences and says(sentences[0], longest=longest) else None


def beginning(text: str, longest: int = 240) -> str | None:
    """The first sentence of a text; with the second where the first is short and both stand on their own."""
    sentences = split(text)[:2]
    if not sentences or not says(sentences[0], longest=longest):
        return None
    both = " ".join(sentences)
    return both if len(sentences[0]) < BRIEF and len(both) <= longest and says(sentences[-1]) else sentences[0]


def content(text: str) -> set[str]:
    """Words of four or more letters, without plural endings."""
    return {word.rstrip("s") for word in re.findall(r"[a-z]{4,}", text.lower())}


def repeats(question: str, text: str, most: float = 0.7) -> bool:
    """Whether the sides of a pair use the same words: more than ``most`` of the shorter one's are in the other."""
    if question.lower() in text.lower() or text.lower() in question.lower():
        return True
    shorter, longer = sorted((content(question), content(text)), key=len)
    return len(shorter) > 1 and len(shorter & longer) / len(shorter) > most
