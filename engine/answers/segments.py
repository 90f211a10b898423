"""Cutting a text into the segments an answer can be: lines, sentences or records."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from engine.messages import RequestError

Kind = Literal["log", "prose", "records"]
KINDS = ("auto", "log", "prose", "records")

_SENTENCE = re.compile(r"[^.!?\n]*(?:[.!?](?![\s\"')\]])[^.!?\n]*)*[.!?]*[\"')\]]*\s?", re.UNICODE)
_PROSE_LINE = 200
"""Characters of a typical line from which a text counts as prose written a paragraph a line."""


@dataclass(frozen=True)
class Segment:
    """One possible answer: ``line`` is 1-based in the text as given, ``value`` is what stands there."""

    line: int
    value: str


def segments_of(state: str | Sequence[object], kind: str) -> tuple[Kind, list[Segment]]:
    """The kind that was found or asked for, and the segments; empty ones are left out.

    ``state`` is a text or an array (then each element is a record, and its line is its place in the array).

    Raises:
        RequestError: an unknown kind, or records asked of a text that has none.
    """
    if kind not in KINDS:
        raise RequestError(f"kind must be one of {', '.join(KINDS)}, not {kind!r}.", code="unknown_kind", param="kind")
    if not isinstance(state, str):
        return "records", [Segment(i + 1, _one_line(element)) for i, element in enumerate(state)]
    records = _json_records(state) if kind in ("auto", "records") else None
    if records is not None:
        return "records", records
    lines = [Segment(i, line) for i, line in enumerate(_lines(state), 1) if line.strip()]
    if kind == "records":
        if not all(line.value.lstrip().startswith(("{", "[")) for line in lines):
            raise RequestError(
                "The text holds no records: send a JSON array or one JSON object a line, or ask with kind auto.",
                code="no_records",
            )
        return "records", lines
    if kind == "prose" or (kind == "auto" and _is_prose(lines)):
        return "prose", [Segment(line.line, s) for line in lines for s in _sentences(line.value)]
    return "log", lines


def _lines(text: str) -> list[str]:
    """Lines as an editor counts them: LF, CRLF or CR end one; other separators do not."""
    return re.split(r"\r\n|\n|\r", text)


def _is_prose(lines: Sequence[Segment]) -> bool:
    lengths = sorted(len(line.value) for line in lines)
    typical = lengths[len(lengths) // 2] if lengths else 0
    return typical >= _PROSE_LINE and not any(line.value.lstrip().startswith(("{", "[")) for line in lines)


def _sentences(line: str) -> list[str]:
    return [s.strip() for s in _SENTENCE.findall(line) if s.strip()] or [line]


def _one_line(element: object) -> str:
    return element if isinstance(element, str) else json.dumps(element, ensure_ascii=False)


def _json_records(text: str) -> list[Segment] | None:
    """Elements of a JSON array of two objects or more, each with the line it begins on; None for anything else."""
    start = len(text) - len(text.lstrip())
    if not text.startswith("[", start):
        return None
    decoder, at, records = json.JSONDecoder(), start + 1, []
    line, counted = 1, 0
    try:
        while True:
            at = _skip(text, at, " \t\r\n")
            if text[at] == "]":
                break
            value, end = decoder.raw_decode(text, at)
            if not isinstance(value, dict):
                return None
            line, counted = line + text.count("\n", counted, at), at
            records.append(Segment(line, " ".join(text[at:end].split("\n")) if "\n" in text[at:end] else text[at:end]))
            at = _skip(text, end, " \t\r\n,")
    except (ValueError, IndexError):
        return None
    return records if len(records) >= 2 else None


def _skip(text: str, at: int, characters: str) -> int:
    while at < len(text) and text[at] in characters:
        at += 1
    return at
