"""How the bytes of a text spell characters: UTF-8 or UTF-16, with a byte order mark or without."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Units = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]
"""A text's bytes, or its 16-bit code units."""

_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_ESCAPE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\r\n]*(?:\x07|\x1b\\)|[@-Z\\^_])")
"""ANSI: colours and cursor movements, titles and links of terminals, two-character functions (ECMA-48)."""


@dataclass(frozen=True)
class Encoding:
    """``mark``: bytes of the byte order mark. ``errors``: how ``bytes.decode`` treats bytes that spell nothing."""

    name: str
    mark: int = 0
    errors: str = "replace"

    @property
    def unit(self) -> int:
        """Bytes of a code unit."""
        return 1 if self.name == "utf-8" else 2

    def units(self, raw: bytes) -> Units:
        """Code units of ``raw``; half a unit at its end is left out."""
        if self.unit == 1:
            return np.frombuffer(raw, np.uint8)
        order = ">u2" if self.name == "utf-16-be" else "<u2"
        return np.frombuffer(raw, order, len(raw) // 2)

    def begins_character(self, units: Units) -> npt.NDArray[np.bool_]:
        """Whether a character begins at each unit."""
        out: npt.NDArray[np.bool_] = (units & 0xC0) != 0x80 if self.unit == 1 else (units & 0xFC00) != 0xDC00
        return out

    def decode(self, raw: bytes) -> str:
        try:
            return raw.decode(self.name, self.errors)
        except UnicodeDecodeError:
            return raw.decode(self.name, "replace")

    def plain(self, raw: bytes) -> bytes:
        """``raw`` in UTF-8 with ``\\n`` behind each line and no escape sequences: what is folded."""
        if self.unit == 2:
            raw = raw.decode(self.name, "replace").encode("utf-8", "replace")
        if b"\r" in raw:
            raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return _ESCAPE.sub(b"", raw) if b"\x1b" in raw else raw


def without_escapes(text: str) -> str:
    """A line without the ANSI sequences that colour it on a terminal."""
    if "\x1b" not in text:
        return text
    return _ESCAPE.sub(b"", text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def sniff(head: bytes) -> Encoding:
    """The encoding of a text that begins with ``head``.

    Without a mark it is UTF-16 if a tenth of the pairs have a byte of zero and all on the same side, as spaces and
    newlines do there; text in UTF-8 has none.
    """
    for mark, name in _MARKS:
        if head.startswith(mark):
            return Encoding(name, len(mark))
    pairs = np.frombuffer(head, np.uint8, len(head) // 2 * 2).reshape(-1, 2)
    if len(pairs):
        first, second = np.count_nonzero(pairs == 0, axis=0).tolist()
        most = max(first, second)
        if most >= 4 and most * 10 >= len(pairs) and min(first, second) * 10 < most:
            return Encoding("utf-16-le" if second > first else "utf-16-be")
    return Encoding("utf-8")
