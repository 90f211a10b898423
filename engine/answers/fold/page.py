"""A block of rows as arrays of bytes and their classes; everything that folds works on these."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

PAD = 64
"""Zero bytes on both sides, so that looking a little before or behind a position needs no check."""

WORD, DIGIT, SPACE, JOINER, PATH, SPLITTER = 1, 2, 4, 8, 16, 32
"""Classes of a byte: part of a word; a digit; white space (padding too); joins two numbers into one (10.0.0.1); may
stand in a path; ends a token although no space follows (a,b)."""


def _classes() -> bytes:
    table = bytearray(256)
    for byte in range(256):
        character = chr(byte)
        if byte >= 128 or character.isalnum() or character == "_":
            table[byte] |= WORD
        if 48 <= byte <= 57:
            table[byte] |= DIGIT
        if byte <= 32 and byte != 10:
            table[byte] |= SPACE
        if character in ".:-/+":
            table[byte] |= JOINER
        if byte > 32 and byte != 127 and character not in "\"'`<>(){}[],;|":
            table[byte] |= PATH
        if character in ",;|":
            table[byte] |= SPLITTER
    return bytes(table)


_CLASSES = np.frombuffer(_classes(), np.uint8)
PLAIN = bytes(byte if (byte >= 32 and byte != 127) or byte == 10 else 32 for byte in range(256))
"""Tabs and control characters are white space."""
_PADDING = bytes(PAD)


class Page:
    """Rows of a block. Positions count from the padded beginning.

    ``bytes``: the rows with control characters as spaces, writable. ``classes``: of the same length.
    ``starts``, ``ends``: each row's first byte and its newline.
    """

    def __init__(self, data: bytes) -> None:
        """``data``: rows that each end with a newline."""
        self.bytes: Bytes = np.frombuffer(bytearray(_PADDING + data.translate(PLAIN) + _PADDING), np.uint8)
        self.classes: Bytes = _CLASSES[self.bytes]
        self.ends: Positions = np.flatnonzero(self.bytes == 10)
        self.starts: Positions = np.empty_like(self.ends)
        self.starts[0] = PAD
        self.starts[1:] = self.ends[:-1] + 1

    @property
    def rows(self) -> int:
        return len(self.ends)

    def row_of(self, positions: Positions) -> Positions:
        return np.searchsorted(self.starts, positions, "right") - 1

    def indented(self) -> Mask:
        """Whether each row begins with white space."""
        out: Mask = (self.classes[self.starts] & SPACE) != 0
        return out

    def blank(self, starts: Positions, ends: Positions) -> None:
        """Spaces instead of everything from each start up to its end."""
        where = spread(starts, ends)
        self.bytes[where] = 32
        self.classes[where] = SPACE


def spread(starts: Positions, ends: Positions) -> Positions:
    """All positions of spans, in their order."""
    lengths = ends - starts
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()), dtype=np.int64)
