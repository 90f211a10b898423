"""Records of a JSON array or of JSON lines, found in a text without taking it apart: each is read when it is asked for.

Numbers are kept as they are spelled (1.10, 1e3, 12345678901234567890) and keys in their order.
"""

from __future__ import annotations

import json
import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import islice
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Protocol

from engine.answers.fold.source import Source
from engine.messages import RequestError

SAMPLE = 2000
"""Lines that are looked at to tell JSON lines from other text."""

_SPACE = re.compile(r"[ \t\r\n]*")
_NEWLINE = re.compile("\r\n|\n|\r")
_STRING_OR_SPACE = re.compile(r'("(?:[^"\\]|\\.)*")|([:,])?\s+')


class Number(str):
    """A number of JSON as it is spelled."""

    __slots__ = ()


_DECODER = json.JSONDecoder(parse_float=Number, parse_int=Number, parse_constant=Number)


class Records(Protocol):
    """Records by number, from 0."""

    def __len__(self) -> int: ...

    def text(self, number: int) -> str:
        """The record as it stands there, on one line."""

    def pointer(self, number: int) -> str:
        """JSON pointer (RFC 6901); of JSON lines as if they were an array."""

    def line(self, number: int) -> int:
        """Number of the line that the record begins on."""

    def values(self) -> Iterator[object]:
        """All records; what is not JSON is a text."""


def find_records(source: Source, within: str = "", longest: int | None = None) -> Records | None:
    """The records of a text: elements of the array at the JSON pointer ``within``, else of an array of two objects or
    more, else lines that are objects. ``None``: the text has none.

    ``longest``: characters of an element at most, if other threads must not be held up: each is parsed in one go.

    Raises:
        RequestError: ``within`` points to nothing, or not to an array.
    """
    first = next((line.lstrip("\ufeff \t")[:1] for line in source.every_line() if line.strip("\ufeff \t")), "")
    if within or first == "[":
        found = _in_array(source, within, longest)
        if found is not None or within:
            return found
    return _in_lines(source) if first == "{" else None


def parse(text: str) -> object:
    """A value of JSON, its numbers as ``Number``; a text that is no JSON stays one."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return text


def spelled(value: object) -> str:
    """A value of ``parse`` as compact JSON."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k, ensure_ascii=False)}:{spelled(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(spelled, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def one_line(text: str) -> str:
    """JSON without white space between its parts, but for one space behind a colon or comma that had some."""
    return _STRING_OR_SPACE.sub(lambda match: match[1] or (match[2] + " " if match[2] else ""), text).strip()


class ArrayRecords:
    """Elements of an array, as spans of the decoded text."""

    def __init__(self, text: str, starts: array[int], ends: array[int], within: str) -> None:
        self._text = text
        self._starts, self._ends = starts, ends
        self._within = within
        self._newlines = array("Q", (match.end() for match in _NEWLINE.finditer(text)))

    def __len__(self) -> int:
        return len(self._starts)

    def text(self, number: int) -> str:
        return one_line(self._text[self._starts[number] : self._ends[number]])

    def pointer(self, number: int) -> str:
        return f"{self._within}/{number}"

    def line(self, number: int) -> int:
        return bisect_right(self._newlines, self._starts[number]) + 1

    def values(self) -> Iterator[object]:
        for start, end in zip(self._starts, self._ends, strict=True):
            yield parse(self._text[start:end])


class LineRecords:
    """Lines that are not blank, each a record."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._lines = array("Q", (n for n, line in enumerate(source.every_line(), 1) if line.strip()))

    def __len__(self) -> int:
        return len(self._lines)

    def text(self, number: int) -> str:
        return self._source.line(self._lines[number]).strip("\ufeff \t")

    def pointer(self, number: int) -> str:
        return f"/{number}"

    def line(self, number: int) -> int:
        return self._lines[number]

    def values(self) -> Iterator[object]:
        for line in self._source.every_line():
            if line.strip():
                yield parse(line.strip("\ufeff \t"))


def _in_lines(source: Source) -> Records | None:
    sample = [line for line in islice(source.every_line(), SAMPLE) if line.strip()]
    if len(sample) < 2 or not all(isinstance(parse(line.strip("\ufeff \t")), dict) for line in sample):
        return None
    return LineRecords(source)


def _in_array(source: Source, within: str, longest: int | None) -> Records | None:
    text = source.text()
    try:
        at = _pointed(text, _skip(text, 1 if text.startswith("\ufeff") else 0), within)
        starts, ends, end = _elements(text, at, longest)
    except (ValueError, IndexError, RecursionError) as error:
        if within:
            raise RequestError(f"{within} points to no array in the text: {error}.", code="no_records") from None
        return None
    if not within and (
        len(starts) < 2 or _skip(text, end) != len(text) or not all(text[start] == "{" for start in starts)
    ):
        return None
    return ArrayRecords(text, starts, ends, within)


def _elements(text: str, at: int, longest: int | None = None) -> tuple[array[int], array[int], int]:
    """Where the elements of the array at ``at`` begin and end, and where it does. ``ValueError``: it is none, or has an
    element of more than ``longest`` characters."""
    element_end = _ends(text, longest)
    if text[at] != "[":
        raise ValueError("there is something else")
    starts, ends = array("Q"), array("Q")
    at = _skip(text, at + 1)
    if text[at] == "]":
        return starts, ends, at + 1
    while True:
        end = element_end(at)
        starts.append(at)
        ends.append(end)
        at = _skip(text, end)
        if text[at] == "]":
            return starts, ends, at + 1
        if text[at] != ",":
            raise ValueError(f"a comma is missing at character {at}")
        at = _skip(text, at + 1)


def _ends(text: str, longest: int | None) -> Callable[[int], int]:
    """What says where the value at a place ends, for places one behind the other."""
    if longest is None:
        return lambda at: _DECODER.raw_decode(text, at)[1]
    first, window = 0, ""

    def end(at: int) -> int:
        nonlocal first, window
        if at - first < len(window):
            try:
                stop = _DECODER.raw_decode(window, at - first)[1]
            except ValueError:  # it goes on behind the window
                stop = len(window)
            if stop < len(window):
                return first + stop
        first, window = at, text[at : at + longest + 1]
        stop = _DECODER.raw_decode(window)[1]
        if stop > longest:
            raise ValueError(f"the element at character {at} is too long")
        return first + stop

    return end


def _pointed(text: str, at: int, pointer: str) -> int:
    """Where the value that a pointer names begins."""
    if pointer and not pointer.startswith("/"):
        raise ValueError("a JSON pointer begins with /")
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if text[at] == "[":
            at = _elements(text, at)[0][int(name)]
        elif text[at] == "{":
            at = _member(text, at, name)
        else:
            raise ValueError(f"there is no {name!r}")
    return at


def _member(text: str, at: int, name: str) -> int:
    at = _skip(text, at + 1)
    while text[at] == '"':
        key, at = scanstring(text, at + 1, False)
        at = _skip(text, at)
        if text[at] != ":":
            break
        at = _skip(text, at + 1)
        if key == name:
            return at
        at = _skip(text, _DECODER.raw_decode(text, at)[1])
        if text[at] != ",":
            break
        at = _skip(text, at + 1)
    raise ValueError(f"there is no {name!r}")


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
