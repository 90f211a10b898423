"""What kind of text a text is, and the sentences of prose with the lines that they begin on."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Literal

import numpy as np

from engine.answers.fold.fold import SAMPLE, share_folded
from engine.answers.fold.page import Page
from engine.answers.fold.source import Source
from engine.answers.fold.stamps import find_stamps

Kind = Literal["log", "prose", "records"]
KINDS = ("auto", "log", "prose", "records")

_SENTENCE = re.compile(r"[^.!?]*(?:[.!?](?![\s\"')\]”’])[^.!?]*)*[.!?]*[\"')\]”’]*\s?", re.UNICODE)
_ENDED = re.compile(r"[.!?:;][\"')\]”’]*$")
_WRAPPED = 40
"""Characters of a line from which it may have been broken in the middle of a sentence."""
_PARAGRAPH = 1 << 16
"""Characters of a paragraph that are looked at at once."""


@dataclass(frozen=True)
class Segment:
    """One possible answer: ``line`` is 1-based in the text as given, ``value`` is what stands there."""

    line: int
    value: str


def is_log(source: Source) -> bool:
    """Whether at least half of a text's first lines begin with a time or have a template of two lines or more."""
    return _share_stamped(source) >= 0.5 or share_folded(source) >= 0.5


def _share_stamped(source: Source) -> float:
    for block in source.blocks():
        data = b"".join(block.data.splitlines(keepends=True)[:SAMPLE])
        page = Page(data)
        filled = max(1, int(np.count_nonzero(page.ends > page.starts)))
        return len(find_stamps(page).rows) / filled
    return 0.0


def sentences_of(source: Source) -> list[Segment]:
    """All sentences. In a text that was broken to a width one may go on over lines, but not over an empty one."""
    wrapped = _is_wrapped(source)
    return [sentence for first, lines in _paragraphs(source) for sentence in _sentences(first, lines, wrapped)]


def _is_wrapped(source: Source) -> bool:
    """Whether lines that end in the middle of a sentence mostly go on with a small letter in the next one."""
    open_, small = 0, 0
    for line, after in pairwise(islice(source.every_line(), SAMPLE)):
        if len(line) >= _WRAPPED and after.strip() and not _ENDED.search(line.rstrip()):
            open_ += 1
            small += after.lstrip()[0].islower()
    return open_ > 0 and small >= 0.4 * open_


def _paragraphs(source: Source) -> Iterator[tuple[int, list[str]]]:
    """(number of its first line, lines) of what stands between empty lines."""
    lines: list[str] = []
    size = number = 0
    for number, line in enumerate(source.every_line(), 1):
        text = line.strip("\ufeff \t\r\n")
        if text and size < _PARAGRAPH:
            lines.append(text)
            size += len(text)
            continue
        if lines:
            yield number - len(lines), lines
        lines, size = ([text], len(text)) if text else ([], 0)
    if lines:
        yield number - len(lines) + 1, lines


def _sentences(first: int, lines: list[str], wrapped: bool) -> Iterator[Segment]:
    begun: list[tuple[int, str]] = []
    for number, line in enumerate(lines, first):
        begun.append((number, line))
        if not wrapped or len(line) < _WRAPPED or _ENDED.search(line) or number == first + len(lines) - 1:
            yield from _cut(begun)
            begun = []


def _cut(lines: list[tuple[int, str]]) -> Iterator[Segment]:
    text = " ".join(line for _, line in lines)
    starts, at = [], 0
    for _, line in lines:
        starts.append(at)
        at += len(line) + 1
    for match in _SENTENCE.finditer(text):
        value = match.group().strip()
        if value:
            begin = match.start() + len(match.group()) - len(match.group().lstrip())
            yield Segment(lines[bisect_right(starts, begin) - 1][0], value)
