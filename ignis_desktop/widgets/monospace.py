"""Text in columns of equal width, so that only what is visible of a line has to be drawn."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from itertools import accumulate

TAB = 8


def shown(text: str) -> str:
    """A line as it is drawn: tabs as spaces, other control characters as their pictures."""
    if text.isascii() and text.isprintable():
        return text
    text = text.expandtabs(TAB)
    return "".join(chr(0x2400 + ord(c)) if c < " " else "␡" if c == "\x7f" else c for c in text)


def columns(text: str) -> list[int] | range:
    """Where each character begins, and where the last one ends: wide ones take two columns, combining ones none."""
    if text.isascii():
        return range(len(text) + 1)
    return [0, *accumulate(map(_width, text))]


def visible(edges: list[int] | range, first: int, last: int) -> tuple[int, int]:
    """The characters that lie in the columns from ``first`` to ``last``, as a slice."""
    return max(0, bisect_right(edges, first) - 1), min(len(edges) - 1, bisect_left(edges, last))


def _width(character: str) -> int:
    if character < "\u0300":
        return 1
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
