"""Words and terms with what they mean: WordNet (WordNet licence, Debian's dict-wn), FOLDOC (GFDL-1.2+, dict-foldoc)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from .sentences import Pair, opened

_SENSE = re.compile(r"^\s+(?:(?:n|v|adj|adv) )?(?:\d+: |(?:n|v|adj|adv) : )")


def entries(text: str) -> Iterator[tuple[str, list[str]]]:
    """(headword, senses) of a dictd file whose headwords stand unindented above their indented senses."""
    head, senses = "", []
    for line in text.splitlines():
        if line and not line[0].isspace():
            if head and senses:
                yield head, senses
            head, senses = line.strip(), []
        elif _SENSE.match(line):
            senses.append(_SENSE.sub("", line).strip())
        elif senses and line.strip():
            senses[-1] += f" {line.strip()}"
    if head and senses:
        yield head, senses


def wordnet(text: str) -> Iterator[Pair]:
    """(meaning, word), (word, synonym) and (example, the same with a synonym)."""
    for head, senses in entries(text):
        if not re.fullmatch(r"[a-z][a-z' -]{2,40}", head):  # names of people, places and species say little
            continue
        for sense in senses:
            said, _, names = sense.partition(" [syn: ")
            names = re.sub(r"\(\w+\)", "", names.partition("]")[0])
            others = [n for n in re.findall(r"\{([^}]*)\}", names) if n != head and n == n.lower()]
            meaning, *examples = [part.strip() for part in re.split(r'; (?=")', re.sub(r" \[ant: .*", "", said))]
            if 8 < len(meaning) < 160:
                yield meaning, head
            for other in others[:2]:
                yield head, other
            for example in examples[:2]:
                quoted = example.strip('"')
                word = re.compile(rf"\b{re.escape(head)}\b")
                if others and word.search(quoted):
                    yield quoted, word.sub(others[0], quoted)


def foldoc(text: str) -> Iterator[Pair]:
    """(term, first sentence of its explanation)."""
    for block in re.split(r"\n(?=\S)", text):
        head, _, body = block.partition("\n")
        body = re.sub(r"[{}]", "", re.sub(r"<[^<>]*>|^\s*\d+\. ", " ", re.sub(r"\s+", " ", body))).strip()
        body = re.sub(r"\s*\(\d{4}-\d\d-\d\d\)|^\([^()]*\) |^\d+\. | ?\[\"[^]]*\]\.?", "", body)
        sentence = re.split(r"(?<=[a-z)]\.) ", body)[0]
        if 2 < len(head) < 40 and sentence[:1].isupper() and 25 < len(sentence) < 220:
            yield head.strip(), sentence


def words(root: Path) -> Iterator[Pair]:
    """Pairs of WordNet."""
    for path in sorted(root.glob("usr/share/dictd/wn.dict.dz")):
        yield from wordnet(opened(path))


def terms(root: Path) -> Iterator[Pair]:
    """Pairs of FOLDOC."""
    for path in sorted(root.glob("usr/share/dictd/foldoc.dict.dz")):
        yield from foldoc(opened(path))
