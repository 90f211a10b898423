"""Documents for distillation: free documentation from Debian packages, tokenised into one array.

Only the teacher's distribution over these texts is learned; none of the text ships. Each source is listed with its
licence in the ``sources.json`` written beside the array. Run: ``python -m assets.ember.recipe.text --root
EXTRACTED_DEBS``.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import html
import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .shape import Words


def from_html(source: str) -> str:
    """The readable text of an HTML page, one block a line."""
    body = re.sub(r"(?s)<(script|style|head|nav)\b.*?</\1>", "", source)
    body = re.sub(r"</?(p|br|li|tr|h\d|div|dt|dd|pre|table|ul|ol)\b[^>]*>", "\n", body)
    text = html.unescape(re.sub(r"<[^>]+>", "", body)).replace("\xa0", " ")
    return re.sub(r"[ \t]*\n\s*\n+", "\n\n", text).strip()


def from_roff(source: str) -> str:
    """A manual page's source without its requests and font changes."""
    text = re.sub(r'(?m)^[.\']\\".*\n', "", source)
    text = re.sub(r"\\f[A-Z]|\\f\[\w*\]|\\&|\\s[+-]?\d", "", text).replace("\\-", "-").replace("\\(aq", "'")
    return re.sub(r"(?m)^[.']\w+ ?", "", text).strip()


def from_dict(source: str) -> str:
    """A dictd data file as plain text (its entries are separated by unindented headwords)."""
    return re.sub(r"\{([^}]*)\}", r"\1", source)


@dataclass(frozen=True)
class Source:
    """Files of one package under the root of extracted packages; ``cap`` bounds its share in tokens."""

    name: str
    licence: str
    pattern: str
    cap: int
    read: Callable[[str], str] = str


SOURCES = (
    Source("python3-doc", "PSF-2.0", "**/doc/python3*/html/**/*.html", 2_500_000, from_html),
    Source("postgresql-doc", "PostgreSQL", "**/doc/postgresql-doc-*/html/*.html", 1_500_000, from_html),
    Source("gimp-help-en", "GFDL-1.2+", "**/gimp/2.0/help/en/*.html", 900_000, from_html),
    Source("debian-handbook", "CC-BY-SA-3.0 / GPL-2+", "**/debian-handbook/html/en-US/*.html", 500_000, from_html),
    Source("debian-reference-en", "GPL-2+", "**/debian-reference/*.en.html", 300_000, from_html),
    Source("developers-reference", "GPL-2+", "**/developers-reference/*.html", 200_000, from_html),
    Source("debian-faq", "GPL-2+", "**/debian/FAQ/*.html", 100_000, from_html),
    Source("git-doc", "GPL-2", "**/doc/git/html/*.html", 700_000, from_html),
    Source("linux-doc", "GPL-2", "**/doc/linux-doc-*/html/**/*.html", 2_500_000, from_html),
    Source("dict-foldoc", "GFDL-1.2+", "**/dictd/foldoc.dict.dz", 700_000, from_dict),
    Source("dict-jargon", "public domain", "**/dictd/jargon.dict.dz", 250_000, from_dict),
    Source("dict-gcide", "GPL-3+", "**/dictd/gcide.dict.dz", 1_000_000, from_dict),
    Source("dict-wn", "WordNet", "**/dictd/wn.dict.dz", 600_000, from_dict),
    Source("fortunes", "BSD / public domain", "**/games/fortunes/*", 300_000),
    Source("manual pages", "each page's own free licence", "**/man/man[1-8]/*.gz", 3_000_000, from_roff),
    Source("package documentation", "each package's own free licence", "**/share/doc/*/README*", 300_000),
    Source("cmake-doc", "BSD-3-Clause", "**/doc/cmake-data/html/**/*.html", 700_000, from_html),
    Source("python-django-doc", "BSD-3-Clause", "**/doc/python-django-doc/html/**/*.html", 900_000, from_html),
    Source("python-sqlalchemy-doc", "MIT", "**/doc/python-sqlalchemy-doc/html/**/*.html", 500_000, from_html),
    Source("nodejs-doc", "MIT", "**/doc/nodejs/api/*.html", 500_000, from_html),
    Source("installation-guide-amd64", "GPL-2+", "**/doc/installation-guide-amd64/en/*.html", 300_000, from_html),
    Source("debian-policy", "GPL-2+", "**/doc/debian-policy/*.html", 250_000, from_html),
    Source("harden-doc", "GPL-2+", "**/doc/harden-doc/html/**/*.html", 200_000, from_html),
    Source("bind9-doc", "MPL-2.0", "**/doc/bind9-doc/**/*.html", 300_000, from_html),
    Source("gnome-user-docs", "CC-BY-SA-3.0", "**/help/C/gnome-help/*.page", 400_000, from_html),
    Source("gnumeric-doc", "GFDL-1.1+", "**/help/C/gnumeric/*.xml", 250_000, from_html),
    Source("vim-runtime", "Vim", "**/vim/vim*/doc/*.txt", 700_000),
    Source("erlang-doc", "Apache-2.0", "**/doc/erlang-doc/**/html/*.html", 900_000, from_html),
    Source("libgtk-3-doc, libglib2.0-doc", "LGPL-2.1+", "**/gtk-doc/html/**/*.html", 700_000, from_html),
    Source("info pages", "GFDL-1.3+ / GPL-3+", "**/share/info/*.gz", 900_000),
)
PIECE = 40_000
"""Characters of one document; longer files are cut."""


def _open(path: Path) -> str:
    raw = path.read_bytes()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    return raw.decode("utf-8", "ignore")


def _readable(text: str) -> bool:
    """Mostly English letters in lines that are not tables of numbers."""
    letters, plain = sum(c.isalpha() for c in text), sum(map(str.isascii, text))
    return len(text) > 400 and plain > 0.97 * len(text) and letters > 0.55 * len(text)


def collect(root: Path, words: Words, seed: int = 0) -> tuple[list[list[int]], list[list[int]], list[dict]]:
    """(training documents, held-out documents, what was used) as token lists; one document in 60 is held out."""
    rng, train, held, used = random.Random(seed), [], [], []

    def pieces(whole: str) -> list[str]:
        cut = [whole[i : i + PIECE] for i in range(0, len(whole), PIECE)]
        rng.shuffle(cut)  # so that a cap does not leave a dictionary's first letters only
        return cut

    def take(texts: Iterator[str], cap: int) -> int:
        total, batch = 0, []
        for text in (piece for whole in texts for piece in pieces(whole)):
            if _readable(text):
                batch.append(text)
            if len(batch) >= 50:
                total += keep(batch)
                batch = []
            if total >= cap:
                return total
        return total + keep(batch)

    def keep(texts: list[str]) -> int:
        total = 0
        for text, ids in zip(texts, words.encode_many(texts), strict=True):
            out = hashlib.sha256(text[:2000].encode()).digest()[0] % 60 == 0
            (held if out else train).append(ids)
            total += len(ids)
        return total

    for source in SOURCES:
        paths = [p for p in sorted(root.glob(source.pattern)) if p.is_file() and p.suffix not in (".dat", ".u8")]
        rng.shuffle(paths)
        tokens = take((source.read(_open(p)) for p in paths), source.cap)
        used.append({"source": source.name, "licence": source.licence, "tokens": tokens})
    return train, held, used


def pack(documents: list[list[int]], rng: random.Random) -> np.ndarray:
    """Shuffled documents as one uint16 array, each closed by token 0 (``<|endoftext|>``)."""
    documents = documents[:]
    rng.shuffle(documents)
    return np.array([token for ids in documents for token in (*ids, 0)], np.uint16)


class TextStream:
    """Random windows of documents and of the teacher's own chats.

    Chats are rows that start with the teacher's system block; half of them are given to the student without it, so
    that Ember answers without a system turn as the teacher does with one.
    """

    def __init__(self, documents: np.ndarray, chats: np.ndarray | None, system: int, seed: int) -> None:
        self.documents, self.chats, self.system = documents, chats, system
        self.rng = np.random.default_rng(seed)

    @property
    def shapes(self) -> int:
        """How many different (rows, length, skipped) ``batch`` gives."""
        return 1 if self.chats is None else 3

    def batch(self, rows: int, length: int) -> tuple[np.ndarray, int]:
        """(ids int64 [rows, length], skipped): the student reads ``ids[:, skipped:]``. Alternates between the kinds."""
        if self.chats is None or self.rng.random() < 0.5:
            starts = self.rng.integers(0, len(self.documents) - length, rows)
            return np.stack([self.documents[s : s + length] for s in starts]).astype(np.int64), 0
        width = self.chats.shape[1]
        rows = rows * length // width
        picks = self.chats[self.rng.integers(0, len(self.chats), rows)].astype(np.int64)
        return picks, self.system if self.rng.random() < 0.5 else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--root", type=Path, required=True, help="folder into which documentation packages were extracted"
    )
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    train, held, used = collect(args.root, Words(args.tokenizer))
    rng = random.Random(0)
    args.out.mkdir(parents=True, exist_ok=True)
    arrays = {"train": pack(train, rng), "heldout": pack(held, rng)}
    np.savez_compressed(args.out / "documents.npz", **arrays)
    (args.out / "sources.json").write_text(json.dumps(used, indent=1))
    print({name: len(a) for name, a in arrays.items()}, json.dumps(used))


if __name__ == "__main__":
    main()
