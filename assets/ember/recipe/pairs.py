"""Paraphrase pairs from free dictionaries: words and what they mean, examples with a synonym, names of manual pages.

    python -m assets.ember.recipe.pairs --root EXTRACTED_DEBS --out paraphrase_pairs.jsonl.gz [--more OTHER.jsonl.gz]

Sources (Debian packages, extracted below the root): dict-wn (WordNet licence), dict-foldoc (GFDL-1.2+), manual pages
(each page's own free licence). ``--more`` adds pairs made elsewhere.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

Pair = tuple[str, str]
_SENSE = re.compile(r"^\s+(?:(?:n|v|adj|adv) )?(?:\d+: |(?:n|v|adj|adv) : )")


def _opened(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode("utf-8", "replace")


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
        sentence = re.split(r"(?<=[a-z)]\.) ", body)[0]
        if 2 < len(head) < 40 and 25 < len(sentence) < 220:
            yield head.strip(), sentence


def manuals(root: Path) -> Iterator[Pair]:
    """(what it does, name) of manual pages' NAME lines."""
    for path in sorted(root.glob("**/man/man[1-8]/*.gz")):
        found = re.search(r'\.SH "?NAME"?\n(.*?)\n\.', _opened(path), re.DOTALL)
        if not found:
            continue
        line = re.sub(r"\\f.|\\|^\.\w+ ", "", found[1].replace("\n", " ")).replace(" - ", " -- ", 1)
        name, _, does = line.partition("--")
        name, does = name.split(",")[0].strip(" -"), does.strip(" -")
        if name.isascii() and 8 < len(does) < 120 and " " in does:
            yield does, name


def collect(root: Path, more: list[Path], most: int = 260_000) -> list[dict[str, str]]:
    """Pairs, each once with its source; ``most`` of them at random."""
    found: dict[Pair, str] = {}

    def add(pairs: Iterator[Pair], source: str) -> None:
        for first, second in pairs:
            if first.isascii() and second.isascii() and first.lower() != second.lower():
                found.setdefault((first, second), source)

    for path in sorted(root.glob("**/dictd/wn.dict.dz")):
        add(wordnet(_opened(path)), "wordnet")
    for path in sorted(root.glob("**/dictd/foldoc.dict.dz")):
        add(foldoc(_opened(path)), "foldoc")
    add(manuals(root), "manual")
    for path in more:
        rows = (json.loads(line) for line in _opened(path).splitlines())
        add(((row["q"], row["t"]) for row in rows), path.stem)
    rows = [{"q": first, "t": second, "src": source} for (first, second), source in found.items()]
    kept = sorted(random.Random(0).sample(range(len(rows)), min(most, len(rows))))
    return [rows[i] for i in kept]  # in the dictionaries' order: a word's first meanings are its usual ones


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, required=True, help="folder of extracted packages")
    parser.add_argument("--more", type=Path, nargs="*", default=[], help="further files of pairs")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    rows = collect(args.root, args.more)
    if not rows:
        parser.error(f"{args.root} holds none of the dictionaries; extract dict-wn and dict-foldoc there")
    with gzip.open(args.out, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    print(f"{len(rows)} pairs")


if __name__ == "__main__":
    main()
